"""InitializeShareGroupState 0: begin the state of share partitions (KIP-932).

From the group coordinator to the share coordinator; clients do not send it.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, Uuid


@message
class InitializeShareGroupStatePartition:
    """The epoch of the state; where it starts, -1 when that is not known yet."""

    partition: int = field(Int32)
    state_epoch: int = field(Int32)
    start_offset: int = field(Int64)


@message
class InitializeShareGroupStateTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[InitializeShareGroupStatePartition] = field(
        Array(InitializeShareGroupStatePartition)
    )


@message(flexible_from=0)
class InitializeShareGroupStateRequest:
    """Share partitions of one group."""

    group_id: str = field(String)
    topics: list[InitializeShareGroupStateTopic] = field(Array(InitializeShareGroupStateTopic))


@message
class InitializeShareGroupStatePartitionResult:
    """Result of one partition."""

    partition: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message
class InitializeShareGroupStateTopicResult:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[InitializeShareGroupStatePartitionResult] = field(
        Array(InitializeShareGroupStatePartitionResult)
    )


@message(flexible_from=0)
class InitializeShareGroupStateResponse:
    """Result of every partition."""

    results: list[InitializeShareGroupStateTopicResult] = field(
        Array(InitializeShareGroupStateTopicResult)
    )


API = Api(
    83,
    "InitializeShareGroupState",
    0,
    0,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
