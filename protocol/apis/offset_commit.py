"""OffsetCommit 2-10: how far a group has come.

2. 3: throttle time. 4: throttling after the answer. 5: no retention time any more (KIP-211).
6: leader epoch of the record before (KIP-320). 7: static members (KIP-345). 8: flexible. 9: members
of the new protocol (KIP-848). 10: topic ids in place of names.

Absent: 0 and 1, which wrote to ZooKeeper or carried a time for each offset; Kafka 4 dropped them.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, Uuid


@message
class OffsetCommitRequestPartition:
    """The next offset that the group will read of a partition."""

    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, since=6, default=-1)
    committed_metadata: str | None = field(String, nullable=True)


@message
class OffsetCommitRequestTopic:
    """The partitions of one topic."""

    name: str = field(String, until=9)
    topic_id: UUID = field(Uuid, since=10)
    partitions: list[OffsetCommitRequestPartition] = field(Array(OffsetCommitRequestPartition))


@message(flexible_from=8)
class OffsetCommitRequest:
    """Offsets to commit; a generation of -1 belongs to a consumer outside of any membership."""

    group_id: str = field(String)
    generation_id_or_member_epoch: int = field(Int32, default=-1)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=7, nullable=True)
    retention_time_ms: int = field(Int64, since=2, until=4, default=-1)
    topics: list[OffsetCommitRequestTopic] = field(Array(OffsetCommitRequestTopic))


@message
class OffsetCommitResponsePartition:
    """Result of one offset."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@message
class OffsetCommitResponseTopic:
    """The partitions of one topic."""

    name: str = field(String, until=9)
    topic_id: UUID = field(Uuid, since=10)
    partitions: list[OffsetCommitResponsePartition] = field(Array(OffsetCommitResponsePartition))


@message(flexible_from=8)
class OffsetCommitResponse:
    """Result of every offset."""

    throttle_time_ms: int = field(Int32, since=3)
    topics: list[OffsetCommitResponseTopic] = field(Array(OffsetCommitResponseTopic))


API = Api(8, "OffsetCommit", 2, 10, OffsetCommitRequest, OffsetCommitResponse)
