"""CreatePartitions 0-3: give topics more partitions.

0. 1: throttling after the answer. 2: flexible. 3: the answer may hold THROTTLING_QUOTA_EXCEEDED.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, String


@message
class CreatePartitionsAssignment:
    """Replicas of one new partition."""

    broker_ids: list[int] = field(Array(Int32))


@message
class CreatePartitionsTopic:
    """A topic and the number of partitions it shall have in all."""

    name: str = field(String)
    count: int = field(Int32)
    assignments: list[CreatePartitionsAssignment] | None = field(
        Array(CreatePartitionsAssignment), nullable=True
    )


@message(flexible_from=2)
class CreatePartitionsRequest:
    """The topics to enlarge."""

    topics: list[CreatePartitionsTopic] = field(Array(CreatePartitionsTopic))
    timeout_ms: int = field(Int32)
    validate_only: bool = field(Boolean)


@message
class CreatePartitionsTopicResult:
    """Result of one topic."""

    name: str = field(String)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)


@message(flexible_from=2)
class CreatePartitionsResponse:
    """Result of each topic."""

    throttle_time_ms: int = field(Int32)
    results: list[CreatePartitionsTopicResult] = field(Array(CreatePartitionsTopicResult))


API = Api(37, "CreatePartitions", 0, 3, CreatePartitionsRequest, CreatePartitionsResponse)
