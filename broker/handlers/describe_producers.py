"""DescribeProducers: who writes to a partition, as far as the log remembers (KIP-664)."""

from broker.context import RequestContext
from protocol.apis.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from protocol.errors import KafkaError


def handle(request: DescribeProducersRequest, context: RequestContext) -> DescribeProducersResponse:
    """The remembered producers of each partition, idle ones too until they expire."""
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    _describe(topic.name, index, context) for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


def _describe(name: str, index: int, context: RequestContext) -> PartitionResponse:
    try:
        partition = context.broker.catalog.image.require(name, index)
    except KafkaError as error:
        context.count_error(error.code)
        return PartitionResponse(
            partition_index=index, error_code=error.code, error_message=error.message
        )
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.last_sequence,
                last_timestamp=entry.last_timestamp,
                coordinator_epoch=entry.coordinator_epoch,
                current_txn_start_offset=entry.txn_first_offset,
            )
            for producer_id, entry in partition.log.producers()
        ],
    )
