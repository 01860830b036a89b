"""JoinGroup 0-9: become, or stay, a member of a group; answered when the rebalance has begun.

0. 1: rebalance time-out. 2: throttle time. 3: throttling after the answer. 4: a new member gets its
id first (KIP-394). 5: static members (KIP-345). 6: flexible. 7: protocol type in the answer. 8: the
reason for joining (KIP-800). 9: a leader may skip the assignment (KIP-814).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Bytes, Int16, Int32, String


@message
class JoinGroupRequestProtocol:
    """A way of assigning that the member knows, and what it says of itself in that way."""

    name: str = field(String)
    metadata: bytes = field(Bytes)


@message(flexible_from=6)
class JoinGroupRequest:
    """The member that joins; protocols in the order of its preference."""

    group_id: str = field(String)
    session_timeout_ms: int = field(Int32)
    rebalance_timeout_ms: int = field(Int32, since=1, default=-1)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=5, nullable=True)
    protocol_type: str = field(String)
    protocols: list[JoinGroupRequestProtocol] = field(Array(JoinGroupRequestProtocol))
    reason: str | None = field(String, since=8, nullable=True)


@message
class JoinGroupResponseMember:
    """A member as the leader receives it."""

    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=5, nullable=True)
    metadata: bytes = field(Bytes)


@message(flexible_from=6)
class JoinGroupResponse:
    """The generation; the leader also gets the members."""

    throttle_time_ms: int = field(Int32, since=2)
    error_code: int = field(Int16)
    generation_id: int = field(Int32, default=-1)
    protocol_type: str | None = field(String, since=7, nullable=True, default=None)
    protocol_name: str | None = field(String, nullable=7, default="")
    leader: str = field(String)
    skip_assignment: bool = field(Boolean, since=9)
    member_id: str = field(String)
    members: list[JoinGroupResponseMember] = field(Array(JoinGroupResponseMember))


API = Api(11, "JoinGroup", 0, 9, JoinGroupRequest, JoinGroupResponse)
