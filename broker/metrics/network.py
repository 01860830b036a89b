"""Metrics of connections and of bytes on the network."""

from typing import NamedTuple

from broker.metrics.declare import Metric, counter, gauge, labelled, one
from broker.runtime.probes import BrokerProbes
from broker.server.server import Server


class NetworkView(NamedTuple):
    """Services that metrics of the network read."""

    server: Server
    probes: BrokerProbes


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
        "horolog_http_refused_requests",
        "Requests that the HTTP API refused, by the code in the answer.",
        ("code",),
        lambda view: labelled(view.probes.http_refusals),
    ),
)
