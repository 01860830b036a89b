"""Fetch 0-18: read records from given offsets on.

0: answers in format 0. 1: throttle time. 2: answers in format 1. 3: a limit for the whole answer,
and a first message that exceeds it comes whole (KIP-74). 4: format v2, isolation level. 5: log
start offset. 6: the answer may hold KAFKA_STORAGE_ERROR. 7: incremental fetch sessions (KIP-227).
8: throttling after the answer. 9: the leader epoch fences (KIP-320). 10: zstd. 11: racks and
preferred replica (KIP-392). 12: flexible; diverging epochs. 13: topic ids in place of names
(KIP-516). 14: tiered storage errors. 15: the replica's epoch, in a tagged field. 16: the present
leader in the answer (KIP-951). 17: directory ids of replicas. 18: high watermark of replicas.
"""

from typing import Any
from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, Int64, Records, String, Uuid

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1


@message
class ReplicaState:
    """Identity of the replica that asks; consumers leave it out."""

    replica_id: int = field(Int32, since=15, default=-1)
    replica_epoch: int = field(Int64, since=15, default=-1)


@message
class FetchPartition:
    """From where to read one partition, and how many bytes at most."""

    partition: int = field(Int32)
    current_leader_epoch: int = field(Int32, since=9, default=-1)
    fetch_offset: int = field(Int64)
    last_fetched_epoch: int = field(Int32, since=12, default=-1)
    log_start_offset: int = field(Int64, since=5, default=-1)
    partition_max_bytes: int = field(Int32)
    replica_directory_id: UUID = field(Uuid, since=17, tag=0)
    high_watermark: int = field(Int64, since=18, tag=1, default=MAX_INT64)


@message
class FetchTopic:
    """The partitions of one topic."""

    topic: str = field(String, until=12)
    topic_id: UUID = field(Uuid, since=13)
    partitions: list[FetchPartition] = field(Array(FetchPartition))


@message
class ForgottenTopic:
    """Partitions to drop from the session."""

    topic: str = field(String, since=7, until=12)
    topic_id: UUID = field(Uuid, since=13)
    partitions: list[int] = field(Array(Int32), since=7)


@message(flexible_from=12)
class FetchRequest:
    """Partitions to read, and how long to wait for `min_bytes` of them."""

    cluster_id: str | None = field(String, since=12, nullable=True, tag=0)
    replica_id: int = field(Int32, until=14, default=-1)
    replica_state: ReplicaState | None = field(ReplicaState, since=15, tag=1)
    max_wait_ms: int = field(Int32)
    min_bytes: int = field(Int32)
    max_bytes: int = field(Int32, since=3, default=MAX_INT32)
    isolation_level: int = field(Int8, since=4, doc="0: all records. 1: committed ones only")
    session_id: int = field(Int32, since=7)
    session_epoch: int = field(Int32, since=7, default=-1)
    topics: list[FetchTopic] = field(Array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(Array(ForgottenTopic), since=7)
    rack_id: str = field(String, since=11)


@message
class EpochEndOffset:
    """End of the epoch where the log of the asker parts from ours."""

    epoch: int = field(Int32, since=12, default=-1)
    end_offset: int = field(Int64, since=12, default=-1)


@message
class LeaderIdAndEpoch:
    """The leader of a partition, for a client that asked another broker."""

    leader_id: int = field(Int32, since=12, default=-1)
    leader_epoch: int = field(Int32, since=12, default=-1)


@message
class SnapshotId:
    """The snapshot to fetch in place of the log."""

    end_offset: int = field(Int64, since=12, default=-1)
    epoch: int = field(Int32, since=12, default=-1)


@message
class AbortedTransaction:
    """A transaction whose records a reader of committed ones skips."""

    producer_id: int = field(Int64, since=4)
    first_offset: int = field(Int64, since=4)


@message
class PartitionData:
    """Result of one partition; `records` is any buffer, or any object with a length."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    high_watermark: int = field(Int64)
    last_stable_offset: int = field(Int64, since=4, default=-1)
    log_start_offset: int = field(Int64, since=5, default=-1)
    diverging_epoch: EpochEndOffset | None = field(EpochEndOffset, since=12, tag=0)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, since=12, tag=1)
    snapshot_id: SnapshotId | None = field(SnapshotId, since=12, tag=2)
    aborted_transactions: list[AbortedTransaction] | None = field(
        Array(AbortedTransaction), since=4, nullable=True
    )
    preferred_read_replica: int = field(Int32, since=11, default=-1)
    records: Any = field(Records, nullable=True)


@message
class FetchableTopicResponse:
    """The partitions of one topic."""

    topic: str = field(String, until=12)
    topic_id: UUID = field(Uuid, since=13)
    partitions: list[PartitionData] = field(Array(PartitionData))


@message
class NodeEndpoint:
    """The address of a broker named as leader."""

    node_id: int = field(Int32, since=16)
    host: str = field(String, since=16)
    port: int = field(Int32, since=16)
    rack: str | None = field(String, since=16, nullable=True)


@message(flexible_from=12)
class FetchResponse:
    """Result of every partition."""

    throttle_time_ms: int = field(Int32, since=1)
    error_code: int = field(Int16, since=7)
    session_id: int = field(Int32, since=7)
    responses: list[FetchableTopicResponse] = field(Array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint), since=16, tag=0)


API = Api(1, "Fetch", 0, 18, FetchRequest, FetchResponse)
