"""ReadShareGroupState 0: the state of share partitions (KIP-932).

From the leader of a partition to the share coordinator; clients do not send it.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, Int64, String, Uuid


@message
class StateBatch:
    """State and delivery count of a range of offsets, both ends included."""

    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_state: int = field(Int8, doc="0: available. 2: acknowledged. 4: archived")
    delivery_count: int = field(Int16)


@message
class ReadShareGroupStatePartition:
    """The epoch of the leader that reads."""

    partition: int = field(Int32)
    leader_epoch: int = field(Int32)


@message
class ReadShareGroupStateTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ReadShareGroupStatePartition] = field(Array(ReadShareGroupStatePartition))


@message(flexible_from=0)
class ReadShareGroupStateRequest:
    """Share partitions of one group."""

    group_id: str = field(String)
    topics: list[ReadShareGroupStateTopic] = field(Array(ReadShareGroupStateTopic))


@message
class ReadShareGroupStatePartitionResult:
    """State of one partition; the start offset is -1 before it is known."""

    partition: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    state_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    state_batches: list[StateBatch] = field(Array(StateBatch))


@message
class ReadShareGroupStateTopicResult:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ReadShareGroupStatePartitionResult] = field(
        Array(ReadShareGroupStatePartitionResult)
    )


@message(flexible_from=0)
class ReadShareGroupStateResponse:
    """Result of every partition."""

    results: list[ReadShareGroupStateTopicResult] = field(Array(ReadShareGroupStateTopicResult))


API = Api(84, "ReadShareGroupState", 0, 0, ReadShareGroupStateRequest, ReadShareGroupStateResponse)
