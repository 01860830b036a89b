"""OffsetFetch: the durable committed offsets of groups.

An offset that was committed for a deleted topic of the same name is left out. Groups, topics and
partitions that are named twice are answered once.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from broker.groups.consumer.commits import check_fetch
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.coordinator import GroupCoordinator
from broker.groups.records.classic import OffsetCommitValue
from broker.groups.requests import topic_of
from broker.groups.streams.commits import check_streams_fetch
from broker.groups.streams.group import StreamsGroup
from broker.runtime.answers import AnswerRoom, Answers, asked_once
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
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
AT_A_TIME = 1000  # partitions, before others have their turn

Offsets = dict[tuple[str, int], OffsetCommitValue]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: OffsetFetchRequest, context: Context
) -> OffsetFetchResponse | Deferred[OffsetFetchResponse]:
    """The offsets of one group, or of many."""
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    answers, stable = context.services.answers, request.require_stable
    if context.api_version >= MANY_GROUPS_SINCE_VERSION:
        asked = asked_once(request.groups, lambda each: each.group_id)
        return answers.make(
            partial(_groups, asked, context, stable),
            lambda groups: OffsetFetchResponse(groups=groups),
        )
    wanted = OffsetFetchRequestGroup(group_id=request.group_id, topics=_many(request.topics))
    return answers.make(
        partial(_groups, [wanted], context, stable), partial(_respond_one, wanted, context)
    )


def _respond_one(
    wanted: OffsetFetchRequestGroup,
    context: Context,
    groups: list[OffsetFetchResponseGroup],
) -> OffsetFetchResponse:
    (group,) = groups
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


def _groups(
    asked: Iterable[OffsetFetchRequestGroup],
    context: Context,
    stable: bool,
    room: AnswerRoom,
) -> Iterator[OffsetFetchResponseGroup | None]:
    for wanted in asked:
        try:
            topics = yield from _topics(wanted, context, room)
        except KafkaError as error:
            context.count_error(error.code)
            yield OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error.code)
            continue
        if stable:
            _hide_unstable(wanted.group_id, topics, context)
        yield OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)


def _topics(
    wanted: OffsetFetchRequestGroup, context: Context, room: AnswerRoom
) -> Generator[None, None, list[OffsetFetchResponseTopics]]:
    groups = context.services.groups
    context.require(AclOperation.DESCRIBE, ResourceType.GROUP, wanted.group_id)
    groups.check_loaded_or_wait(wanted.group_id)
    group = groups.groups.get(wanted.group_id)
    if group is not None:
        group.check_is_of_consumers()
    if group is not None and isinstance(group.modern, ConsumerGroup):
        check_fetch(group.modern, wanted.member_id, wanted.member_epoch)
    if group is not None and isinstance(group.modern, StreamsGroup):
        check_streams_fetch(group.modern, wanted.member_id, wanted.member_epoch)
    offsets = group.offsets if group is not None else {}
    if wanted.topics is None:
        room.take(len(offsets) // 8)  # for the list of all
        asked = _all(offsets, context)
    else:
        asked = _once(wanted.topics)
    topics: list[OffsetFetchResponseTopics] = []
    for each in asked:
        topic = yield from _topic(each, offsets, context, room)
        topics.append(topic)
    return topics


def _once(topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
    """Each topic once, with each of its partitions once."""
    indexes: dict[object, dict[int, None]] = {}
    for each in topics:
        known = indexes.setdefault((each.name, each.topic_id), {})
        known.update(dict.fromkeys(each.partition_indexes))
    found = asked_once(topics, lambda each: (each.name, each.topic_id))
    for each in found:
        each.partition_indexes = list(indexes[each.name, each.topic_id])
    return found


def _hide_unstable(
    group_id: str, topics: Iterable[OffsetFetchResponseTopics], context: Context
) -> None:
    """UNSTABLE_OFFSET_COMMIT (88) where an open transaction may change the offset (KIP-447)."""
    pending = context.services.groups.pending
    for topic in topics:
        for each in topic.partitions:
            place = topic.name, each.partition_index
            if not each.error_code and pending.holds(group_id, place):
                each.error_code = ErrorCode.UNSTABLE_OFFSET_COMMIT
                each.committed_offset, each.metadata = NO_OFFSET, ""
                context.count_error(each.error_code)


def _all(offsets: Offsets, context: Context) -> list[OffsetFetchRequestTopics]:
    """As if all partitions with an offset had been asked for."""
    image = context.services.topics.image
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
        if context.sees(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)
    ]


def _topic(
    wanted: OffsetFetchRequestTopics, offsets: Offsets, context: Context, room: AnswerRoom
) -> Generator[None, None, OffsetFetchResponseTopics]:
    name = wanted.name
    if context.api_version >= IDS_SINCE_VERSION:
        try:
            name = topic_of(context.services.topics.image, "", wanted.topic_id).name
        except KafkaError as error:
            context.count_error(ErrorCode.UNKNOWN_TOPIC_ID)
            return _refused([wanted], error.code and ErrorCode.UNKNOWN_TOPIC_ID)[0]
    if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        context.count_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return _refused([wanted], ErrorCode.TOPIC_AUTHORIZATION_FAILED)[0]
    indexes = wanted.partition_indexes
    answers: list[OffsetFetchResponsePartitions] = []
    for first in range(0, len(indexes), AT_A_TIME):
        now = indexes[first : first + AT_A_TIME]
        some = [_partition(name, index, offsets, context) for index in now]
        room.take(len(some), sum(len(each.metadata or "") for each in some))
        answers += some
        yield
    return OffsetFetchResponseTopics(name=name, topic_id=wanted.topic_id, partitions=answers)


def _partition(
    topic: str, index: int, offsets: Offsets, context: Context
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


def _counts(value: OffsetCommitValue, topic: str, context: Context) -> bool:
    """True when it was committed for the topic that has this name now."""
    present = context.services.topics.image.topics.get(topic)
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
