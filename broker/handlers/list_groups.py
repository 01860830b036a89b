"""ListGroups: all groups, or those of some states and types. There is one type: classic."""

from broker.context import RequestContext
from protocol.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.errors import ErrorCode

CLASSIC = "classic"


def handle(request: ListGroupsRequest, context: RequestContext) -> ListGroupsResponse:
    """COORDINATOR_LOAD_IN_PROGRESS (14) while some are still being read: half a list is wrong."""
    groups = context.broker.groups
    if groups.is_loading:
        context.count_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    if types and CLASSIC not in types:
        return ListGroupsResponse()
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type or "",
                group_state=group.state.value,
                group_type=CLASSIC,
            )
            for group in groups.groups.values()
            if not states or group.state.value.lower() in states
        ]
    )
