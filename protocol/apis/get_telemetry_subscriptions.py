"""GetTelemetrySubscriptions 0: the metrics that a client should push, and how often (KIP-714)."""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Array, Boolean, Int8, Int16, Int32, String, Uuid


@message(flexible_from=0)
class GetTelemetrySubscriptionsRequest:
    """The id of the client instance; zero asks for a new one."""

    client_instance_id: UUID = field(Uuid)


@message(flexible_from=0)
class GetTelemetrySubscriptionsResponse:
    """Prefixes of metrics, `*` alone for all; codecs by number, the preferred one first."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)
    client_instance_id: UUID = field(Uuid)
    subscription_id: int = field(Int32)
    accepted_compression_types: list[int] = field(Array(Int8))
    push_interval_ms: int = field(Int32)
    telemetry_max_bytes: int = field(Int32)
    delta_temporality: bool = field(Boolean)
    requested_metrics: list[str] = field(Array(String))


API = Api(
    71,
    "GetTelemetrySubscriptions",
    0,
    0,
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
