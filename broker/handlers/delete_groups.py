"""DeleteGroups: groups without members go, with their offsets; answered when that is durable."""

from functools import partial
from typing import NamedTuple

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
        removal = _removal(group_id, context)
    except KafkaError as error:
        return _refusal(group_id, context, error)
    return after(
        removal,
        lambda _: DeletableGroupResult(group_id=group_id),
        partial(_refusal, group_id, context),
    )


def _removal(group_id: str, context: Context) -> Deferred[None]:
    """The end of an Empty group, or the rest of one that an earlier request left."""
    groups = context.services.groups
    groups.loading.check(group_id)
    rest = groups.removals.again(group_id)
    if rest is not None:
        return rest
    group = groups.require(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    if not group.is_empty:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
    return groups.remove(group)


def _refusal(group_id: str, context: Context, error: KafkaError) -> DeletableGroupResult:
    context.count_error(error.code)
    return DeletableGroupResult(group_id=group_id, error_code=error.code)
