"""OffsetDelete: forgets how far a group has come, unless its members read that topic."""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group, Place
from broker.groups.classic.subscription import CONSUMER
from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: OffsetDeleteRequest, context: Context
) -> OffsetDeleteResponse | Deferred[OffsetDeleteResponse]:
    """One code for each partition, or one for all."""
    try:
        group = _group(request.group_id, context)
    except KafkaError as error:
        return _refusal(context, error)
    places: list[Place] = []
    topics = [
        OffsetDeleteResponseTopic(
            name=name,
            partitions=[
                OffsetDeleteResponsePartition(
                    partition_index=index,
                    error_code=_judge(name, index, group, places, context),
                )
                for index in indexes
            ],
        )
        for name, indexes in _once(request).items()
    ]
    done = context.services.groups.commits.take_back(group, places)
    return after(done, lambda _: OffsetDeleteResponse(topics=topics), partial(_refusal, context))


def _once(request: OffsetDeleteRequest) -> dict[str, dict[int, None]]:
    """The partitions by topic: one that is named twice is answered, and audited, once."""
    found: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        indexes = found.setdefault(topic.name, {})
        indexes.update(dict.fromkeys(each.partition_index for each in topic.partitions))
    return found


def _group(group_id: str, context: Context) -> Group:
    """One that nobody uses, or whose members say what they read."""
    context.require(AclOperation.DELETE, ResourceType.GROUP, group_id)
    check_group_id(group_id)
    group = context.services.groups.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    group.check_is_of_consumers()
    if group.modern is None and not group.is_empty and group.protocol_type != CONSUMER:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    return group


def _judge(topic: str, index: int, group: Group, places: list[Place], context: Context) -> int:
    code = ErrorCode.NONE
    if not context.may(AclOperation.READ, ResourceType.TOPIC, topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    elif context.services.topics.image.partition(topic, index) is None:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif not group.is_empty and group.reads(topic):
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    else:
        places.append((topic, index))
    context.count_error(code)
    return code


def _refusal(context: Context, error: KafkaError) -> OffsetDeleteResponse:
    context.count_error(error.code)
    return OffsetDeleteResponse(error_code=error.code)
