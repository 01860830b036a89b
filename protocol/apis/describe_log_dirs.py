"""DescribeLogDirs 0-5: the data directories and their contents (KIP-113).

0. 1: throttling after the answer. 2: flexible. 3: an error for the whole answer. 4: size and free
space of the volume (KIP-827). 5: cordoned directories (KIP-1066).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, Int64, String


@message
class DescribableLogDirTopic:
    """The partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=2)
class DescribeLogDirsRequest:
    """The partitions to look for; None is all."""

    topics: list[DescribableLogDirTopic] | None = field(
        Array(DescribableLogDirTopic), nullable=True
    )


@message
class DescribeLogDirsPartition:
    """One log: its size in bytes, and how far it is behind the high watermark."""

    partition_index: int = field(Int32)
    partition_size: int = field(Int64)
    offset_lag: int = field(Int64)
    is_future_key: bool = field(Boolean)


@message
class DescribeLogDirsTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[DescribeLogDirsPartition] = field(Array(DescribeLogDirsPartition))


@message
class DescribeLogDirsResult:
    """One directory; sizes in bytes, -1 when unknown."""

    error_code: int = field(Int16)
    log_dir: str = field(String)
    topics: list[DescribeLogDirsTopic] = field(Array(DescribeLogDirsTopic))
    total_bytes: int = field(Int64, since=4, default=-1)
    usable_bytes: int = field(Int64, since=4, default=-1)
    is_cordoned: bool = field(Boolean, since=5)


@message(flexible_from=2)
class DescribeLogDirsResponse:
    """The directories."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, since=3)
    results: list[DescribeLogDirsResult] = field(Array(DescribeLogDirsResult))


API = Api(35, "DescribeLogDirs", 0, 5, DescribeLogDirsRequest, DescribeLogDirsResponse)
