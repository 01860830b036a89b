"""DescribeProducers 0: the idempotent and transactional producers a partition remembers (KIP-664).

Flexible from the start.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String


@message
class TopicRequest:
    """The partitions of one topic."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message(flexible_from=0)
class DescribeProducersRequest:
    """The partitions to describe."""

    topics: list[TopicRequest] = field(Array(TopicRequest))


@message
class ProducerState:
    """One producer; `current_txn_start_offset` is -1 without an open transaction."""

    producer_id: int = field(Int64)
    producer_epoch: int = field(Int32)
    last_sequence: int = field(Int32, default=-1)
    last_timestamp: int = field(Int64, default=-1)
    coordinator_epoch: int = field(Int32)
    current_txn_start_offset: int = field(Int64, default=-1)


@message
class PartitionResponse:
    """The producers of one partition."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    active_producers: list[ProducerState] = field(Array(ProducerState))


@message
class TopicResponse:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[PartitionResponse] = field(Array(PartitionResponse))


@message(flexible_from=0)
class DescribeProducersResponse:
    """The producers of each partition."""

    throttle_time_ms: int = field(Int32)
    topics: list[TopicResponse] = field(Array(TopicResponse))


API = Api(61, "DescribeProducers", 0, 0, DescribeProducersRequest, DescribeProducersResponse)
