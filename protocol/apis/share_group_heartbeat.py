"""ShareGroupHeartbeat 1: join, stay in, or leave a share group (KIP-932).

What is null did not change since the member's last heartbeat. Version 0 was Kafka 4.0's preview.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String, Uuid

JOIN_EPOCH, LEAVE_EPOCH = 0, -1


@message
class ShareGroupHeartbeatTopicPartitions:
    """Partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=0)
class ShareGroupHeartbeatRequest:
    """Epoch 0 joins, -1 leaves; the member makes its id."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    rack_id: str | None = field(String, nullable=True, default=None)
    subscribed_topic_names: list[str] | None = field(Array(String), nullable=True, default=None)


@message
class ShareGroupHeartbeatAssignment:
    """Partitions that the member may fetch from."""

    topic_partitions: list[ShareGroupHeartbeatTopicPartitions] = field(
        Array(ShareGroupHeartbeatTopicPartitions)
    )


@message(flexible_from=0)
class ShareGroupHeartbeatResponse:
    """The member's epoch; the assignment on a join, when topics were sent, when it changed."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    member_id: str | None = field(String, nullable=True, default=None)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    assignment: ShareGroupHeartbeatAssignment | None = field(
        ShareGroupHeartbeatAssignment, nullable=True, default=None
    )


API = Api(76, "ShareGroupHeartbeat", 1, 1, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse)
