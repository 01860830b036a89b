"""Pages of connections and of what clients send."""

from collections.abc import Mapping

from broker.explain.page import Page

PAGES: Mapping[str, Page] = {
    "connection_refused": Page(
        "A connection was closed because of what it sent: reason names the rule, detail the rest. "
        "foreign_protocol: it spoke TLS, HTTP or SSH on the Kafka port. frame_size: a length that "
        "no request has. malformed: bytes that are no request. unsupported_version: an API version "
        "that is not served. request_memory: large requests of all clients together take more than "
        "queued.max.request.bytes.",
        "Look at the client that peer names. TLS on a plaintext port is a wrong security.protocol.",
    ),
    "no_sasl_here": Page(
        "A client tried to authenticate by SASL, which this broker's listeners do not have: it was "
        "answered ILLEGAL_SASL_STATE (34), as by a Kafka on a PLAINTEXT listener.",
        "Set the client's security.protocol to PLAINTEXT, or end SASL in a proxy in front.",
    ),
    "connection_broken": Page(
        "A connection failed while it was in use: the network or the client's process went away. "
        "The client connects again and sends what was not answered."
    ),
    "connection_dropped": Page(
        "The broker ended a connection. idle: no traffic for connections.max.idle.ms. "
        "first_frame_late: no whole request within ten seconds of connecting; some clients "
        "(franz-go) connect before they need to, which does no harm. frame_late: a request that "
        "did not arrive whole. stalled_reader: the client does not read its answers. memory: the "
        "answers that wait took too much in all, and this connection's the most.",
        "One that stalls again and again has a consumer that does too much between two polls.",
    ),
    "connection_not_admitted": Page(
        "A new connection was closed at once because of a limit: max_connections, "
        "max_connections_per_ip, max_connection_rate_per_ip, or open_files (ulimit -n leaves none "
        "for it).",
        "Find who opens so many: a client that connects for each record, or a loop of restarts. "
        "Else raise the setting of that name.",
    ),
    "client_throttled": Page(
        "A client exceeded its quota and is answered later; throttle_ms says by how much.",
        "Its quota is shown by kafka-configs --describe; raise it if the client is right.",
    ),
    "dirty_timestamps": Page(
        "A client sends records whose times are out of bounds, or older than the topic keeps. The "
        "line names client, address, partition, direction and what became of them. Only one line a "
        "second and kind is written; horolog time dirty and /api/dirty have the whole list.",
        "Correct the client: reason names the suspected mistake (seconds, microseconds sent as "
        "milliseconds). horolog.timestamp.policy says what happens to such records.",
    ),
    "quarantine_made": Page(
        "A topic for records with bad times was made, since horolog.timestamp.policy is "
        "quarantine: one partition, kept for a week."
    ),
    "quarantine_failed": Page(
        "Records with bad times could not be quarantined, so their batch was refused.",
        "The line says why: a quarantine that is compacted, or has a quarantine of its own, "
        "cannot be used; else its disk failed and the producer tries again.",
    ),
}
