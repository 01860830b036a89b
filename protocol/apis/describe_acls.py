"""DescribeAcls 1-3: the entries of access control that a filter lets through (KIP-140).

1: patterns of names (KIP-290). 2: flexible. 3: the resource type USER. 0 is not served, as in
Kafka 4.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message(flexible_from=2)
class DescribeAclsRequest:
    """A filter; null and the numbers of ANY let everything through."""

    resource_type_filter: int = field(Int8)
    resource_name_filter: str | None = field(String, nullable=True)
    pattern_type_filter: int = field(Int8, since=1, default=3)
    principal_filter: str | None = field(String, nullable=True)
    host_filter: str | None = field(String, nullable=True)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message
class AclDescription:
    """One entry."""

    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message
class DescribeAclsResource:
    """A resource, and its entries."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8, since=1, default=3)
    acls: list[AclDescription] = field(Array(AclDescription))


@message(flexible_from=2)
class DescribeAclsResponse:
    """The resources that have such entries."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    resources: list[DescribeAclsResource] = field(Array(DescribeAclsResource))


API = Api(29, "DescribeAcls", 1, 3, DescribeAclsRequest, DescribeAclsResponse)
