"""LeaveGroup: members go; from version 3 on several at once, static ones by their instance id."""

from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import AclOperation, ResourceType
from protocol.apis.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from protocol.errors import ErrorCode, KafkaError

LIST_SINCE_VERSION = 3


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    """The result of each member; in older versions the only member's error is the answer's."""
    is_list = context.api_version >= LIST_SINCE_VERSION
    leaving = request.members if is_list else [MemberIdentity(member_id=request.member_id)]
    try:
        context.require(AclOperation.READ, ResourceType.GROUP, request.group_id)
        check_group_id(request.group_id)
        context.services.groups.check_loaded(request.group_id)
    except KafkaError as error:
        context.count_error(error.code)
        return LeaveGroupResponse(error_code=error.code)
    members = [_left(request.group_id, each, context) for each in leaving]
    if not is_list:
        return LeaveGroupResponse(error_code=members[0].error_code)
    return LeaveGroupResponse(members=members)


def _left(group_id: str, member: MemberIdentity, context: Context) -> MemberResponse:
    """A group that is not there has no such member (Kafka's answer)."""
    groups, code = context.services.groups, int(ErrorCode.NONE)
    try:
        group = groups.require(group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        groups.membership.leave(group, member.member_id, member.group_instance_id)
    except KafkaError as error:
        code = error.code
        context.count_error(code)
    return MemberResponse(
        member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=code
    )
