"""DescribeConfigs 0-4: the settings of topics and brokers, and where each comes from.

0: whether a value is the default. 1: its source instead, and synonyms. 2: throttling after the
answer. 3: type and documentation (KIP-569). 4: flexible.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String


@message
class DescribeConfigsResource:
    """Resource to describe; no keys (None) is all of them."""

    resource_type: int = field(Int8, doc="2: topic. 4: broker. 8: broker logger")
    resource_name: str = field(String)
    configuration_keys: list[str] | None = field(Array(String), nullable=True)


@message(flexible_from=4)
class DescribeConfigsRequest:
    """The resources to describe."""

    resources: list[DescribeConfigsResource] = field(Array(DescribeConfigsResource))
    include_synonyms: bool = field(Boolean, since=1)
    include_documentation: bool = field(Boolean, since=3)


@message
class DescribeConfigsSynonym:
    """A key and value from which a setting would be taken, in order of precedence."""

    name: str = field(String, since=1)
    value: str | None = field(String, since=1, nullable=True)
    source: int = field(Int8, since=1)


@message
class DescribeConfigsResourceResult:
    """One setting."""

    name: str = field(String)
    value: str | None = field(String, nullable=True)
    read_only: bool = field(Boolean)
    is_default: bool = field(Boolean, until=0)
    config_source: int = field(Int8, since=1, default=-1)
    is_sensitive: bool = field(Boolean)
    synonyms: list[DescribeConfigsSynonym] = field(Array(DescribeConfigsSynonym), since=1)
    config_type: int = field(Int8, since=3)
    documentation: str | None = field(String, since=3, nullable=True)


@message
class DescribeConfigsResult:
    """The settings of one resource."""

    error_code: int = field(Int16)
    error_message: str | None = field(String, nullable=True)
    resource_type: int = field(Int8)
    resource_name: str = field(String)
    configs: list[DescribeConfigsResourceResult] = field(Array(DescribeConfigsResourceResult))


@message(flexible_from=4)
class DescribeConfigsResponse:
    """The settings of each resource."""

    throttle_time_ms: int = field(Int32)
    results: list[DescribeConfigsResult] = field(Array(DescribeConfigsResult))


API = Api(32, "DescribeConfigs", 0, 4, DescribeConfigsRequest, DescribeConfigsResponse)
