"""TxnOffsetCommit 0-5: how far a group has come, once a transaction is committed.

0. 1: throttling after the answer. 2: leader epoch of the record before (KIP-320). 3: flexible; the
member is named, so that zombies are fenced (KIP-447). 4: the answer may hold TRANSACTION_ABORTABLE.
5: the group's offsets join the transaction by themselves (KIP-890).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, Int64, String


@message
class TxnOffsetCommitRequestPartition:
    """The next offset that the group will read of a partition."""

    partition_index: int = field(Int32)
    committed_offset: int = field(Int64)
    committed_leader_epoch: int = field(Int32, since=2, default=-1)
    committed_metadata: str | None = field(String, nullable=True)


@message
class TxnOffsetCommitRequestTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[TxnOffsetCommitRequestPartition] = field(
        Array(TxnOffsetCommitRequestPartition)
    )


@message(flexible_from=3)
class TxnOffsetCommitRequest:
    """The transaction, the group, and the member that read."""

    transactional_id: str = field(String)
    group_id: str = field(String)
    producer_id: int = field(Int64)
    producer_epoch: int = field(Int16)
    generation_id: int = field(Int32, since=3, default=-1)
    member_id: str = field(String, since=3)
    group_instance_id: str | None = field(String, since=3, nullable=True)
    topics: list[TxnOffsetCommitRequestTopic] = field(Array(TxnOffsetCommitRequestTopic))


@message
class TxnOffsetCommitResponsePartition:
    """Result of one offset."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)


@message
class TxnOffsetCommitResponseTopic:
    """The partitions of one topic."""

    name: str = field(String)
    partitions: list[TxnOffsetCommitResponsePartition] = field(
        Array(TxnOffsetCommitResponsePartition)
    )


@message(flexible_from=3)
class TxnOffsetCommitResponse:
    """Result of every offset."""

    throttle_time_ms: int = field(Int32)
    topics: list[TxnOffsetCommitResponseTopic] = field(Array(TxnOffsetCommitResponseTopic))


API = Api(28, "TxnOffsetCommit", 0, 5, TxnOffsetCommitRequest, TxnOffsetCommitResponse)
