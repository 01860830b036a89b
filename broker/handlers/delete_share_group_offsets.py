"""DeleteShareGroupOffsets: a share group without members forgets topics (KIP-932)."""

from functools import partial
from typing import NamedTuple
from uuid import UUID

from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.groups.share.group import ShareGroup
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsTopicResult,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]
Answer = DeleteShareGroupOffsetsResponse | Deferred[DeleteShareGroupOffsetsResponse]
Judged = dict[str, UUID | KafkaError]


def handle(request: DeleteShareGroupOffsetsRequest, context: Context) -> Answer:
    """A code for each topic, durable when it is 0; or one for the group."""
    groups = context.services.groups
    try:
        context.require(AclOperation.DELETE, ResourceType.GROUP, request.group_id)
        check_group_id(request.group_id)
        _, share = groups.require_share(request.group_id)
        _check_is_empty(share)
        judged = {
            each.topic_name: _judge(share, each.topic_name, context) for each in request.topics
        }
        done = groups.shares.forget(
            share, {each for each in judged.values() if isinstance(each, UUID)}
        )
    except KafkaError as error:
        return _refusal(context, error)
    return after(done, partial(_respond, judged), partial(_refusal, context))


def _check_is_empty(share: ShareGroup) -> None:
    if share.members:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {share.group_id} is not empty.")


def _judge(share: ShareGroup, name: str, context: Context) -> UUID | KafkaError:
    """A topic that the group remembers something of."""
    topic = context.services.topics.image.topics.get(name)
    try:
        context.require(AclOperation.READ, ResourceType.TOPIC, name)
        return _remembered(share, topic.topic_id if topic is not None else ZERO_UUID, name)
    except KafkaError as error:
        context.count_error(error.code)
        return error


def _remembered(share: ShareGroup, topic_id: UUID, name: str) -> UUID:
    if topic_id not in share.states.names:
        text = f"The group remembers nothing of topic {name}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return topic_id


def _respond(judged: Judged, _: None) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(
        error_code=0, responses=[_topic(name, found) for name, found in judged.items()]
    )


def _topic(name: str, found: UUID | KafkaError) -> DeleteShareGroupOffsetsTopicResult:
    if isinstance(found, UUID):
        return DeleteShareGroupOffsetsTopicResult(topic_name=name, topic_id=found, error_code=0)
    return DeleteShareGroupOffsetsTopicResult(
        topic_name=name, topic_id=ZERO_UUID, error_code=found.code, error_message=found.message
    )


def _refusal(context: Context, error: KafkaError) -> DeleteShareGroupOffsetsResponse:
    context.count_error(error.code)
    return DeleteShareGroupOffsetsResponse(
        error_code=error.code, error_message=error.message, responses=[]
    )
