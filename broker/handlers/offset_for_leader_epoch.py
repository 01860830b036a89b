"""OffsetForLeaderEpoch: where an epoch ended, so that a consumer notices a log that was cut."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from protocol.errors import KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: OffsetForLeaderEpochRequest, context: Context
) -> OffsetForLeaderEpochResponse | Deferred[OffsetForLeaderEpochResponse]:
    """For each partition the largest epoch up to the one asked for, and its end offset."""
    return context.services.answers.make(
        partial(_topics, request, context),
        lambda topics: OffsetForLeaderEpochResponse(topics=topics),
        beside=True,
    )


def _topics(
    request: OffsetForLeaderEpochRequest, context: Context, _: AnswerRoom
) -> Iterator[OffsetForLeaderTopicResult | None]:
    is_replica = context.sees(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    for topic in request.topics:
        answers: list[EpochEndOffset] = []
        for each in topic.partitions:
            answers.append(_answer(topic.topic, each, context, is_replica=is_replica))
            yield None
        yield OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers)


def _answer(
    name: str, query: OffsetForLeaderPartition, context: Context, *, is_replica: bool
) -> EpochEndOffset:
    try:
        if not is_replica:
            context.require(AclOperation.DESCRIBE, ResourceType.TOPIC, name)
        partition = context.services.topics.image.require(name, query.partition)
        partition.check_leader_epoch(query.current_leader_epoch)
        epoch, end_offset = partition.epoch_end_offset(query.leader_epoch)
    except KafkaError as error:
        context.count_error(error.code)
        return EpochEndOffset(error_code=error.code, partition=query.partition)
    return EpochEndOffset(partition=query.partition, leader_epoch=epoch, end_offset=end_offset)
