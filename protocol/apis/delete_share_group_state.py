"""DeleteShareGroupState 0: forget the state of share partitions (KIP-932).

From the group coordinator to the share coordinator; clients do not send it.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String, Uuid


@message
class DeleteShareGroupStatePartition:
    """One partition."""

    partition: int = field(Int32)


@message
class DeleteShareGroupStateTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[DeleteShareGroupStatePartition] = field(Array(DeleteShareGroupStatePartition))


@message(flexible_from=0)
class DeleteShareGroupStateRequest:
    """Share partitions of one group."""

    group_id: str = field(String)
    topics: list[DeleteShareGroupStateTopic] = field(Array(DeleteShareGroupStateTopic))


@message
class DeleteShareGroupStatePartitionResult:
    """Result of one partition."""

    partition: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message
class DeleteShareGroupStateTopicResult:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[DeleteShareGroupStatePartitionResult] = field(
        Array(DeleteShareGroupStatePartitionResult)
    )


@message(flexible_from=0)
class DeleteShareGroupStateResponse:
    """Result of every partition."""

    results: list[DeleteShareGroupStateTopicResult] = field(Array(DeleteShareGroupStateTopicResult))


API = Api(
    86, "DeleteShareGroupState", 0, 0, DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
)
