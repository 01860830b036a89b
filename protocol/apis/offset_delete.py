"""OffsetDelete 0: forget how far a group has come in some partitions (KIP-496)."""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String


@message
class OffsetDeleteRequestPartition:
    """One partition."""

    partition_index: int = field(Int32)


@message
class OffsetDeleteRequestTopic:
    """Partitions of one topic."""

    name: str = field(String)
    partitions: list[OffsetDeleteRequestPartition] = field(Array(OffsetDeleteRequestPartition))


@message(flexible_from=None)
class OffsetDeleteRequest:
    """Offsets to delete."""

    group_id: str = field(String)
    topics: list[OffsetDeleteRequestTopic] = field(Array(OffsetDeleteRequestTopic))


@message
class OffsetDeleteResponsePartition:
    """Result of one partition's offset."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@message
class OffsetDeleteResponseTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[OffsetDeleteResponsePartition] = field(Array(OffsetDeleteResponsePartition))


@message(flexible_from=None)
class OffsetDeleteResponse:
    """Result of every offset."""

    error_code: int = field(Int16)
    throttle_time_ms: int = field(Int32)
    topics: list[OffsetDeleteResponseTopic] = field(Array(OffsetDeleteResponseTopic))


API = Api(47, "OffsetDelete", 0, 0, OffsetDeleteRequest, OffsetDeleteResponse)
