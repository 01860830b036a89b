"""DescribeAcls: the entries of access control that a filter lets through (KIP-140)."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from broker.runtime.answers import AnswerRoom, Answers
from broker.runtime.deferred import Deferred
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.acl import Acl
from broker.security.acl_book import AclBook
from broker.security.acl_filter import AclFilter
from broker.security.acl_requests import check_is_on, filter_of
from broker.security.authority import Authority
from protocol.acls import CLUSTER_NAME, AclOperation, ResourceType
from protocol.apis.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from protocol.errors import KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    probes: BrokerProbes
    authority: Authority
    answers: Answers


Context = RequestContext[Services]


def handle(
    request: DescribeAclsRequest, context: Context
) -> DescribeAclsResponse | Deferred[DescribeAclsResponse]:
    """The entries by resource; SECURITY_DISABLED (54) without an authorizer."""
    authority = context.services.authority
    try:
        context.require(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        check_is_on(authority)
        wanted = filter_of(request)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    return context.services.answers.make(
        partial(_resources, wanted, authority.book),
        lambda resources: DescribeAclsResponse(resources=resources),
    )


def _resources(
    wanted: AclFilter, book: AclBook, _: AnswerRoom
) -> Iterator[DescribeAclsResource | None]:
    """In the order of their types, patterns and names."""
    found: dict[tuple[int, int], dict[str, list[AclDescription]]] = {}
    for acl in book.acls:
        if wanted.accepts(acl):
            by_name = found.setdefault((acl.resource_type, acl.pattern_type), {})
            by_name.setdefault(acl.name, []).append(_description(acl))
        yield None
    for kind, pattern in sorted(found):
        by_name = found[kind, pattern]
        for name in sorted(by_name):
            yield DescribeAclsResource(
                resource_type=kind, pattern_type=pattern, resource_name=name, acls=by_name[name]
            )


def _description(acl: Acl) -> AclDescription:
    return AclDescription(
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
