"""ElectLeaders 0-2: elects leaders of partitions again (KIP-183, KIP-460).

0: the preferred replica only. 1: the kind of election, an error for the whole request. 2: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message
class TopicPartitions:
    """Partitions of one topic."""

    topic: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=2)
class ElectLeadersRequest:
    """Partitions to elect leaders of; null means every partition."""

    election_type: int = field(Int8, since=1, doc="0 preferred replica, 1 unclean")
    topic_partitions: list[TopicPartitions] | None = field(Array(TopicPartitions), nullable=True)
    timeout_ms: int = field(Int32, default=60_000)


@message
class PartitionResult:
    """Result of one election."""

    partition_id: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)


@message
class ReplicaElectionResult:
    """The partitions of one topic."""

    topic: str = field(String)
    partition_result: list[PartitionResult] = field(Array(PartitionResult))


@message(flexible_from=2)
class ElectLeadersResponse:
    """The results by topic."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16, since=1)
    replica_election_results: list[ReplicaElectionResult] = field(Array(ReplicaElectionResult))


API = Api(43, "ElectLeaders", 0, 2, ElectLeadersRequest, ElectLeadersResponse)
