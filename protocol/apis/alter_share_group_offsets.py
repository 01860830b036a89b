"""AlterShareGroupOffsets 0: set the start offsets of an empty share group (KIP-932)."""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, Uuid


@message
class AlterShareGroupOffsetsPartition:
    """Start offset for one partition."""

    partition_index: int = field(Int32)
    start_offset: int = field(Int64)


@message
class AlterShareGroupOffsetsTopic:
    """The partitions of one topic."""

    topic_name: str = field(String)
    partitions: list[AlterShareGroupOffsetsPartition] = field(
        Array(AlterShareGroupOffsetsPartition)
    )


@message(flexible_from=0)
class AlterShareGroupOffsetsRequest:
    """Start offsets of one group; a group that does not exist is made."""

    group_id: str = field(String)
    topics: list[AlterShareGroupOffsetsTopic] = field(Array(AlterShareGroupOffsetsTopic))


@message
class AlterShareGroupOffsetsPartitionResult:
    """Result of one partition."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message
class AlterShareGroupOffsetsTopicResult:
    """The partitions of one topic."""

    topic_name: str = field(String)
    topic_id: UUID = field(Uuid)
    partitions: list[AlterShareGroupOffsetsPartitionResult] = field(
        Array(AlterShareGroupOffsetsPartitionResult)
    )


@message(flexible_from=0)
class AlterShareGroupOffsetsResponse:
    """Result of the group, then of every partition."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    responses: list[AlterShareGroupOffsetsTopicResult] = field(
        Array(AlterShareGroupOffsetsTopicResult)
    )


API = Api(
    91,
    "AlterShareGroupOffsets",
    0,
    0,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
