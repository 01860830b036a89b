"""ApiVersions 0-4: which APIs and versions this broker serves; the first request of most clients.

0. 1: throttle time. 2: clients expect throttling after the answer. 3: flexible; client name and
version in, features out as tagged fields. 4: a supported feature may start at version 0 (KIP-1022).

The answer's header stays without tags in every version, and a request of a version we do not know
is answered in version 0 with UNSUPPORTED_VERSION (KIP-511). Absent: version 5.
"""

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int16, Int32, Int64, String


@message(flexible_from=3)
class ApiVersionsRequest:
    """Name and version of the client."""

    client_software_name: str = field(String, since=3)
    client_software_version: str = field(String, since=3)


@message
class ApiVersion:
    """One API and its versions, both bounds included."""

    api_key: int = field(Int16)
    min_version: int = field(Int16)
    max_version: int = field(Int16)


@message
class SupportedFeatureKey:
    """A feature and the levels this broker can run at."""

    name: str = field(String, since=3)
    min_version: int = field(Int16, since=3)
    max_version: int = field(Int16, since=3)


@message
class FinalizedFeatureKey:
    """A feature and the levels the cluster has settled on."""

    name: str = field(String, since=3)
    max_version_level: int = field(Int16, since=3)
    min_version_level: int = field(Int16, since=3)


@message(flexible_from=3)
class ApiVersionsResponse:
    """The APIs served."""

    error_code: int = field(Int16)
    api_keys: list[ApiVersion] = field(Array(ApiVersion))
    throttle_time_ms: int = field(Int32, since=1)
    supported_features: list[SupportedFeatureKey] = field(
        Array(SupportedFeatureKey), since=3, tag=0
    )
    finalized_features_epoch: int = field(Int64, since=3, tag=1, default=-1)
    finalized_features: list[FinalizedFeatureKey] = field(
        Array(FinalizedFeatureKey), since=3, tag=2
    )
    zk_migration_ready: bool = field(Boolean, since=3, tag=3)


API = Api(18, "ApiVersions", 0, 4, ApiVersionsRequest, ApiVersionsResponse)
