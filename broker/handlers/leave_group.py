"""LeaveGroup: members go; from version 3 on several at once, static ones by their instance id."""

from typing import NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.requests import check_group_id
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
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
    leaving = request.members
    if context.api_version < LIST_SINCE_VERSION:
        leaving = [MemberIdentity(member_id=request.member_id)]
    try:
        check_group_id(request.group_id)
        group = context.services.groups.require(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
    except KafkaError as error:
        context.count_error(error.code)
        return LeaveGroupResponse(error_code=error.code)
    members = []
    for each in leaving:
        code: int = ErrorCode.NONE
        try:
            context.services.groups.membership.leave(group, each.member_id, each.group_instance_id)
        except KafkaError as error:
            code = error.code
            context.count_error(code)
        members.append(
            MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
            )
        )
    if context.api_version < LIST_SINCE_VERSION:
        return LeaveGroupResponse(error_code=members[0].error_code)
    return LeaveGroupResponse(members=members)
