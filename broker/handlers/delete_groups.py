"""DeleteGroups: groups without members go, with their offsets; answered when that is durable."""

from functools import partial
from typing import NamedTuple

from broker.groups.classic.group import Group
from broker.groups.coordinator import GroupCoordinator
from broker.runtime.deferred import Deferred
from broker.runtime.gathering import after, gather
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from protocol.acls import AclOperation, ResourceType
from protocol.apis.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from protocol.errors import ErrorCode, KafkaError

Answer = DeletableGroupResult | Deferred[DeletableGroupResult]


class Services(NamedTuple):
    """The services that the answer is made with."""

    groups: GroupCoordinator
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: DeleteGroupsRequest, context: Context
) -> DeleteGroupsResponse | Deferred[DeleteGroupsResponse]:
    """One code for each group."""
    context.asks(AclOperation.DELETE, ResourceType.GROUP)
    answers = [_delete(group_id, context) for group_id in dict.fromkeys(request.groups_names)]
    return gather(answers, lambda results: DeleteGroupsResponse(results=results))


def _delete(group_id: str, context: Context) -> Answer:
    try:
        context.require(AclOperation.DELETE, ResourceType.GROUP, group_id)
        group = _empty_group(group_id, context)
    except KafkaError as error:
        return _refusal(group_id, context, error)
    return after(
        context.services.groups.remove(group),
        lambda _: DeletableGroupResult(group_id=group_id),
        partial(_refusal, group_id, context),
    )


def _empty_group(group_id: str, context: Context) -> Group:
    group = context.services.groups.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    return group


def _refusal(group_id: str, context: Context, error: KafkaError) -> DeletableGroupResult:
    context.count_error(error.code)
    return DeletableGroupResult(group_id=group_id, error_code=error.code)
