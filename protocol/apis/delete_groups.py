"""DeleteGroups 0-2: groups without members go, with their offsets.

0. 1: throttling after the answer. 2: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int16, Int32, String


@message(flexible_from=2)
class DeleteGroupsRequest:
    """The groups that are to go."""

    groups_names: list[str] = field(Array(String))


@message
class DeletableGroupResult:
    """Result of one group."""

    group_id: str = field(String)
    error_code: int = field(Int16)


@message(flexible_from=2)
class DeleteGroupsResponse:
    """Result of each group."""

    throttle_time_ms: int = field(Int32)
    results: list[DeletableGroupResult] = field(Array(DeletableGroupResult))


API = Api(42, "DeleteGroups", 0, 2, DeleteGroupsRequest, DeleteGroupsResponse)
