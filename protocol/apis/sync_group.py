"""SyncGroup 0-5: the leader hands in the assignment, every member gets its own.

0. 1: throttle time. 2: throttling after the answer. 3: static members (KIP-345). 4: flexible.
5: protocol type and name, checked and returned.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Bytes, Int16, Int32, String


@message
class SyncGroupRequestAssignment:
    """Assignment of one member, in the form of the group's protocol."""

    member_id: str = field(String)
    assignment: bytes = field(Bytes)


@message(flexible_from=4)
class SyncGroupRequest:
    """The member and its generation; only the leader sends assignments."""

    group_id: str = field(String)
    generation_id: int = field(Int32)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=3, nullable=True)
    protocol_type: str | None = field(String, since=5, nullable=True)
    protocol_name: str | None = field(String, since=5, nullable=True)
    assignments: list[SyncGroupRequestAssignment] = field(Array(SyncGroupRequestAssignment))


@message(flexible_from=4)
class SyncGroupResponse:
    """The member's part."""

    throttle_time_ms: int = field(Int32, since=1)
    error_code: int = field(Int16)
    protocol_type: str | None = field(String, since=5, nullable=True)
    protocol_name: str | None = field(String, since=5, nullable=True)
    assignment: bytes = field(Bytes)


API = Api(14, "SyncGroup", 0, 5, SyncGroupRequest, SyncGroupResponse)
