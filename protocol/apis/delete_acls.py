"""DeleteAcls 1-3: takes the entries of access control away that a filter lets through (KIP-140).

1: patterns of names (KIP-290). 2: flexible. 3: the resource type USER. 0 is not served, as in
Kafka 4.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message
class DeleteAclsFilter:
    """A filter; null and the numbers of ANY let everything through."""

    resource_type_filter: int = field(Int8)
    resource_name_filter: str | None = field(String, nullable=True)
    pattern_type_filter: int = field(Int8, since=1, default=3)
    principal_filter: str | None = field(String, nullable=True)
    host_filter: str | None = field(String, nullable=True)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(flexible_from=2)
class DeleteAclsRequest:
    """The filters."""

    filters: list[DeleteAclsFilter] = field(Array(DeleteAclsFilter))


@message
class DeleteAclsMatchingAcl:
    """An entry that a filter let through; it is gone if it has no error."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    pattern_type: int = field(Int8, since=1, default=3)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message
class DeleteAclsFilterResult:
    """Result of one filter."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    matching_acls: list[DeleteAclsMatchingAcl] = field(Array(DeleteAclsMatchingAcl))


@message(flexible_from=2)
class DeleteAclsResponse:
    """Result of each filter, in the order of the request."""

    throttle_time_ms: int = field(Int32)
    filter_results: list[DeleteAclsFilterResult] = field(Array(DeleteAclsFilterResult))


API = Api(31, "DeleteAcls", 1, 3, DeleteAclsRequest, DeleteAclsResponse)
