"""DescribeShareGroupOffsets: how far share groups have come, and how much is left (KIP-932).

A group that is not there has come nowhere, as for Kafka.
"""

from collections.abc import Generator, Iterable, Iterator
from functools import partial
from typing import NamedTuple
from uuid import UUID

from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.groups.share.group import ShareGroup
from broker.groups.share.persister import UNINITIALIZED, SharePersister, StateSummary
from broker.partitions.partition import Partition
from broker.runtime.answers import AnswerRoom, Answers, asked_once
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.describe_share_group_offsets import (
    DescribeShareGroupOffsetsGroup,
    DescribeShareGroupOffsetsGroupResult,
    DescribeShareGroupOffsetsPartitionResult,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsTopicResult,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.wire import ZERO_UUID

UNKNOWN_LAG = -1


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    share_persister: SharePersister
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]
Answer = DescribeShareGroupOffsetsResponse | Deferred[DescribeShareGroupOffsetsResponse]


class AskedTopic(NamedTuple):
    """Partitions of a topic; without an id there is no such topic."""

    name: str
    topic_id: UUID
    partitions: Iterable[int]


def handle(request: DescribeShareGroupOffsetsRequest, context: Context) -> Answer:
    """A group that is named twice is described once."""
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    return context.services.answers.make(
        partial(_answers, request, context),
        lambda groups: DescribeShareGroupOffsetsResponse(groups=groups),
    )


def _answers(
    request: DescribeShareGroupOffsetsRequest, context: Context, room: AnswerRoom
) -> Iterator[DescribeShareGroupOffsetsGroupResult | None]:
    for asked in asked_once(request.groups, lambda each: each.group_id):
        try:
            context.require(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id)
            check_group_id(asked.group_id)
            yield (yield from _described(asked, context, room))
        except KafkaError as error:
            context.count_error(error.code)
            yield DescribeShareGroupOffsetsGroupResult(
                group_id=asked.group_id,
                topics=[],
                error_code=error.code,
                error_message=error.message,
            )


def _described(
    asked: DescribeShareGroupOffsetsGroup, context: Context, room: AnswerRoom
) -> Generator[None, None, DescribeShareGroupOffsetsGroupResult]:
    context.services.groups.check_loaded(asked.group_id)
    topics = []
    for topic in _topics(asked, context):
        refusal = None
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            refusal = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        partitions = []
        for index in topic.partitions:
            room.take(2, len(topic.name))
            partitions.append(_partition(asked.group_id, topic, index, refusal, context))
            yield
        topics.append(
            DescribeShareGroupOffsetsTopicResult(
                topic_name=topic.name,
                topic_id=ZERO_UUID if refusal else topic.topic_id,
                partitions=partitions,
            )
        )
    return DescribeShareGroupOffsetsGroupResult(
        group_id=asked.group_id, topics=topics, error_code=0
    )


def _topics(asked: DescribeShareGroupOffsetsGroup, context: Context) -> Iterator[AskedTopic]:
    image = context.services.topics.image
    if asked.topics is not None:
        for each in asked_once(asked.topics, lambda topic: topic.topic_name):
            topic = image.topics.get(each.topic_name)
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            yield AskedTopic(each.topic_name, topic_id, dict.fromkeys(each.partitions))
        return
    group = context.services.groups.groups.get(asked.group_id)
    share = None if group is None else group.modern
    for topic_id, indexes in share.states.made.items() if isinstance(share, ShareGroup) else ():
        topic = image.by_id.get(topic_id)
        if topic is not None and context.sees(
            AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name
        ):
            yield AskedTopic(topic.name, topic_id, sorted(indexes))


def _partition(
    group_id: str,
    topic: AskedTopic,
    index: int,
    refusal: KafkaError | None,
    context: Context,
) -> DescribeShareGroupOffsetsPartitionResult:
    log, summary = None, StateSummary()
    try:
        if refusal is not None:
            raise refusal
        if topic.topic_id != ZERO_UUID:
            log = context.services.topics.image.require_by_id(topic.topic_id, index)
            summary = context.services.share_persister.summary(group_id, topic.topic_id, index)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeShareGroupOffsetsPartitionResult(
            partition_index=index,
            start_offset=UNINITIALIZED,
            leader_epoch=0,
            error_code=error.code,
            error_message=error.message,
        )
    return DescribeShareGroupOffsetsPartitionResult(
        partition_index=index,
        start_offset=summary.start_offset,
        leader_epoch=summary.leader_epoch,
        lag=_lag(log, summary),
        error_code=0,
    )


def _lag(log: Partition | None, summary: StateSummary) -> int:
    """Records from the start on that are not finished; -1 while that is not known."""
    if log is None or UNINITIALIZED in {summary.start_offset, summary.delivery_complete_count}:
        return UNKNOWN_LAG
    end = log.log.snapshot.high_watermark
    return end - summary.start_offset - summary.delivery_complete_count
