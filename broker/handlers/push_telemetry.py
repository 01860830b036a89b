"""PushTelemetry: a client hands over its metrics (KIP-714)."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.telemetry.client_telemetry import ClientTelemetry, PushedMetrics
from broker.telemetry.sender import sender_of
from protocol.apis.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from protocol.errors import KafkaError


class Services(NamedTuple):
    """The services that the answer is made with."""

    client_telemetry: ClientTelemetry
    probes: BrokerProbes


Context = RequestContext[Services]


async def handle(request: PushTelemetryRequest, context: Context) -> PushTelemetryResponse:
    """Answered when the metrics are in the scrape; open to every client, as in Kafka."""
    sender = sender_of(context, context.services.client_telemetry)
    pushed = PushedMetrics(
        request.client_instance_id,
        request.subscription_id,
        request.terminating,
        request.compression_type,
        bytes(request.metrics),
    )
    try:
        await context.services.client_telemetry.push(pushed, sender)
    except KafkaError as error:
        context.count_error(error.code)
        return PushTelemetryResponse(error_code=error.code)
    return PushTelemetryResponse()
