"""JoinGroup: a client becomes, or stays, a member of a group; answered when the rebalance begins.

Memory is bounded here: a member that says too much of itself is not taken in.
"""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.classic.members import Joining, JoinResult, Protocol
from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.apis.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from protocol.errors import ErrorCode, KafkaError

REBALANCE_TIMEOUT_SINCE_VERSION = 1
KNOWN_ID_SINCE_VERSION = 4
NULL_PROTOCOL_SINCE_VERSION = 7
SKIP_ASSIGNMENT_SINCE_VERSION = 9


class Services(NamedTuple):
    """The services that the answer is made with."""

    config: ConfigStore
    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: JoinGroupRequest, context: Context
) -> JoinGroupResponse | Deferred[JoinGroupResponse]:
    """The new generation, or at once an error."""
    try:
        result = _join(request, context)
    except KafkaError as error:
        return _refusal(request, context, error)
    respond = partial(_respond, context)
    if isinstance(result, Deferred):
        return after(result, respond, partial(_refusal, request, context))
    return respond(result)


def _join(request: JoinGroupRequest, context: Context) -> JoinResult | Deferred[JoinResult]:
    groups, settings = context.services.groups, context.services.config.broker_config
    context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
    check_group_id(request.group_id)
    shortest, longest = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT)
    joining = _joining(request, context)
    if request.member_id:
        group = groups.require(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        group = groups.find_or_make(request.group_id)
    return _taken_in(group, joining, context)


def _taken_in(
    group: Group, joining: Joining, context: Context
) -> JoinResult | Deferred[JoinResult]:
    groups = context.services.groups
    try:
        groups.room.check_members(
            sum(len(each.name) + len(each.metadata) for each in joining.protocols)
        )
        return groups.membership.join(group, joining)
    except KafkaError:
        groups.drop_unused(group)
        raise


def _joining(request: JoinGroupRequest, context: Context) -> Joining:
    version = context.api_version
    has_timeout = version >= REBALANCE_TIMEOUT_SINCE_VERSION
    timeout = request.rebalance_timeout_ms if has_timeout else request.session_timeout_ms
    return Joining(
        request.member_id,
        request.group_instance_id,
        context.client_id,
        f"/{context.client_host}",
        request.session_timeout_ms,
        timeout,
        request.protocol_type,
        tuple(Protocol(each.name, each.metadata) for each in request.protocols),
        needs_known_id=version >= KNOWN_ID_SINCE_VERSION,
        may_skip_assignment=version >= SKIP_ASSIGNMENT_SINCE_VERSION,
        reason=request.reason or "",
    )


def _respond(context: Context, result: JoinResult) -> JoinGroupResponse:
    context.count_error(result.error)
    name = result.protocol_name
    if name is None and context.api_version < NULL_PROTOCOL_SINCE_VERSION:
        name = ""
    return JoinGroupResponse(
        error_code=result.error,
        generation_id=result.generation,
        protocol_type=result.protocol_type,
        protocol_name=name,
        leader=result.leader,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.group_instance_id,
                metadata=each.metadata,
            )
            for each in result.members
        ],
    )


def _refusal(request: JoinGroupRequest, context: Context, error: KafkaError) -> JoinGroupResponse:
    return _respond(context, JoinResult(error.code, request.member_id))
