"""DeleteRecords 0-2: move the start of logs forward (KIP-107).

0. 1: throttling after the answer. 2: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String


@message
class DeleteRecordsPartition:
    """All before `offset` goes; -1 is the high watermark."""

    partition_index: int = field(Int32)
    offset: int = field(Int64)


@message
class DeleteRecordsTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[DeleteRecordsPartition] = field(Array(DeleteRecordsPartition))


@message(flexible_from=2)
class DeleteRecordsRequest:
    """The partitions to shorten."""

    topics: list[DeleteRecordsTopic] = field(Array(DeleteRecordsTopic))
    timeout_ms: int = field(Int32)


@message
class DeleteRecordsPartitionResult:
    """The first offset that is left."""

    partition_index: int = field(Int32)
    low_watermark: int = field(Int64)
    error_code: int = field(Int16)


@message
class DeleteRecordsTopicResult:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[DeleteRecordsPartitionResult] = field(Array(DeleteRecordsPartitionResult))


@message(flexible_from=2)
class DeleteRecordsResponse:
    """Result of each partition."""

    throttle_time_ms: int = field(Int32)
    topics: list[DeleteRecordsTopicResult] = field(Array(DeleteRecordsTopicResult))


API = Api(21, "DeleteRecords", 0, 2, DeleteRecordsRequest, DeleteRecordsResponse)
