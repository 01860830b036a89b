"""DescribeShareGroupOffsets: how far share groups have come, and how much is left (KIP-932).

A group that is not there has come nowhere, as for Kafka.
"""

from collections.abc import Awaitable, Generator, Iterable, Iterator
from functools import partial
from typing import NamedTuple
from uuid import UUID

from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.groups.share.group import ShareGroup
from broker.groups.share.persister import UNINITIALIZED, StateSummary
from broker.groups.share.progress import (
    ProgressLook,
    ProgressService,
    SharePlace,
    ShareProgress,
)
from broker.runtime.answers import AnswerRoom, Answers, asked_once
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import wait_for
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.share.state.key import ShareKey
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


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    groups: GroupCoordinator
    share_progress: ProgressService
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]
Answer = DescribeShareGroupOffsetsResponse | Deferred[DescribeShareGroupOffsetsResponse]


class AskedTopic(NamedTuple):
    """Partitions of a topic; without an id there is no such topic."""

    name: str
    topic_id: UUID
    partitions: Iterable[int]


def handle(
    request: DescribeShareGroupOffsetsRequest, context: Context
) -> Answer | Awaitable[DescribeShareGroupOffsetsResponse]:
    """A group that is named twice is described once."""
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    look = context.services.share_progress.at_hand
    return _asked_first(request, context) if look is None else _made(request, context, look)


async def _asked_first(
    request: DescribeShareGroupOffsetsRequest, context: Context
) -> DescribeShareGroupOffsetsResponse:
    """Asks the nodes that have the states, and those that lead the partitions."""
    places = list(_places(request, context))
    look = await context.services.share_progress.asked(places)
    made = _made(request, context, look)
    return await wait_for(made) if isinstance(made, Deferred) else made


def _places(request: DescribeShareGroupOffsetsRequest, context: Context) -> Iterator[SharePlace]:
    """Share partitions of groups that are coordinated here, and that the client may see."""
    image = context.services.topics.image
    for asked in asked_once(request.groups, lambda each: each.group_id):
        if not context.sees(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id):
            continue
        for topic in _topics(asked, context):
            found = image.by_id.get(topic.topic_id)
            for index in topic.partitions if found is not None else ():
                partition = found.partition(index) if found is not None else None
                if partition is not None:
                    yield SharePlace(ShareKey(asked.group_id, topic.topic_id, index), partition)


def _made(
    request: DescribeShareGroupOffsetsRequest, context: Context, look: ProgressLook
) -> Answer:
    return context.services.answers.make(
        partial(_answers, request, context, look),
        lambda groups: DescribeShareGroupOffsetsResponse(groups=groups),
    )


def _answers(
    request: DescribeShareGroupOffsetsRequest,
    context: Context,
    look: ProgressLook,
    room: AnswerRoom,
) -> Iterator[DescribeShareGroupOffsetsGroupResult | None]:
    for asked in asked_once(request.groups, lambda each: each.group_id):
        try:
            context.require(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id)
            check_group_id(asked.group_id)
            yield (yield from _described(asked, context, look, room))
        except KafkaError as error:
            context.count_error(error.code)
            yield DescribeShareGroupOffsetsGroupResult(
                group_id=asked.group_id,
                topics=[],
                error_code=error.code,
                error_message=error.message,
            )


def _described(
    asked: DescribeShareGroupOffsetsGroup, context: Context, look: ProgressLook, room: AnswerRoom
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
            key = ShareKey(asked.group_id, topic.topic_id, index)
            partitions.append(_partition(key, look, refusal, context))
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
    key: ShareKey, look: ProgressLook, refusal: KafkaError | None, context: Context
) -> DescribeShareGroupOffsetsPartitionResult:
    found = ShareProgress(StateSummary(), None)
    try:
        if refusal is not None:
            raise refusal
        if key.topic_id != ZERO_UUID:
            image = context.services.topics.image
            found = look.of(SharePlace(key, image.require_by_id(key.topic_id, key.partition)))
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeShareGroupOffsetsPartitionResult(
            partition_index=key.partition,
            start_offset=UNINITIALIZED,
            leader_epoch=0,
            error_code=error.code,
            error_message=error.message,
        )
    return DescribeShareGroupOffsetsPartitionResult(
        partition_index=key.partition,
        start_offset=found.summary.start_offset,
        leader_epoch=found.summary.leader_epoch,
        lag=found.lag,
        error_code=0,
    )
