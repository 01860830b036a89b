"""Heartbeat 0-4: a member lives; the answer says whether the group rebalances.

0. 1: throttle time. 2: throttling after the answer. 3: static members (KIP-345). 4: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Int16, Int32, String


@message(flexible_from=4)
class HeartbeatRequest:
    """The member, and its generation."""

    group_id: str = field(String)
    generation_id: int = field(Int32)
    member_id: str = field(String)
    group_instance_id: str | None = field(String, since=3, nullable=True)


@message(flexible_from=4)
class HeartbeatResponse:
    """Result of the heartbeat."""

    throttle_time_ms: int = field(Int32, since=1)
    error_code: int = field(Int16)


API = Api(12, "Heartbeat", 0, 4, HeartbeatRequest, HeartbeatResponse)
