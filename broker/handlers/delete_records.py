"""DeleteRecords: raises the log start offset; records below are invisible at once, deleted
later.
"""

from functools import partial
from typing import NamedTuple

from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.topics.names import check_not_internal
from broker.topics.topic_catalog import TopicCatalog
from protocol.acls import AclOperation, ResourceType
from protocol.apis.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from protocol.errors import ErrorCode, KafkaError

HIGH_WATERMARK = -1
NO_OFFSET = -1

Answer = DeleteRecordsPartitionResult | Deferred[DeleteRecordsPartitionResult]


class Services(NamedTuple):
    """The services that the answer is made with."""

    topics: TopicCatalog
    probes: BrokerProbes


Context = RequestContext[Services]
Wanted = dict[str, dict[int, DeleteRecordsPartition]]
"""Partitions by topic and index."""


def handle(
    request: DeleteRecordsRequest, context: Context
) -> DeleteRecordsResponse | Deferred[DeleteRecordsResponse]:
    """One result per partition: the new low watermark, or why nothing changed."""
    context.asks(AclOperation.DELETE, ResourceType.TOPIC)
    wanted = _once(request)
    answers = [
        _delete(name, each, context) for name, found in wanted.items() for each in found.values()
    ]
    return gather(answers, partial(_respond, wanted))


def _once(request: DeleteRecordsRequest) -> Wanted:
    """Of a partition that is named twice the last one counts, as with Kafka; it has one answer."""
    found: Wanted = {}
    for topic in request.topics:
        of_topic = found.setdefault(topic.name, {})
        of_topic.update({each.partition_index: each for each in topic.partitions})
    return found


def _delete(name: str, wanted: DeleteRecordsPartition, context: Context) -> Answer:
    index = wanted.partition_index
    try:
        context.require(AclOperation.DELETE, ResourceType.TOPIC, name)
        partition = context.services.topics.image.require(name, index)
        partition.check_leads()
        check_not_internal(name, context.services.topics.internal_topics)
        offset = _checked_offset(partition, wanted.offset)
    except KafkaError as error:
        return _refusal(index, context, error)
    low_watermark = partition.writer.delete_records(offset)
    return after(low_watermark, partial(_success, index), partial(_refusal, index, context))


def _checked_offset(partition: Partition, offset: int) -> int:
    policy = partition.log.config.cleanup_policy
    if "compact" in policy and "delete" not in policy:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            "Records of a compacted topic without policy delete cannot be deleted",
        )
    high_watermark = partition.log.snapshot.high_watermark
    if offset == HIGH_WATERMARK:
        return high_watermark
    if not 0 <= offset <= high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {offset} is not between 0 and the high watermark {high_watermark}",
        )
    return offset


def _success(index: int, low_watermark: int) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _refusal(index: int, context: Context, error: KafkaError) -> DeleteRecordsPartitionResult:
    context.count_error(error.code)
    return DeleteRecordsPartitionResult(
        partition_index=index, low_watermark=NO_OFFSET, error_code=error.code
    )


def _respond(wanted: Wanted, answers: list[DeleteRecordsPartitionResult]) -> DeleteRecordsResponse:
    rest = iter(answers)
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(name=name, partitions=[next(rest) for _ in found])
            for name, found in wanted.items()
        ]
    )
