"""AlterConfigs 0-2: replace all dynamic settings of a resource by those given.

0. 1: throttling after the answer. 2: flexible. What is not named goes back to its default, which is
why clients prefer IncrementalAlterConfigs.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String


@message
class AlterableConfig:
    """One setting and its value."""

    name: str = field(String)
    value: str | None = field(String, nullable=True)


@message
class AlterConfigsResource:
    """A topic or broker and its settings."""

    resource_type: int = field(Int8, doc="2: topic. 4: broker. 8: broker logger")
    resource_name: str = field(String)
    configs: list[AlterableConfig] = field(Array(AlterableConfig))


@message(flexible_from=2)
class AlterConfigsRequest:
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


@message(flexible_from=2)
class AlterConfigsResponse:
    """Result of each resource."""

    throttle_time_ms: int = field(Int32)
    responses: list[AlterConfigsResourceResponse] = field(Array(AlterConfigsResourceResponse))


API = Api(33, "AlterConfigs", 0, 2, AlterConfigsRequest, AlterConfigsResponse)
