"""OffsetForLeaderEpoch: where an epoch ended, so that a consumer notices a log that was cut."""

from broker.requests.services import HandlerContext
from protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from protocol.errors import KafkaError


def handle(
    request: OffsetForLeaderEpochRequest, context: HandlerContext
) -> OffsetForLeaderEpochResponse:
    """For each partition the largest epoch up to the one asked for, and its end offset."""
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(topic.topic, each, context) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(name: str, query: OffsetForLeaderPartition, context: HandlerContext) -> EpochEndOffset:
    try:
        partition = context.broker.catalog.image.require(name, query.partition)
        partition.check_leader_epoch(query.current_leader_epoch)
        epoch, end_offset = partition.epoch_end_offset(query.leader_epoch)
    except KafkaError as error:
        context.count_error(error.code)
        return EpochEndOffset(error_code=error.code, partition=query.partition)
    return EpochEndOffset(partition=query.partition, leader_epoch=epoch, end_offset=end_offset)
