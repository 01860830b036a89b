"""Descriptions of groups that a request names, whatever their kind."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Protocol, TypeVar

from broker.runtime.answers import AnswerRoom
from broker.runtime.request_context import RequestContext
from protocol.acls import AclOperation, ResourceType
from protocol.errors import ErrorCode, KafkaError


class GroupDescription(Protocol):
    """Description of one group in an answer."""

    authorized_operations: int


class DescribeRequest(Protocol):
    """Names of groups, and what is asked of each."""

    @property
    def group_ids(self) -> Iterable[str]:
        """Names, perhaps some of them twice."""

    @property
    def include_authorized_operations(self) -> bool:
        """True when rights of the client are asked for."""


G = TypeVar("G", bound=GroupDescription)


def described_groups(
    request: DescribeRequest,
    context: RequestContext[Any],
    room: AnswerRoom,
    describe: Callable[[str, RequestContext[Any], AnswerRoom], Generator[None, None, G]],
    made: Callable[..., G],
) -> Iterator[G | None]:
    """Each group once, or the error that it has, INVALID_GROUP_ID (24) where it has no name; None
    where others may have their turn.

    `describe` may raise KafkaError; `made` makes a description out of its fields.
    """
    for group_id in dict.fromkeys(request.group_ids):
        try:
            context.require(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
            _check_named(group_id)
            group = yield from describe(group_id, context, room)
        except KafkaError as error:
            context.count_error(error.code)
            yield made(group_id=group_id, error_code=error.code, error_message=error.message)
            continue
        if request.include_authorized_operations:
            group.authorized_operations = context.bits(ResourceType.GROUP, group_id)
        yield group


def _check_named(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
