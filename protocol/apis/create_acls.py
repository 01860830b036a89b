"""CreateAcls 1-3: adds entries of access control (KIP-140).

1: patterns of names (KIP-290). 2: flexible. 3: the resource type USER. 0 is not served, as in
Kafka 4.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message
class AclCreation:
    """One entry."""

    resource_type: int = field(Int8)
    resource_name: str = field(String)
    resource_pattern_type: int = field(Int8, since=1, default=3)
    principal: str = field(String)
    host: str = field(String)
    operation: int = field(Int8)
    permission_type: int = field(Int8)


@message(flexible_from=2)
class CreateAclsRequest:
    """The entries to add."""

    creations: list[AclCreation] = field(Array(AclCreation))


@message
class AclCreationResult:
    """Result of one entry."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)


@message(flexible_from=2)
class CreateAclsResponse:
    """Result of each entry, in the order of the request."""

    throttle_time_ms: int = field(Int32)
    results: list[AclCreationResult] = field(Array(AclCreationResult))


API = Api(30, "CreateAcls", 1, 3, CreateAclsRequest, CreateAclsResponse)
