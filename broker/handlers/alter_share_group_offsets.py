"""AlterShareGroupOffsets: sets where a share group without members goes on (KIP-932).

A group that is not there is made.
"""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.groups.share.altering import Place, Refused
from broker.runtime.deferred import Deferred, resolved
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.alter_share_group_offsets import (
    AlterShareGroupOffsetsPartitionResult,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsTopic,
    AlterShareGroupOffsetsTopicResult,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]
Answer = AlterShareGroupOffsetsResponse | Deferred[AlterShareGroupOffsetsResponse]
Judged = dict[tuple[str, int], Place | KafkaError]


def handle(request: AlterShareGroupOffsetsRequest, context: Context) -> Answer:
    """A code for each partition, durable when it is 0; or one for the group."""
    try:
        context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        check_group_id(request.group_id)
        group = _group(request.group_id, context)
        judged, starts = _judged(request, context)
        done = _begun(group, starts, context)
    except KafkaError as error:
        return _refusal(context, error)
    return after(done, partial(_respond, request, context, judged), partial(_refusal, context))


def _group(group_id: str, context: Context) -> Group:
    """A share group without members, made if there is none. NON_EMPTY_GROUP (68)."""
    groups = context.services.groups
    groups.check_loaded(group_id)
    if group_id in groups.groups:
        group, share = groups.require_share(group_id)
        if share.members:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"Group {group_id} is not empty.")
        return group
    return groups.find_or_make(group_id)


def _begun(group: Group, starts: dict[Place, int], context: Context) -> Deferred[Refused]:
    groups = context.services.groups
    if starts:
        return groups.shares.begin_at(groups.shares.share_of(group), starts)
    groups.drop_unused(group)
    return resolved({})


def _judged(
    request: AlterShareGroupOffsetsRequest, context: Context
) -> tuple[Judged, dict[Place, int]]:
    """Each partition, or why its start is not set; and the starts."""
    judged: Judged = {}
    starts: dict[Place, int] = {}
    for topic in request.topics:
        for each in topic.partitions:
            try:
                place = _place(topic.topic_name, each.partition_index, context)
            except KafkaError as error:
                context.count_error(error.code)
                judged[topic.topic_name, each.partition_index] = error
            else:
                judged[topic.topic_name, each.partition_index] = place
                starts[place] = each.start_offset
    return judged, starts


def _place(name: str, index: int, context: Context) -> Place:
    context.require(AclOperation.READ, ResourceType.TOPIC, name)
    image = context.services.topics.image
    image.require(name, index)
    return image.topics[name].topic_id, index


def _respond(
    request: AlterShareGroupOffsetsRequest, context: Context, judged: Judged, refused: Refused
) -> AlterShareGroupOffsetsResponse:
    for error in refused.values():
        context.count_error(error.code)
    return AlterShareGroupOffsetsResponse(
        error_code=0, responses=[_topic(each, judged, refused, context) for each in request.topics]
    )


def _topic(
    topic: AlterShareGroupOffsetsTopic, judged: Judged, refused: Refused, context: Context
) -> AlterShareGroupOffsetsTopicResult:
    known = context.services.topics.image.topics.get(topic.topic_name)
    is_hidden = not context.sees(AclOperation.READ, ResourceType.TOPIC, topic.topic_name)
    partitions = []
    for each in topic.partitions:
        found = judged[topic.topic_name, each.partition_index]
        error = found if isinstance(found, KafkaError) else refused.get(found)
        partitions.append(
            AlterShareGroupOffsetsPartitionResult(
                partition_index=each.partition_index,
                error_code=0 if error is None else error.code,
                error_message=None if error is None else error.message,
            )
        )
    return AlterShareGroupOffsetsTopicResult(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID if known is None or is_hidden else known.topic_id,
        partitions=partitions,
    )


def _refusal(context: Context, error: KafkaError) -> AlterShareGroupOffsetsResponse:
    context.count_error(error.code)
    return AlterShareGroupOffsetsResponse(
        error_code=error.code, error_message=error.message, responses=[]
    )
