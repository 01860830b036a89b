"""ShareFetch 1-2: acquire and read records of share partitions, and acknowledge others (KIP-932).

1: records are never null. 2: the acquire mode (KIP-1206) and renewals (KIP-1222). Version 0 was
Kafka 4.0's preview.
"""

from typing import Any
from uuid import UUID

from protocol.api import Api
from protocol.apis.share_acknowledge import AcknowledgementBatch, LeaderIdAndEpoch, NodeEndpoint
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, Int64, Records, String, Uuid

MAX_INT32 = 2**31 - 1
BATCH_OPTIMIZED, RECORD_LIMIT = 0, 1


@message
class ShareFetchPartition:
    """A partition to fetch from, and acknowledgements for it."""

    partition_index: int = field(Int32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


@message
class ShareFetchTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ShareFetchPartition] = field(Array(ShareFetchPartition))


@message
class ShareForgottenTopic:
    """Partitions to drop from the share session."""

    topic_id: UUID = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=0)
class ShareFetchRequest:
    """Session epoch 0 opens a session, -1 closes it; limits are bytes, records and ms."""

    group_id: str | None = field(String, nullable=True, default=None)
    member_id: str | None = field(String, nullable=True)
    share_session_epoch: int = field(Int32)
    max_wait_ms: int = field(Int32)
    min_bytes: int = field(Int32)
    max_bytes: int = field(Int32, default=MAX_INT32)
    max_records: int = field(Int32)
    batch_size: int = field(Int32)
    share_acquire_mode: int = field(
        Int8,
        since=2,
        default=BATCH_OPTIMIZED,
        doc="0: whole record batches. 1: at most max_records",
    )
    is_renew_ack: bool = field(Boolean, since=2, default=False)
    topics: list[ShareFetchTopic] = field(Array(ShareFetchTopic))
    forgotten_topics_data: list[ShareForgottenTopic] = field(Array(ShareForgottenTopic))


@message
class AcquiredRecords:
    """Offsets that the member holds now, both ends included, all of one delivery count."""

    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    delivery_count: int = field(Int16)


@message
class SharePartitionData:
    """Result of one partition; `records` is any buffer, or any object with a length."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    acknowledge_error_code: int = field(Int16)
    acknowledge_error_message: str | None = field(String, nullable=True, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)
    records: Any = field(Records, default=b"")
    acquired_records: list[AcquiredRecords] = field(Array(AcquiredRecords))


@message
class ShareFetchTopicResponse:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[SharePartitionData] = field(Array(SharePartitionData))


@message(flexible_from=0)
class ShareFetchResponse:
    """Result of the partitions that have something to tell; the lock's length in ms."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    acquisition_lock_timeout_ms: int = field(Int32)
    responses: list[ShareFetchTopicResponse] = field(Array(ShareFetchTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint))


API = Api(78, "ShareFetch", 1, 2, ShareFetchRequest, ShareFetchResponse)
