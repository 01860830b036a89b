"""DescribeQuorum 0-2: the voters of the metadata and how far each is (KIP-595).

1: times of the last fetch and of catching up (KIP-836). 2: messages of errors, directories and
addresses of the voters (KIP-853).
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, UInt16, Uuid
from protocol.wire import ZERO_UUID


@message(flexible_from=0)
class QuorumPartition:
    """A partition of the metadata; there is one."""

    partition_index: int = field(Int32)


@message(flexible_from=0)
class QuorumTopic:
    """The topic of the metadata."""

    topic_name: str = field(String)
    partitions: list[QuorumPartition] = field(Array(QuorumPartition))


@message(flexible_from=0)
class DescribeQuorumRequest:
    """The partitions to describe."""

    topics: list[QuorumTopic] = field(Array(QuorumTopic))


@message(flexible_from=0)
class ReplicaState:
    """A voter or observer. Times in ms by the leader's clock, -1 when unknown."""

    replica_id: int = field(Int32)
    replica_directory_id: UUID = field(Uuid, since=2, default=ZERO_UUID)
    log_end_offset: int = field(Int64)
    last_fetch_timestamp: int = field(Int64, since=1, default=-1)
    last_caught_up_timestamp: int = field(Int64, since=1, default=-1)


@message(flexible_from=0)
class QuorumPartitionData:
    """One partition: its leader, and everybody who follows."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, since=2, nullable=True, default="")
    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)
    high_watermark: int = field(Int64)
    current_voters: list[ReplicaState] = field(Array(ReplicaState))
    observers: list[ReplicaState] = field(Array(ReplicaState))


@message(flexible_from=0)
class QuorumTopicData:
    """The topic of the metadata."""

    topic_name: str = field(String)
    partitions: list[QuorumPartitionData] = field(Array(QuorumPartitionData))


@message(flexible_from=0)
class QuorumListener:
    """An address of a voter."""

    name: str = field(String, since=2)
    host: str = field(String, since=2)
    port: int = field(UInt16, since=2)


@message(flexible_from=0)
class QuorumNode:
    """A voter's addresses."""

    node_id: int = field(Int32, since=2)
    listeners: list[QuorumListener] = field(Array(QuorumListener), since=2)


@message(flexible_from=0)
class DescribeQuorumResponse:
    """The state of each partition that was asked for."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, since=2, nullable=True, default="")
    topics: list[QuorumTopicData] = field(Array(QuorumTopicData))
    nodes: list[QuorumNode] = field(Array(QuorumNode), since=2)


API = Api(55, "DescribeQuorum", 0, 2, DescribeQuorumRequest, DescribeQuorumResponse)
