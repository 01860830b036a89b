"""IncrementalAlterConfigs 0-1: set, delete, append to or subtract from single settings (KIP-339).

0. 1: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String


@message
class AlterableConfig:
    """One setting and what to do with it."""

    name: str = field(String)
    config_operation: int = field(Int8, doc="0: set. 1: delete. 2: append. 3: subtract")
    value: str | None = field(String, nullable=True)


@message
class AlterConfigsResource:
    """A topic or broker and its settings."""

    resource_type: int = field(Int8, doc="2: topic. 4: broker. 8: broker logger")
    resource_name: str = field(String)
    configs: list[AlterableConfig] = field(Array(AlterableConfig))


@message(flexible_from=1)
class IncrementalAlterConfigsRequest:
    """The resources to change."""

    resources: list[AlterConfigsResource] = field(Array(AlterConfigsResource))
    validate_only: bool = field(Boolean)


@message
class AlterConfigsResourceResponse:
    """Result of one resource."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    resource_type: int = field(Int8)
    resource_name: str = field(String)


@message(flexible_from=1)
class IncrementalAlterConfigsResponse:
    """Result of each resource."""

    throttle_time_ms: int = field(Int32)
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse))


API = Api(
    44,
    "IncrementalAlterConfigs",
    0,
    1,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
