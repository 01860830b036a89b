"""ReadShareGroupStateSummary 0-1: epochs and start of share partitions (KIP-932).

0. 1: the number of finished offsets (KIP-1226). From the group coordinator to the share
coordinator; clients do not send it.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, Uuid


@message
class ReadShareGroupStateSummaryPartition:
    """The epoch of the leader that reads."""

    partition: int = field(Int32)
    leader_epoch: int = field(Int32)


@message
class ReadShareGroupStateSummaryTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ReadShareGroupStateSummaryPartition] = field(
        Array(ReadShareGroupStateSummaryPartition)
    )


@message(flexible_from=0)
class ReadShareGroupStateSummaryRequest:
    """Share partitions of one group."""

    group_id: str = field(String)
    topics: list[ReadShareGroupStateSummaryTopic] = field(Array(ReadShareGroupStateSummaryTopic))


@message
class ReadShareGroupStateSummaryPartitionResult:
    """Epochs and start offset of one partition, without its batches."""

    partition: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    state_epoch: int = field(Int32)
    leader_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    delivery_complete_count: int = field(Int32, since=1, default=-1)


@message
class ReadShareGroupStateSummaryTopicResult:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ReadShareGroupStateSummaryPartitionResult] = field(
        Array(ReadShareGroupStateSummaryPartitionResult)
    )


@message(flexible_from=0)
class ReadShareGroupStateSummaryResponse:
    """Result of every partition."""

    results: list[ReadShareGroupStateSummaryTopicResult] = field(
        Array(ReadShareGroupStateSummaryTopicResult)
    )


API = Api(
    87,
    "ReadShareGroupStateSummary",
    0,
    1,
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
