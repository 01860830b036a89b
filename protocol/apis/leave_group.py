"""LeaveGroup 0-5: members go.

0. 1: throttle time. 2: throttling after the answer. 3: many at once, static ones by their instance
id (KIP-345). 4: flexible. 5: the reason (KIP-800).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String


@message
class MemberIdentity:
    """A member that goes; an empty member id means the member of the instance id."""

    member_id: str = field(String, since=3)
    group_instance_id: str | None = field(String, since=3, nullable=True)
    reason: str | None = field(String, since=5, nullable=True)


@message(flexible_from=4)
class LeaveGroupRequest:
    """Members that leave: one, or from version 3 on a list."""

    group_id: str = field(String)
    member_id: str = field(String, until=2)
    members: list[MemberIdentity] = field(Array(MemberIdentity), since=3)


@message
class MemberResponse:
    """Result of one member."""

    member_id: str = field(String, since=3)
    group_instance_id: str | None = field(String, since=3, nullable=True)
    error_code: int = field(Int16, since=3)


@message(flexible_from=4)
class LeaveGroupResponse:
    """Result of each member."""

    throttle_time_ms: int = field(Int32, since=1)
    error_code: int = field(Int16)
    members: list[MemberResponse] = field(Array(MemberResponse), since=3)


API = Api(13, "LeaveGroup", 0, 5, LeaveGroupRequest, LeaveGroupResponse)
