"""ConsumerGroupDescribe 0-1: groups that the broker assigns, and their members (KIP-848).

0. 1: whether a member speaks the classic protocol.
"""

from uuid import UUID

from protocol.api import Api
from protocol.apis.describe_groups import UNKNOWN_OPERATIONS
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String, Uuid

UNKNOWN_MEMBER, CLASSIC_MEMBER, CONSUMER_MEMBER = -1, 0, 1


@message(flexible_from=0)
class ConsumerGroupDescribeRequest:
    """The groups to tell of."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Boolean)


@message
class ConsumerGroupDescribeTopicPartitions:
    """Partitions of one topic."""

    topic_id: UUID = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class ConsumerGroupDescribeAssignment:
    """Partitions that a member reads."""

    topic_partitions: list[ConsumerGroupDescribeTopicPartitions] = field(
        Array(ConsumerGroupDescribeTopicPartitions)
    )


@message
class ConsumerGroupDescribeMember:
    """One member: what it reads now, and what it is to read."""

    member_id: str = field(String)
    instance_id: str | None = field(String, nullable=True, default=None)
    rack_id: str | None = field(String, nullable=True, default=None)
    member_epoch: int = field(Int32)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    subscribed_topic_regex: str | None = field(String, nullable=True, default=None)
    assignment: ConsumerGroupDescribeAssignment = field(ConsumerGroupDescribeAssignment)
    target_assignment: ConsumerGroupDescribeAssignment = field(ConsumerGroupDescribeAssignment)
    member_type: int = field(Int8, since=1, default=UNKNOWN_MEMBER)


@message
class ConsumerGroupDescribeGroup:
    """One group."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    assignor_name: str = field(String)
    members: list[ConsumerGroupDescribeMember] = field(Array(ConsumerGroupDescribeMember))
    authorized_operations: int = field(Int32, default=UNKNOWN_OPERATIONS)


@message(flexible_from=0)
class ConsumerGroupDescribeResponse:
    """The groups."""

    throttle_time_ms: int = field(Int32)
    groups: list[ConsumerGroupDescribeGroup] = field(Array(ConsumerGroupDescribeGroup))


API = Api(
    69,
    "ConsumerGroupDescribe",
    0,
    1,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
