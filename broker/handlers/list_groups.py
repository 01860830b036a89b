"""ListGroups: all groups, or those of some states and types (classic, consumer, share)."""

from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.coordinator import GroupCoordinator
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from protocol.errors import ErrorCode


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    """COORDINATOR_LOAD_IN_PROGRESS (14) while some are still being read: half a list is wrong."""
    groups = context.services.groups
    if groups.loading.is_under_way:
        context.count_error(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    hears_all = context.sees(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.wire_protocol_type,
                group_state=group.state_name,
                group_type=group.group_type,
            )
            for group in groups.groups.values()
            if (not states or group.state_name.lower() in states)
            and (not types or group.group_type in types)
            and (hears_all or _is_shown(group, context))
        ]
    )


def _is_shown(group: Group, context: Context) -> bool:
    return context.sees(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id)
