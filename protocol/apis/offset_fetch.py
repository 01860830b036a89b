"""OffsetFetch 1-10: how far groups have come.

1. 2: all partitions of a group at once; an error for the group. 3: throttle time. 4: throttling
after the answer. 5: leader epoch (KIP-320). 6: flexible. 7: only stable offsets (KIP-447). 8: many
groups (KIP-709). 9: members of the new protocol (KIP-848). 10: topic ids in place of names.

Absent: 0, which read from ZooKeeper; Kafka 4 dropped it.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, Int64, String, Uuid


@message
class OffsetFetchRequestTopic:
    """Partitions of one topic."""

    name: str = field(String, until=7)
    partition_indexes: list[int] = field(Array(Int32), until=7)


@message
class OffsetFetchRequestTopics:
    """Partitions of one topic, for one group of several."""

    name: str = field(String, since=8, until=9)
    topic_id: UUID = field(Uuid, since=10)
    partition_indexes: list[int] = field(Array(Int32), since=8)


@message
class OffsetFetchRequestGroup:
    """One group of several; no list of topics means all that it has."""

    group_id: str = field(String, since=8)
    member_id: str | None = field(String, since=9, nullable=True)
    member_epoch: int = field(Int32, since=9, default=-1)
    topics: list[OffsetFetchRequestTopics] | None = field(
        Array(OffsetFetchRequestTopics), since=8, nullable=True
    )


@message(flexible_from=6)
class OffsetFetchRequest:
    """The group, or from version 8 on the groups, to tell of."""

    group_id: str = field(String, until=7)
    topics: list[OffsetFetchRequestTopic] | None = field(
        Array(OffsetFetchRequestTopic), until=7, nullable=2
    )
    groups: list[OffsetFetchRequestGroup] = field(Array(OffsetFetchRequestGroup), since=8)
    require_stable: bool = field(Boolean, since=7)


@message
class OffsetFetchResponsePartition:
    """The offset of one partition; -1 when there is none."""

    partition_index: int = field(Int32, until=7)
    committed_offset: int = field(Int64, until=7)
    committed_leader_epoch: int = field(Int32, since=5, until=7, default=-1)
    metadata: str | None = field(String, until=7, nullable=True)
    error_code: int = field(Int16, until=7)


@message
class OffsetFetchResponseTopic:
    """The partitions of one topic."""

    name: str = field(String, until=7)
    partitions: list[OffsetFetchResponsePartition] = field(
        Array(OffsetFetchResponsePartition), until=7
    )


@message
class OffsetFetchResponsePartitions:
    """The offset of one partition; -1 when there is none."""

    partition_index: int = field(Int32, since=8)
    committed_offset: int = field(Int64, since=8)
    committed_leader_epoch: int = field(Int32, since=8, default=-1)
    metadata: str | None = field(String, since=8, nullable=True)
    error_code: int = field(Int16, since=8)


@message
class OffsetFetchResponseTopics:
    """The partitions of one topic."""

    name: str = field(String, since=8, until=9)
    topic_id: UUID = field(Uuid, since=10)
    partitions: list[OffsetFetchResponsePartitions] = field(
        Array(OffsetFetchResponsePartitions), since=8
    )


@message
class OffsetFetchResponseGroup:
    """The offsets of one group."""

    group_id: str = field(String, since=8)
    topics: list[OffsetFetchResponseTopics] = field(Array(OffsetFetchResponseTopics), since=8)
    error_code: int = field(Int16, since=8)


@message(flexible_from=6)
class OffsetFetchResponse:
    """The offsets of one group, or from version 8 on of several."""

    throttle_time_ms: int = field(Int32, since=3)
    topics: list[OffsetFetchResponseTopic] = field(Array(OffsetFetchResponseTopic), until=7)
    error_code: int = field(Int16, since=2, until=7)
    groups: list[OffsetFetchResponseGroup] = field(Array(OffsetFetchResponseGroup), since=8)


API = Api(9, "OffsetFetch", 1, 10, OffsetFetchRequest, OffsetFetchResponse)
