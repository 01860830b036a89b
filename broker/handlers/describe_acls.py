"""DescribeAcls: the entries of access control that a filter lets through (KIP-140)."""

from itertools import groupby
from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.security.acl import Acl
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


Context = RequestContext[Services]


def handle(request: DescribeAclsRequest, context: Context) -> DescribeAclsResponse:
    """The entries by resource; SECURITY_DISABLED (54) without an authorizer."""
    authority = context.services.authority
    try:
        context.require(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        check_is_on(authority)
        wanted = filter_of(request)
    except KafkaError as error:
        context.count_error(error.code)
        return DescribeAclsResponse(error_code=error.code, error_message=error.message)
    found = sorted(filter(wanted.accepts, authority.book.acls), key=_resource)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=kind,
                pattern_type=pattern,
                resource_name=name,
                acls=[_description(each) for each in acls],
            )
            for (kind, pattern, name), acls in groupby(found, _resource)
        ]
    )


def _resource(acl: Acl) -> tuple[int, int, str]:
    return acl.resource_type, acl.pattern_type, acl.name


def _description(acl: Acl) -> AclDescription:
    return AclDescription(
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
