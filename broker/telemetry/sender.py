"""Facts about the client that a request came from."""

from typing import Any

from broker.runtime.request_context import RequestContext
from broker.server.client_software import MOST_CHARACTERS
from broker.telemetry.client_telemetry import ClientTelemetry, PushSender
from broker.telemetry.facts import ClientFacts


def sender_of(context: RequestContext[Any], telemetry: ClientTelemetry) -> PushSender:
    """The client, as far as its connection and its header tell."""
    client_id, peer = context.header.client_id, context.peer
    name, version = telemetry.software.of(peer.connection_id)
    facts = ClientFacts(
        None if client_id is None else client_id[:MOST_CHARACTERS],
        name,
        version,
        peer.client_host,
        peer.client_port,
    )
    return PushSender(peer.connection_id, facts)
