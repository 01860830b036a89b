"""Metrics of connections and of bytes on the network."""

from typing import NamedTuple

from broker.metrics.declare import Metric, counter, gauge, labelled, one
from broker.runtime.probes import BrokerProbes
from broker.security.sasl.key_source import KeySource
from broker.server.server import Server


class NetworkView(NamedTuple):
    """Services that metrics of the network read."""

    server: Server
    probes: BrokerProbes
    key_sources: dict[str, KeySource]


NETWORK_METRICS: tuple[Metric[NetworkView], ...] = (
    counter(
        "horolog_network_received_bytes",
        "Bytes received from clients.",
        (),
        one(lambda view: view.server.received_bytes),
    ),
    counter(
        "horolog_network_sent_bytes",
        "Bytes sent to clients.",
        (),
        one(lambda view: view.server.sent_bytes),
    ),
    gauge(
        "horolog_network_queued_bytes",
        "Memory in answers that clients have not read yet.",
        (),
        one(lambda view: view.server.queued_bytes),
    ),
    gauge(
        "horolog_network_request_buffer_bytes",
        "Memory that large requests are being received into.",
        (),
        one(lambda view: view.server.pool.used_bytes),
    ),
    gauge(
        "horolog_connections",
        "Open connections.",
        (),
        one(lambda view: len(view.server.connections)),
    ),
    counter(
        "horolog_connections_accepted",
        "Connections accepted.",
        (),
        one(lambda view: view.probes.connections_accepted),
    ),
    counter(
        "horolog_connections_refused",
        "Connections refused by a limit.",
        ("reason",),
        lambda view: labelled(view.probes.connections_refused),
    ),
    counter(
        "horolog_connections_closed",
        "Connections that the broker closed, by the reason.",
        ("reason",),
        lambda view: labelled(view.probes.connections_closed),
    ),
    counter(
        "horolog_foreign_protocol_connections",
        "Connections that spoke another protocol on the Kafka port.",
        ("protocol",),
        lambda view: labelled(view.probes.foreign),
    ),
    counter(
        "horolog_tls_handshakes",
        "TLS handshakes that were done.",
        ("listener",),
        lambda view: labelled(view.probes.tls_handshakes),
    ),
    counter(
        "horolog_tls_handshake_failures",
        "TLS handshakes that came to no good end, by the reason.",
        ("reason",),
        lambda view: labelled(view.probes.tls_failures),
    ),
    gauge(
        "horolog_tls_certificate_not_after_seconds",
        "Time since 1970 at which the certificate of a listener expires.",
        ("listener",),
        lambda view: [((each.name,), each.not_after_seconds) for each in view.server.tls.values()],
    ),
    counter(
        "horolog_sasl_authentications",
        "Proofs by SASL that were right: a connection's first, or again in its session (KIP-368).",
        ("mechanism", "kind"),
        lambda view: list(view.probes.authentications.items()),
    ),
    gauge(
        "horolog_sasl_signing_keys_age_seconds",
        "Time since the keys of OAUTHBEARER were read, by listener.",
        ("listener",),
        lambda view: [
            ((name,), view.probes.monotonic() - each.read_at)
            for name, each in view.key_sources.items()
            if each.read_at is not None
        ],
    ),
    counter(
        "horolog_sasl_signing_keys_failures",
        "Readings of these keys that failed.",
        ("listener",),
        lambda view: [((name,), each.failures) for name, each in view.key_sources.items()],
    ),
    counter(
        "horolog_http_refused_requests",
        "Requests that the HTTP API refused, by the code in the answer.",
        ("code",),
        lambda view: labelled(view.probes.http_refusals),
    ),
)
