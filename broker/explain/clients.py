"""Pages of connections and of what clients send."""

from collections.abc import Mapping

from broker.explain.page import Page

PAGES: Mapping[str, Page] = {
    "connection_refused": Page(
        "A connection was closed because of what it sent: reason names the rule, detail the rest. "
        "foreign_protocol: it spoke TLS, HTTP or SSH on the Kafka port. frame_size: a length that "
        "no request has. malformed: bytes that are no request. unsupported_version: an API version "
        "that is not served. request_memory: large requests of all clients together take more than "
        "queued.max.request.bytes. illegal_sasl_state: a request before the client has proven who "
        "it is. authentication_busy: too many passwords are being compared. "
        "session_expired: its session is over (connections.max.reauth.ms, or the end of its token) "
        "and it has not authenticated again. "
        "empty_records: TLS records without data, one after the other.",
        "Look at the client that peer names. TLS on a plaintext port is a wrong security.protocol.",
    ),
    "tls_handshake_failed": Page(
        "A client of a listener with TLS did not come through the handshake. reason no_tls: it "
        "does not speak TLS; detail says what it speaks. refused_by_client: it does not "
        "trust the broker's certificate, or detail names another reason of its own. "
        "certificate_refused, no_certificate: its own certificate is not one of the truststore's, "
        "or is missing. principal_refused: no rule of ssl.principal.mapping.rules matches its "
        "subject. protocol_version, no_shared_cipher: it has no TLS version or cipher suite "
        "in common. too_large, crowded: more bytes than a handshake takes, or too many at once. "
        "malformed: bytes that are no handshake.",
        "Set the client's security.protocol to SSL, its ssl.truststore (ssl.ca.location) to the "
        "authority of the broker's certificate, and the name it connects to one in that.",
    ),
    "no_sasl_here": Page(
        "A client tried to authenticate by SASL where it need not: on a listener without SASL, or "
        "once more after it was let in. It was answered ILLEGAL_SASL_STATE (34), as by Kafka.",
        "Set the client's security.protocol to that of the listener it connects to.",
    ),
    "authentication_failed": Page(
        "A client did not prove who it is: a wrong name or password, or a mechanism that is not "
        "enabled. It was answered after a delay (connection.failed.authentication.delay.ms, longer "
        "with each failure from its address), and its connection was closed. As a line of the "
        "security audit: also a wrong client certificate, or a wrong token of the HTTP API; "
        "principal is the name it gave, if there is such a user.",
        "Look at the client that peer names: its sasl.mechanism, user and password. Many of them "
        "from one address are guesses of passwords.",
    ),
    "signing_keys_read": Page(
        "The keys that tokens of OAUTHBEARER are signed with were read, for the first time or with "
        "changes. source is where from, keys how many can be used.",
    ),
    "signing_keys_not_read": Page(
        "The keys that tokens of OAUTHBEARER are signed with could not be read; detail says why, "
        "tries how often in a row. The last good keys stay in force; without any, nobody logs in "
        "by a token. It is tried again by sasl.oauthbearer.jwks.endpoint.retry.backoff.*.",
        "Fetch the address of source from this machine (curl). A certificate that is not trusted: "
        "horolog.sasl.oauthbearer.truststore.location. SIGHUP tries at once.",
    ),
    "client_metrics_pattern_not_used": Page(
        "A subscription to metrics of clients has a pattern that cannot be matched in linear "
        "time: with a look-ahead, a back reference or another such part. error says which. The "
        "subscription matches no client.",
        "Write the pattern without that part: horolog takes what RE2 takes, for the whole of the "
        "fact. kafka-client-metrics.sh --alter --name SUBSCRIPTION --match ... replaces it.",
    ),
    "connection_broken": Page(
        "A connection failed while it was in use: the network or the client's process went away. "
        "The client connects again and sends what was not answered."
    ),
    "connection_dropped": Page(
        "The broker ended a connection. idle: no traffic for connections.max.idle.ms. "
        "first_frame_late: no whole request within ten seconds of connecting; some clients "
        "(franz-go) connect before they need to, which does no harm. handshake_late: no TLS "
        "within that time. frame_late: a request that "
        "did not arrive whole. stalled_reader: the client does not read its answers. memory: the "
        "answers that wait took too much in all, and this connection's the most. "
        "authentication_late: the client did not prove who it is within ten seconds. "
        "unauthenticated: a tenth of max.connections are clients that have not proven it, and this "
        "one is the oldest of them. credential_removed: its user was removed.",
        "One that stalls again and again has a consumer that does too much between two polls.",
    ),
    "connection_not_admitted": Page(
        "A new connection was closed because of a limit: max_connections, "
        "max_connections_per_ip, max_connection_rate_per_ip, open_files (ulimit -n leaves none "
        "for it), or connection_creation_rate, the quota of its address.",
        "Find who opens so many: a client that connects for each record, or a loop of restarts. "
        "Else raise the setting of that name; a quota by kafka-configs --entity-type ips.",
    ),
    "client_throttled": Page(
        "A client exceeded its quota and is answered later; throttle_ms says by how much. Topics "
        "and partitions beyond controller_mutation_rate are refused meanwhile.",
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
