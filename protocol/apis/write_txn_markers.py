"""WriteTxnMarkers 1-2: transactions are ended in partitions, by who coordinates or repairs them.

1: flexible. 2: which version of the transaction protocol says so (KIP-890). Tools use it to end a
transaction that nobody else ends (KIP-664).

Absent: 0, which Kafka 4 dropped.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, Int64, String


@message
class WritableTxnMarkerTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message
class WritableTxnMarker:
    """End of one producer's transaction."""

    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    transaction_result: bool = field(Boolean, doc="true: commit")
    topics: list[WritableTxnMarkerTopic] = field(Array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(Int32)
    transaction_version: int = field(Int8, since=2)


@message(flexible_from=1)
class WriteTxnMarkersRequest:
    """The markers to write."""

    markers: list[WritableTxnMarker] = field(Array(WritableTxnMarker))


@message
class WritableTxnMarkerPartitionResult:
    """Result of one marker."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@message
class WritableTxnMarkerTopicResult:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[WritableTxnMarkerPartitionResult] = field(
        Array(WritableTxnMarkerPartitionResult)
    )


@message
class WritableTxnMarkerResult:
    """The partitions of one producer."""

    producer_id: int = field(Int64)
    topics: list[WritableTxnMarkerTopicResult] = field(Array(WritableTxnMarkerTopicResult))


@message(flexible_from=1)
class WriteTxnMarkersResponse:
    """Result of every marker."""

    markers: list[WritableTxnMarkerResult] = field(Array(WritableTxnMarkerResult))


API = Api(27, "WriteTxnMarkers", 1, 2, WriteTxnMarkersRequest, WriteTxnMarkersResponse)
