"""ShareGroupDescribe 1: share groups and their members (KIP-932).

Version 0 was Kafka 4.0's preview.
"""

from uuid import UUID

from protocol.api import Api
from protocol.apis.describe_groups import UNKNOWN_OPERATIONS
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, String, Uuid


@message(flexible_from=0)
class ShareGroupDescribeRequest:
    """The groups to describe."""

    group_ids: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Boolean)


@message
class ShareGroupDescribeTopicPartitions:
    """Partitions of one topic."""

    topic_id: UUID = field(Uuid)
    topic_name: str = field(String)
    partitions: list[int] = field(Array(Int32))


@message
class ShareGroupDescribeAssignment:
    """Partitions that a member fetches from."""

    topic_partitions: list[ShareGroupDescribeTopicPartitions] = field(
        Array(ShareGroupDescribeTopicPartitions)
    )


@message
class ShareGroupDescribeMember:
    """One member and its assignment."""

    member_id: str = field(String)
    rack_id: str | None = field(String, nullable=True, default=None)
    member_epoch: int = field(Int32)
    client_id: str = field(String)
    client_host: str = field(String)
    subscribed_topic_names: list[str] = field(Array(String))
    assignment: ShareGroupDescribeAssignment = field(ShareGroupDescribeAssignment)


@message
class ShareGroupDescribeGroup:
    """One group."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True, default=None)
    group_id: str = field(String)
    group_state: str = field(String)
    group_epoch: int = field(Int32)
    assignment_epoch: int = field(Int32)
    assignor_name: str = field(String)
    members: list[ShareGroupDescribeMember] = field(Array(ShareGroupDescribeMember))
    authorized_operations: int = field(Int32, default=UNKNOWN_OPERATIONS)


@message(flexible_from=0)
class ShareGroupDescribeResponse:
    """The groups."""

    throttle_time_ms: int = field(Int32)
    groups: list[ShareGroupDescribeGroup] = field(Array(ShareGroupDescribeGroup))


API = Api(77, "ShareGroupDescribe", 1, 1, ShareGroupDescribeRequest, ShareGroupDescribeResponse)
