"""WriteShareGroupState 0-1: changes of the state of share partitions (KIP-932).

0. 1: the number of finished offsets (KIP-1226). From the leader of a partition to the share
coordinator; clients do not send it.
"""

from uuid import UUID

from protocol.api import Api
from protocol.apis.read_share_group_state import StateBatch
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String, Uuid


@message
class WriteShareGroupStatePartition:
    """Changes of one partition; a start offset of -1 leaves it as it is."""

    partition: int = field(Int32)
    state_epoch: int = field(Int32)
    leader_epoch: int = field(Int32)
    start_offset: int = field(Int64)
    delivery_complete_count: int = field(Int32, since=1, default=-1)
    state_batches: list[StateBatch] = field(Array(StateBatch))


@message
class WriteShareGroupStateTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[WriteShareGroupStatePartition] = field(Array(WriteShareGroupStatePartition))


@message(flexible_from=0)
class WriteShareGroupStateRequest:
    """Changes of share partitions of one group."""

    group_id: str = field(String)
    topics: list[WriteShareGroupStateTopic] = field(Array(WriteShareGroupStateTopic))


@message
class WriteShareGroupStatePartitionResult:
    """Result of one partition."""

    partition: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)


@message
class WriteShareGroupStateTopicResult:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[WriteShareGroupStatePartitionResult] = field(
        Array(WriteShareGroupStatePartitionResult)
    )


@message(flexible_from=0)
class WriteShareGroupStateResponse:
    """Result of every partition."""

    results: list[WriteShareGroupStateTopicResult] = field(Array(WriteShareGroupStateTopicResult))


API = Api(
    85, "WriteShareGroupState", 0, 1, WriteShareGroupStateRequest, WriteShareGroupStateResponse
)
