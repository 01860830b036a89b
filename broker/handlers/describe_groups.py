"""DescribeGroups: the state of groups, their members and what each does."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group, GroupState
from broker.groups.classic.members import Member
from broker.groups.coordinator import GroupCoordinator
from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import NO_OPERATIONS, AclOperation, ResourceType
from protocol.apis.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from protocol.errors import ErrorCode, KafkaError

NOT_FOUND_SINCE_VERSION = 6
"""READ, DELETE, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS: everybody may do everything here."""


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: DescribeGroupsRequest, context: Context
) -> DescribeGroupsResponse | Deferred[DescribeGroupsResponse]:
    """A group that does not exist is Dead, and from version 6 on GROUP_ID_NOT_FOUND (69).

    A group that is named twice is described once.
    """
    context.asks(AclOperation.DESCRIBE, ResourceType.GROUP)
    return context.services.answers.make(
        partial(_answers, request, context), lambda groups: DescribeGroupsResponse(groups=groups)
    )


def _answers(
    request: DescribeGroupsRequest, context: Context, room: AnswerRoom
) -> Iterator[DescribedGroup]:
    with_operations = request.include_authorized_operations
    for group_id in dict.fromkeys(request.groups):
        answer = _described(group_id, context, room)
        is_answered = answer.error_code == ErrorCode.NONE
        if with_operations and is_answered:
            answer.authorized_operations = context.bits(ResourceType.GROUP, group_id)
        else:
            answer.authorized_operations = NO_OPERATIONS
        yield answer


def _described(group_id: str, context: Context, room: AnswerRoom) -> DescribedGroup:
    try:
        context.require(AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        group = context.services.groups.require_classic(group_id)
        room.take(1 + len(group.members), _answer_bytes(group.members.values()))
    except KafkaError as error:
        return _refusal(group_id, error, context)
    is_stable = group.state is GroupState.STABLE
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if is_stable else "",
        members=_members(group, is_stable=is_stable),
    )


def _answer_bytes(members: Iterable[Member]) -> int:
    return sum(each.size_bytes for each in members)


def _members(group: Group, *, is_stable: bool) -> list[DescribedGroupMember]:
    """The members; metadata and assignments only for a Stable group."""
    return [
        DescribedGroupMember(
            member_id=each.member_id,
            group_instance_id=each.instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            member_metadata=each.metadata_of(group.protocol_name) if is_stable else b"",
            member_assignment=each.assignment if is_stable else b"",
        )
        for each in group.members.values()
    ]


def _refusal(group_id: str, error: KafkaError, context: Context) -> DescribedGroup:
    missing = error.code == ErrorCode.GROUP_ID_NOT_FOUND
    state = GroupState.DEAD.value if missing else ""
    if missing and context.api_version < NOT_FOUND_SINCE_VERSION:
        return DescribedGroup(group_id=group_id, group_state=state)
    context.count_error(error.code)
    return DescribedGroup(
        error_code=error.code, error_message=error.message, group_id=group_id, group_state=state
    )
