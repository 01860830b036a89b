"""Heartbeat: keeps a member alive; the answer says when the group rebalances.

While the group is being read after a start the answer is success (Kafka's rule): otherwise the
member would join again for nothing.
"""

from typing import NamedTuple

from broker.groups.classic.members import MemberClaim
from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import AclOperation, ResourceType
from protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from protocol.errors import ErrorCode, KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """NONE, or why the member has to do something."""
    groups = context.services.groups
    try:
        context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        check_group_id(request.group_id)
        group = groups.require(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        claim = MemberClaim(request.member_id, request.group_instance_id, request.generation_id)
        groups.membership.heartbeat(group, claim)
    except KafkaError as error:
        if error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return HeartbeatResponse()
        context.count_error(error.code)
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse()
