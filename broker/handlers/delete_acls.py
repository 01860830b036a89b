"""DeleteAcls: takes away entries of access control; durable when it is answered (KIP-140)."""

from collections.abc import Sequence
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.runtime.wire_error import wire_error
from broker.security.acl import Acl
from broker.security.acl_filter import AclFilter
from broker.security.acl_requests import check_count, check_is_on, filter_of
from broker.security.authority import Authority
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from protocol.errors import KafkaError
from storage.errors import StorageError

Judged = AclFilter | KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    authority: Authority


Context = RequestContext[Services]


async def handle(request: DeleteAclsRequest, context: Context) -> DeleteAclsResponse:
    """The entries that each filter took away, or why it took none."""
    found: dict[int, Sequence[Acl]] = {}
    try:
        context.require(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
        check_is_on(context.services.authority)
        check_count(len(request.filters), "filters")
        judged = [_judged(each) for each in request.filters]
        wanted = {at: each for at, each in enumerate(judged) if isinstance(each, AclFilter)}
        removed = await context.services.authority.remove(list(wanted.values()))
        found = dict(zip(wanted, removed, strict=True))
    except KafkaError as error:
        judged = [error] * len(request.filters)
    except StorageError as error:
        judged = [wire_error(error)] * len(request.filters)
    results = [_result(each, found.get(at, ()), context) for at, each in enumerate(judged)]
    return DeleteAclsResponse(filter_results=results)


def _judged(asked: DeleteAclsFilter) -> Judged:
    try:
        return filter_of(asked)
    except KafkaError as error:
        return error


def _result(judged: Judged, removed: Sequence[Acl], context: Context) -> DeleteAclsFilterResult:
    if isinstance(judged, AclFilter):
        return DeleteAclsFilterResult(matching_acls=[_matching(each) for each in removed])
    context.count_error(judged.code)
    return DeleteAclsFilterResult(error_code=judged.code, error_message=judged.message)


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
