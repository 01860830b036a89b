"""ShareAcknowledge 1-2: acknowledge records that the member holds (KIP-932).

2: renewals, and the lock's length (KIP-1222). Version 0 was Kafka 4.0's preview.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, Int64, String, Uuid


@message
class AcknowledgementBatch:
    """A range of offsets, both ends included, with one type for all or one for each."""

    first_offset: int = field(Int64)
    last_offset: int = field(Int64)
    acknowledge_types: list[int] = field(
        Array(Int8), doc="0: gap. 1: accept. 2: release. 3: reject. 4, since version 2: renew"
    )


@message
class ShareAcknowledgePartition:
    """Acknowledgements for one partition."""

    partition_index: int = field(Int32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(Array(AcknowledgementBatch))


@message
class ShareAcknowledgeTopic:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ShareAcknowledgePartition] = field(Array(ShareAcknowledgePartition))


@message(flexible_from=0)
class ShareAcknowledgeRequest:
    """Acknowledgements in a session that a ShareFetch opened; epoch -1 closes it."""

    group_id: str | None = field(String, nullable=True, default=None)
    member_id: str | None = field(String, nullable=True)
    share_session_epoch: int = field(Int32)
    is_renew_ack: bool = field(Boolean, since=2, default=False)
    topics: list[ShareAcknowledgeTopic] = field(Array(ShareAcknowledgeTopic))


@message
class LeaderIdAndEpoch:
    """The leader of a partition, for a client that asked another broker."""

    leader_id: int = field(Int32)
    leader_epoch: int = field(Int32)


@message
class ShareAcknowledgePartitionResponse:
    """Result of one partition: all of its acknowledgements, or none."""

    partition_index: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)


@message
class ShareAcknowledgeTopicResponse:
    """The partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[ShareAcknowledgePartitionResponse] = field(
        Array(ShareAcknowledgePartitionResponse)
    )


@message
class NodeEndpoint:
    """The address of a broker named as leader."""

    node_id: int = field(Int32)
    host: str = field(String)
    port: int = field(Int32)
    rack: str | None = field(String, nullable=True, default=None)


@message(flexible_from=0)
class ShareAcknowledgeResponse:
    """Result of every partition; the lock's length in ms."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    acquisition_lock_timeout_ms: int = field(Int32, since=2)
    responses: list[ShareAcknowledgeTopicResponse] = field(Array(ShareAcknowledgeTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(Array(NodeEndpoint))


API = Api(79, "ShareAcknowledge", 1, 2, ShareAcknowledgeRequest, ShareAcknowledgeResponse)
