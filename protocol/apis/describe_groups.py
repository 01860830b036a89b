"""DescribeGroups 0-6: the state of groups, their members and what each member does.

0. 1: throttle time. 2: throttling after the answer. 3: authorised operations. 4: static members
(KIP-345). 5: flexible. 6: GROUP_ID_NOT_FOUND instead of a dead group, and an error text.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Bytes, Int16, Int32, String

UNKNOWN_OPERATIONS = -(1 << 31)


@message(flexible_from=5)
class DescribeGroupsRequest:
    """The groups to tell of."""

    groups: list[str] = field(Array(String))
    include_authorized_operations: bool = field(Boolean, since=3)


@message
class DescribedGroupMember:
    """One member; metadata and assignment are those of the group's protocol."""

    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=4, nullable=True)
    client_id: str = field(String)
    client_host: str = field(String)
    member_metadata: bytes = field(Bytes)
    member_assignment: bytes = field(Bytes)


@message
class DescribedGroup:
    """One group."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, since=6, nullable=True)
    group_id: str = field(String)
    group_state: str = field(String)
    protocol_type: str = field(String)
    protocol_data: str = field(String)
    members: list[DescribedGroupMember] = field(Array(DescribedGroupMember))
    authorized_operations: int = field(Int32, since=3, default=UNKNOWN_OPERATIONS)


@message(flexible_from=5)
class DescribeGroupsResponse:
    """The groups."""

    throttle_time_ms: int = field(Int32, since=1)
    groups: list[DescribedGroup] = field(Array(DescribedGroup))


API = Api(15, "DescribeGroups", 0, 6, DescribeGroupsRequest, DescribeGroupsResponse)
