"""AlterPartitionReassignments 0-1: move replicas of partitions, or stop such a move (KIP-455).

0: flexible from the beginning. 1: the number of replicas may be forbidden to change (KIP-860).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, String


@message
class ReassignablePartition:
    """Target replicas of a partition; null ends a move that is going on."""

    partition_index: int = field(Int32)
    replicas: list[int] | None = field(Array(Int32), nullable=True)


@message
class ReassignableTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[ReassignablePartition] = field(Array(ReassignablePartition))


@message(flexible_from=0)
class AlterPartitionReassignmentsRequest:
    """Partitions to move."""

    timeout_ms: int = field(Int32, default=60_000)
    allow_replication_factor_change: bool = field(Boolean, since=1, default=True)
    topics: list[ReassignableTopic] = field(Array(ReassignableTopic))


@message
class ReassignablePartitionResponse:
    """Result of one partition."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)


@message
class ReassignableTopicResponse:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[ReassignablePartitionResponse] = field(Array(ReassignablePartitionResponse))


@message(flexible_from=0)
class AlterPartitionReassignmentsResponse:
    """The results by topic."""

    throttle_time_ms: int = field(Int32)
    allow_replication_factor_change: bool = field(Boolean, since=1, default=True)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    responses: list[ReassignableTopicResponse] = field(Array(ReassignableTopicResponse))


API = Api(
    45,
    "AlterPartitionReassignments",
    0,
    1,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
