"""PushTelemetry 0: metrics of a client, as OTLP's MetricsData in protobuf (KIP-714)."""

from uuid import UUID

from protocol.api import Api
from protocol.schema import field, message
from protocol.types import Boolean, Bytes, Int8, Int16, Int32, Uuid


@message(flexible_from=0)
class PushTelemetryRequest:
    """Metrics for the subscription of that id; `terminating` says that the client closes."""

    client_instance_id: UUID = field(Uuid)
    subscription_id: int = field(Int32)
    terminating: bool = field(Boolean)
    compression_type: int = field(Int8)
    metrics: bytes = field(Bytes)


@message(flexible_from=0)
class PushTelemetryResponse:
    """The error code of the push."""

    throttle_time_ms: int = field(Int32)
    error_code: int = field(Int16)


API = Api(72, "PushTelemetry", 0, 0, PushTelemetryRequest, PushTelemetryResponse)
