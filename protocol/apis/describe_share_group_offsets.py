"""DescribeShareGroupOffsets 0-1: start offsets and lag of share partitions (KIP-932).

0. 1: the lag (KIP-1226).
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, Uuid


@message
class DescribeShareGroupOffsetsTopic:
    """Partitions of one topic."""

    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class DescribeShareGroupOffsetsGroup:
    """A group; without topics, all that it has."""

    group_id: str = field(String)
    topics: list[DescribeShareGroupOffsetsTopic] | None = field(
        Array(DescribeShareGroupOffsetsTopic), nullable=True
    )


@message(flexible_from=0)
class DescribeShareGroupOffsetsRequest:
    """The groups to describe."""

    groups: list[DescribeShareGroupOffsetsGroup] = field(Array(DescribeShareGroupOffsetsGroup))


@message
class DescribeShareGroupOffsetsPartitionResult:
    """Start offset and lag of one partition, -1 where they are not known."""

    partition_index: int = field(Int32)
    start_offset: int = field(Int64)
    leader_epoch: int = field(Int32)
    lag: int = field(Int64, since=1, default=-1)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message
class DescribeShareGroupOffsetsTopicResult:
    """The partitions of one topic."""

    topic_name: str = field(String)
    topic_id: UUID = field(Uuid)
    partitions: list[DescribeShareGroupOffsetsPartitionResult] = field(
        Array(DescribeShareGroupOffsetsPartitionResult)
    )


@message
class DescribeShareGroupOffsetsGroupResult:
    """One group."""

    group_id: str = field(String)
    topics: list[DescribeShareGroupOffsetsTopicResult] = field(
        Array(DescribeShareGroupOffsetsTopicResult)
    )
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message(flexible_from=0)
class DescribeShareGroupOffsetsResponse:
    """Result of every group."""

    throttle_time_ms: int = field(Int32)
    groups: list[DescribeShareGroupOffsetsGroupResult] = field(
        Array(DescribeShareGroupOffsetsGroupResult)
    )


API = Api(
    90,
    "DescribeShareGroupOffsets",
    0,
    1,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
