"""Checks that ShareFetch and ShareAcknowledge have in common, in Kafka's order."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar
from uuid import UUID

from broker.runtime.request_context import RequestContext
from broker.share.sessions import SharedPlace
from protocol.acls import AclOperation, ResourceType
from protocol.errors import ErrorCode, KafkaError

MEMBER_ID_CHARACTERS = 36


class ShareRequest(Protocol):
    """Either of the two."""

    group_id: str | None
    member_id: str | None


def named(request: ShareRequest, context: RequestContext[Any]) -> tuple[str, str]:
    """Group and member, if the client may read as the group; INVALID_REQUEST (42) without them."""
    group, member = request.group_id or "", request.member_id or ""
    context.asks(AclOperation.READ, ResourceType.GROUP)
    if not group:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "The group id is missing.")
    context.require(AclOperation.READ, ResourceType.GROUP, group)
    if not 1 <= len(member) <= MEMBER_ID_CHARACTERS:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
    return group, member


def may_read(context: RequestContext[Any]) -> Callable[[str], bool]:
    """Judges topics by name, by the rights of the moment."""
    return lambda topic: context.may(AclOperation.READ, ResourceType.TOPIC, topic)


P = TypeVar("P")


def by_topic(
    answers: Iterable[tuple[SharedPlace, P]], made: Callable[[UUID, list[P]], Any]
) -> list[Any]:
    """Results by topic, topics and partitions in the order in which they come."""
    topics: dict[UUID, list[P]] = {}
    for (topic_id, _), answer in answers:
        topics.setdefault(topic_id, []).append(answer)
    return [made(topic_id, partitions) for topic_id, partitions in topics.items()]
