"""FindCoordinator 0-6: which broker coordinates a group or a transactional id.

0: groups only. 1: kind of key, error text, throttle time. 2: throttling after the answer.
3: flexible. 4: many keys at once (KIP-699). 5: the answer may hold TRANSACTION_ABORTABLE.
6: share groups (KIP-932).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message(flexible_from=3)
class FindCoordinatorRequest:
    """The key, or from version 4 on the keys, to find a coordinator for."""

    key: str = field(String, until=3)
    key_type: int = field(Int8, since=1, doc="0: group. 1: transactional id. 2: share group")
    coordinator_keys: list[str] = field(Array(String), since=4)


@message
class Coordinator:
    """The coordinator of one key."""

    key: str = field(String, since=4)
    node_id: int = field(Int32, since=4)
    host: str = field(String, since=4)
    port: int = field(Int32, since=4)
    error_code: int = field(Int16, since=4)
    error_message: str | None = field(String, since=4, nullable=True)


@message(flexible_from=3)
class FindCoordinatorResponse:
    """One coordinator, or from version 4 on one for each key."""

    throttle_time_ms: int = field(Int32, since=1)
    error_code: int = field(Int16, until=3)
    error_message: str | None = field(String, since=1, until=3, nullable=True)
    node_id: int = field(Int32, until=3)
    host: str = field(String, until=3)
    port: int = field(Int32, until=3)
    coordinators: list[Coordinator] = field(Array(Coordinator), since=4)


API = Api(10, "FindCoordinator", 0, 6, FindCoordinatorRequest, FindCoordinatorResponse)
