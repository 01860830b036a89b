"""ConsumerGroupHeartbeat 0-1: join, stay in, or leave a group that the broker assigns (KIP-848).

0. 1: a subscription by regular expression, and member ids that the client makes. What is null did
not change since the member's last heartbeat.
"""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String, Uuid

JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2


@message
class ConsumerGroupHeartbeatTopicPartitions:
    """Partitions of one topic."""

    topic_id: UUID = field(Uuid)
    partitions: list[int] = field(Array(Int32))


@message(flexible_from=0)
class ConsumerGroupHeartbeatRequest:
    """Epoch 0 joins, -1 leaves, -2 is a static member that will be back."""

    group_id: str = field(String)
    member_id: str = field(String)
    member_epoch: int = field(Int32)
    instance_id: str | None = field(String, nullable=True, default=None)
    rack_id: str | None = field(String, nullable=True, default=None)
    rebalance_timeout_ms: int = field(Int32, default=-1)
    subscribed_topic_names: list[str] | None = field(Array(String), nullable=True, default=None)
    subscribed_topic_regex: str | None = field(String, since=1, nullable=True, default=None)
    server_assignor: str | None = field(String, nullable=True, default=None)
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] | None = field(
        Array(ConsumerGroupHeartbeatTopicPartitions), nullable=True, default=None
    )


@message
class ConsumerGroupHeartbeatAssignment:
    """Partitions that the member may read from now on."""

    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = field(
        Array(ConsumerGroupHeartbeatTopicPartitions)
    )


@message(flexible_from=0)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch; the assignment when it changed or was asked for."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    member_id: str | None = field(String, nullable=True, default=None)
    member_epoch: int = field(Int32)
    heartbeat_interval_ms: int = field(Int32)
    assignment: ConsumerGroupHeartbeatAssignment | None = field(
        ConsumerGroupHeartbeatAssignment, nullable=True, default=None
    )


API = Api(
    68,
    "ConsumerGroupHeartbeat",
    0,
    1,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
