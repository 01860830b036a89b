"""SyncGroup: the leader hands in the assignment, every member gets its part when it is stored."""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.members import MemberClaim, SyncResult
from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import AclOperation, ResourceType
from protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from protocol.errors import ErrorCode, KafkaError

PROTOCOL_SINCE_VERSION = 5


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: SyncGroupRequest, context: Context
) -> SyncGroupResponse | Deferred[SyncGroupResponse]:
    """The member's part, or at once an error."""
    try:
        result = _sync(request, context)
    except KafkaError as error:
        return _refusal(context, error)
    respond = partial(_respond, context)
    if isinstance(result, Deferred):
        return after(result, respond, partial(_refusal, context))
    return respond(result)


def _sync(request: SyncGroupRequest, context: Context) -> SyncResult | Deferred[SyncResult]:
    groups = context.services.groups
    if context.api_version >= PROTOCOL_SINCE_VERSION and None in {
        request.protocol_type,
        request.protocol_name,
    }:
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    group = groups.require(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    groups.room.check_members(sum(len(each.assignment) for each in request.assignments))
    return groups.membership.sync(
        group,
        MemberClaim(request.member_id, request.group_instance_id, request.generation_id),
        (request.protocol_type, request.protocol_name),
        {each.member_id: each.assignment for each in request.assignments},
    )


def _respond(context: Context, result: SyncResult) -> SyncGroupResponse:
    context.count_error(result.error)
    return SyncGroupResponse(
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def _refusal(context: Context, error: KafkaError) -> SyncGroupResponse:
    return _respond(context, SyncResult(error.code))
