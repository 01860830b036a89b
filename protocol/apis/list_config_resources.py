"""ListConfigResources 0-1: the resources that have settings of their own (KIP-1142).

0: resources of client metrics, as ListClientMetricsResources (KIP-714). 1: kinds.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Int8, Int16, Int32, String


@message(flexible_from=0)
class ListConfigResourcesRequest:
    """Kinds of resources to list; none means every kind."""

    resource_types: list[int] = field(Array(Int8), since=1)


@message
class ListedConfigResource:
    """One resource."""

    resource_name: str = field(String)
    resource_type: int = field(Int8, since=1, default=16)


@message(flexible_from=0)
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    config_resources: list[ListedConfigResource] = field(Array(ListedConfigResource))


API = Api(74, "ListConfigResources", 0, 1, ListConfigResourcesRequest, ListConfigResourcesResponse)
