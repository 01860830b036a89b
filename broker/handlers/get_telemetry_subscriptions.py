"""GetTelemetrySubscriptions: a client asks which metrics to push, and how often (KIP-714)."""

from typing import NamedTuple

from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import RequestContext
from broker.telemetry.client_telemetry import ClientTelemetry
from broker.telemetry.sender import sender_of
from protocol.apis.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from protocol.errors import KafkaError
from protocol.records.compression import Codec

ACCEPTED = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]
"""In Kafka's order; clients take the first that they have."""


class Services(NamedTuple):
    """The services that the answer is made with."""

    client_telemetry: ClientTelemetry
    probes: BrokerProbes


Context = RequestContext[Services]


def handle(
    request: GetTelemetrySubscriptionsRequest, context: Context
) -> GetTelemetrySubscriptionsResponse:
    """The client's subscription; open to every client that is let in, as in Kafka."""
    telemetry = context.services.client_telemetry
    sender = sender_of(context, telemetry)
    try:
        instance = telemetry.subscribe(request.client_instance_id, sender)
    except KafkaError as error:
        context.count_error(error.code)
        return GetTelemetrySubscriptionsResponse(error_code=error.code)
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=instance.instance_id,
        subscription_id=instance.subscription_id,
        accepted_compression_types=[*ACCEPTED],
        push_interval_ms=instance.subscribed.interval_ms,
        telemetry_max_bytes=telemetry.limits.max_bytes,
        delta_temporality=True,
        requested_metrics=list(instance.subscribed.metrics),
    )
