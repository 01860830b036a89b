"""ListPartitionReassignments 0: which replicas are being moved (KIP-455)."""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String


@message
class ListPartitionReassignmentsTopics:
    """Partitions of one topic."""

    name: str = field(String)
    partition_indexes: list[int] = field(Array(Int32))


@message(flexible_from=0)
class ListPartitionReassignmentsRequest:
    """Partitions to list; null means every partition."""

    timeout_ms: int = field(Int32, default=60_000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        Array(ListPartitionReassignmentsTopics), nullable=True
    )


@message
class OngoingPartitionReassignment:
    """A partition whose replicas are being moved."""

    partition_index: int = field(Int32)
    replicas: list[int] = field(Array(Int32))
    adding_replicas: list[int] = field(Array(Int32))
    removing_replicas: list[int] = field(Array(Int32))


@message
class OngoingTopicReassignment:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[OngoingPartitionReassignment] = field(Array(OngoingPartitionReassignment))


@message(flexible_from=0)
class ListPartitionReassignmentsResponse:
    """Reassignments that are going on."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    topics: list[OngoingTopicReassignment] = field(Array(OngoingTopicReassignment))


API = Api(
    46,
    "ListPartitionReassignments",
    0,
    0,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
