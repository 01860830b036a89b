"""ListGroups 0-5: the groups there are.

0. 1: throttle time. 2: throttling after the answer. 3: flexible. 4: states (KIP-518). 5: types
(KIP-848).
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String


@message(flexible_from=3)
class ListGroupsRequest:
    """States and types to list; an empty list means all."""

    states_filter: list[str] = field(Array(String), since=4)
    types_filter: list[str] = field(Array(String), since=5)


@message
class ListedGroup:
    """One group; the protocol type is empty for one without members."""

    group_id: str = field(String)
    protocol_type: str = field(String)
    group_state: str = field(String, since=4)
    group_type: str = field(String, since=5)


@message(flexible_from=3)
class ListGroupsResponse:
    """The groups."""

    throttle_time_ms: int = field(Int32, since=1)
    error_code: int = field(Int16)
    groups: list[ListedGroup] = field(Array(ListedGroup))


API = Api(16, "ListGroups", 0, 5, ListGroupsRequest, ListGroupsResponse)
