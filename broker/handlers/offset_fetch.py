"""OffsetFetch: how far groups have come. Only what is durable is told.

An offset that was committed for a topic of the same name that has been deleted since is not told.
"""

from collections.abc import Iterable, Sequence

from broker.context import RequestContext
from broker.groups.consumer.commits import check_fetch
from broker.groups.group_records import OffsetCommitValue
from broker.groups.requests import topic_of
from protocol.apis.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID

GROUP_ERROR_SINCE_VERSION = 2
MANY_GROUPS_SINCE_VERSION = 8
IDS_SINCE_VERSION = 10
NO_OFFSET = -1

Offsets = dict[tuple[str, int], OffsetCommitValue]


def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """The offsets of one group, or of many."""
    if context.api_version >= MANY_GROUPS_SINCE_VERSION:
        groups = [_group(each, context, stable=request.require_stable) for each in request.groups]
        return OffsetFetchResponse(groups=groups)
    wanted = OffsetFetchRequestGroup(group_id=request.group_id, topics=_many(request.topics))
    group = _group(wanted, context, stable=request.require_stable)
    if group.error_code and context.api_version < GROUP_ERROR_SINCE_VERSION:
        group.topics = _refused(wanted.topics or [], group.error_code)
    return OffsetFetchResponse(topics=_one(group.topics), error_code=group.error_code)


def _many(
    topics: list[OffsetFetchRequestTopic] | None,
) -> list[OffsetFetchRequestTopics] | None:
    if topics is None:
        return None
    return [
        OffsetFetchRequestTopics(name=each.name, partition_indexes=each.partition_indexes)
        for each in topics
    ]


def _one(topics: Iterable[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=each.partition_index,
                    committed_offset=each.committed_offset,
                    committed_leader_epoch=each.committed_leader_epoch,
                    metadata=each.metadata,
                    error_code=each.error_code,
                )
                for each in topic.partitions
            ],
        )
        for topic in topics
    ]


def _group(
    wanted: OffsetFetchRequestGroup, context: RequestContext, *, stable: bool
) -> OffsetFetchResponseGroup:
    groups = context.broker.groups
    try:
        groups.check_loaded(wanted.group_id)
        group = groups.groups.get(wanted.group_id)
        if group is not None and group.consumer is not None:
            check_fetch(group.consumer, wanted.member_id, wanted.member_epoch)
    except KafkaError as error:
        context.count_error(error.code)
        return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error.code)
    offsets = group.offsets if group is not None else {}
    asked = _all(offsets, context) if wanted.topics is None else wanted.topics
    topics = [_topic(each, offsets, context) for each in asked]
    if stable:
        _hide_unstable(wanted.group_id, topics, context)
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def _hide_unstable(
    group_id: str, topics: Iterable[OffsetFetchResponseTopics], context: RequestContext
) -> None:
    """UNSTABLE_OFFSET_COMMIT (88) where an open transaction may change the offset (KIP-447)."""
    pending = context.broker.groups.pending
    for topic in topics:
        for each in topic.partitions:
            if pending.holds(group_id, (topic.name, each.partition_index)):
                each.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
                each.committed_offset, each.metadata = NO_OFFSET, ""
                context.count_error(each.error_code)


def _all(offsets: Offsets, context: RequestContext) -> list[OffsetFetchRequestTopics]:
    """As if all partitions with an offset had been asked for."""
    image = context.broker.catalog.image
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(offsets):
        if _counts(offsets[topic, index], topic, context):
            by_topic.setdefault(topic, []).append(index)
    return [
        OffsetFetchRequestTopics(
            name=topic,
            topic_id=image.topics[topic].topic_id if topic in image.topics else ZERO_UUID,
            partition_indexes=indexes,
        )
        for topic, indexes in by_topic.items()
        if topic in image.topics or context.api_version < IDS_SINCE_VERSION
    ]


def _topic(
    wanted: OffsetFetchRequestTopics, offsets: Offsets, context: RequestContext
) -> OffsetFetchResponseTopics:
    name = wanted.name
    if context.api_version >= IDS_SINCE_VERSION:
        try:
            name = topic_of(context, "", wanted.topic_id).name
        except KafkaError as error:
            context.count_error(ErrorCode.UNKNOWN_TOPIC_ID)
            return _refused([wanted], error.code and ErrorCode.UNKNOWN_TOPIC_ID)[0]
    return OffsetFetchResponseTopics(
        name=name,
        topic_id=wanted.topic_id,
        partitions=[
            _partition(name, index, offsets, context) for index in wanted.partition_indexes
        ],
    )


def _partition(
    topic: str, index: int, offsets: Offsets, context: RequestContext
) -> OffsetFetchResponsePartitions:
    value = offsets.get((topic, index))
    if value is None or not _counts(value, topic, context):
        return OffsetFetchResponsePartitions(
            partition_index=index, committed_offset=NO_OFFSET, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


def _counts(value: OffsetCommitValue, topic: str, context: RequestContext) -> bool:
    """Whether it was committed for the topic that has this name now."""
    present = context.broker.catalog.image.topics.get(topic)
    return present is None or value.topic_id in {ZERO_UUID, present.topic_id}


def _refused(
    topics: Sequence[OffsetFetchRequestTopics], code: int
) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=code
                )
                for index in topic.partition_indexes
            ],
        )
        for topic in topics
    ]
