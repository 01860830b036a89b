"""The settings of the broker itself: one statement per key, and the frozen snapshot it reads.

The broker's defaults for topic settings (`log.retention.ms` and the like) are not here: they come
from the declarations in `topic.py`. Names are Kafka's; a default that differs from Kafka's says so.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from config.declare import broker_key
from config.endpoints import Address, HostPort, Listener, ListenerName, Listeners
from config.fleet.url import CatalogUrl, OptionalCatalogUrl
from config.quantities import LONG_MAX
from config.security.oauth import OauthConfig
from config.security.principals import Principals
from config.security.protocols import (
    HTTP,
    KAFKAS_MAP,
    PLAINTEXT,
    SASL,
    SSL,
    TLS,
    NamedProtocol,
    ProtocolMap,
)
from config.security.sasl import IN_CLEAR, SaslMechanisms
from config.security.tls import Block, TlsConfig
from config.tier.url import OptionalTierUrl, TierUrl
from config.values import (
    DOUBLE_MAX,
    INT_MAX,
    Choice,
    Decimal,
    Flag,
    Number,
    Text,
    count,
    millis,
    size,
)

AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)
"""Names of Kafka's authorizers, today's and the one before; ours answers as they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerConfig:
    """All settings of the broker, merged from every layer. `BrokerConfig()` holds the defaults."""

    node_id: int = broker_key(
        "node.id",
        count(),
        1,
        aliases=("broker.id",),
        importance="high",
        doc="Number of this broker in the answers that clients get.",
    )
    cluster_id: str = broker_key(
        "cluster.id",
        Text(r"[A-Za-z0-9_-]*", "letters, digits, - and _"),
        "",
        doc="Name of the cluster in a new data directory; empty makes a random one. A directory "
        "that has a name keeps it.",
    )
    log_dir: str = broker_key(
        "log.dirs",
        Text(r"[^,]+", "one directory"),
        "data",
        aliases=("log.dir",),
        importance="high",
        doc="The data directory; one only.",
    )
    listeners: tuple[Listener, ...] = broker_key(
        "listeners",
        Listeners(),
        (Listener("PLAINTEXT", "127.0.0.1", 9092),),
        importance="high",
        doc="Addresses that clients connect to; no host is every address, port 0 any free port.",
    )
    listener_security_protocol_map: tuple[NamedProtocol, ...] = broker_key(
        "listener.security.protocol.map",
        ProtocolMap(),
        KAFKAS_MAP,
        doc="Protocols of listeners, by their names; SSL is TLS. Once it is changed, or any "
        "listener is not PLAINTEXT, it must name every listener that is not called as a protocol.",
    )
    advertised_listeners: tuple[Listener, ...] = broker_key(
        "advertised.listeners",
        Listeners(optional=True),
        (),
        importance="high",
        doc="Addresses that clients receive, by listener name. A listener without one advertises "
        "the address that the client reached.",
    )
    horolog_published_listeners: tuple[Listener, ...] = broker_key(
        "horolog.published.listeners",
        Listeners(optional=True),
        (),
        doc="Addresses for clients outside of this machine's networks, by listener name, where "
        "advertised.listeners has no entry; for a container, its published ports.",
    )
    controller_listener_names: str = broker_key(
        "controller.listener.names",
        Text(),
        "",
        doc="Listeners, separated by commas, for a controller quorum. There is none here: they are "
        "not opened.",
    )
    horolog_http_listener: Address | None = broker_key(  # noqa: RUF009 - a declaration
        "horolog.http.listener",
        HostPort(),
        Address("127.0.0.1", 9404),
        doc="Address of health, metrics and the admin API; empty serves none.",
    )
    horolog_http_security_protocol: str = broker_key(
        "horolog.http.security.protocol",
        Choice((PLAINTEXT, SSL)),
        PLAINTEXT,
        doc="SSL serves health, metrics and the admin API over https, with the certificate of "
        "listener.name.http.ssl.* or, without, of ssl.*.",
    )
    horolog_http_token_file: str = broker_key(
        "horolog.http.token.file",
        Text(),
        "",
        doc="File of tokens for changes through the admin API, and for all of it on a listener "
        "that is not loopback: lines of ROLE:TOKEN (read, operate, admin), or a token alone. Read "
        "again at SIGHUP.",
    )
    horolog_http_hosts: str = broker_key(
        "horolog.http.hosts",
        Text(r"[A-Za-z0-9_.,\- ]*", "names separated by commas"),
        "",
        doc="Further names that the admin API is reached by, separated by commas; requests to "
        "other names are refused.",
    )
    horolog_admin_listener_name: str = broker_key(
        "horolog.admin.listener.name",
        ListenerName(),
        "",
        doc="The listener of administrators, one beside those of clients: 10 connections are kept "
        "for it, whatever max.connections and its relatives say; empty: none.",
    )
    authorizer_class_name: str = broker_key(
        "authorizer.class.name",
        Choice(("", *AUTHORIZERS)),
        "",
        importance="low",
        doc="Kafka's name of its authorizer switches access control on: entries that kafka-acls "
        "sets decide who may do what. Empty: everything is allowed to everybody.",
    )
    super_users: tuple[str, ...] = broker_key(
        "super.users",
        Principals(),
        (),
        importance="low",
        doc="Users that may do everything, separated by semicolons: User:admin;User:CN=ops,O=us.",
    )
    allow_everyone_if_no_acl_found: bool = broker_key(
        "allow.everyone.if.no.acl.found",
        Flag(),
        False,
        importance="low",
        doc="Allow what no entry is about, neither by the resource's name nor by a pattern.",
    )
    delegation_token_secret_key: str = broker_key(
        "delegation.token.secret.key",
        Block("any text"),
        "",
        sensitive=True,
        doc="Secret that delegation tokens are made with. Another one ends the tokens that there "
        "are. Empty: there are no tokens.",
    )
    delegation_token_max_lifetime_ms: int = broker_key(
        "delegation.token.max.lifetime.ms",
        millis(1),
        604_800_000,
        doc="A delegation token cannot be renewed beyond this age.",
    )
    delegation_token_expiry_time_ms: int = broker_key(
        "delegation.token.expiry.time.ms",
        millis(1),
        86_400_000,
        doc="A delegation token ends after this time unless it is renewed.",
    )
    delegation_token_expiry_check_interval_ms: int = broker_key(
        "delegation.token.expiry.check.interval.ms",
        millis(1),
        3_600_000,
        importance="low",
        doc="Interval at which delegation tokens that have ended are removed. Nobody gets in by "
        "one before that, either.",
    )
    auto_create_topics_enable: bool = broker_key(
        "auto.create.topics.enable",
        Flag(),
        True,
        importance="high",
        doc="Create a topic that a client asks for, up to horolog.max.partitions.",
    )
    delete_topic_enable: bool = broker_key(
        "delete.topic.enable",
        Flag(),
        True,
        importance="high",
        doc="Allow topics to be deleted.",
    )
    num_partitions: int = broker_key(
        "num.partitions",
        count(1),
        1,
        doc="Partitions of a topic that is created without a number.",
    )
    horolog_max_partitions: int = broker_key(
        "horolog.max.partitions",
        count(1),
        10_000,
        dynamic=True,
        doc="Partitions of all topics together, above which none is created.",
    )
    sasl_enabled_mechanisms: tuple[str, ...] = broker_key(
        "sasl.enabled.mechanisms",
        SaslMechanisms(),
        ("SCRAM-SHA-256", "SCRAM-SHA-512"),
        doc="How clients of SASL listeners prove who they are; one listener's own: "
        "listener.name.NAME.sasl.enabled.mechanisms. Kafka's default, GSSAPI, is not served.",
    )
    horolog_sasl_plaintext_allowed: bool = broker_key(
        "horolog.sasl.plaintext.allowed",
        Flag(),
        False,
        doc="Allow PLAIN and OAUTHBEARER on a SASL_PLAINTEXT listener that is not loopback, where "
        "everybody on the way can read passwords and tokens.",
    )
    horolog_sasl_oauthbearer_unsecured: bool = broker_key(
        "horolog.sasl.oauthbearer.unsecured",
        Flag(),
        False,
        doc="Take OAUTHBEARER tokens without a signature, for tests, while all listeners are "
        "loopback: anybody may be anybody (Kafka's default).",
    )
    connections_max_reauth_ms: int = broker_key(
        "connections.max.reauth.ms",
        millis(),
        0,
        doc="Clients of SASL listeners prove again who they are after so long; 0: never. Of one "
        "listener: listener.name.NAME.KEY, of a mechanism: listener.name.NAME.MECHANISM.KEY.",
    )
    sasl_server_max_receive_size: int = broker_key(
        "sasl.server.max.receive.size",
        size(1024),
        65_536,
        doc="Largest request of a client that has not proven who it is (Kafka: 524,288).",
    )
    connection_failed_authentication_delay_ms: int = broker_key(
        "connection.failed.authentication.delay.ms",
        millis(),
        100,
        doc="The answer to a failed authentication waits so long, and then the connection is "
        "closed; twice as long for each further failure from its address, up to 5 seconds.",
    )
    socket_request_max_bytes: int = broker_key(
        "socket.request.max.bytes",
        size(1),
        104_857_600,
        importance="high",
        doc="Largest request; a longer one closes its connection.",
    )
    socket_listen_backlog_size: int = broker_key(
        "socket.listen.backlog.size",
        count(1),
        1024,
        doc="Connections that wait to be accepted; Kafka's 50 makes crowds wait a second.",
    )
    max_connections: int = broker_key(
        "max.connections",
        count(1),
        10_000,
        dynamic=True,
        doc="Connections at one time (Kafka: no limit); those of one listener: "
        "listener.name.NAME.max.connections.",
    )
    max_connections_per_ip: int = broker_key(
        "max.connections.per.ip",
        count(1),
        1000,
        dynamic=True,
        doc="Connections at one time from one address (Kafka: no limit).",
    )
    horolog_max_connection_rate_per_ip: int = broker_key(
        "horolog.max.connection.rate.per.ip",
        count(),
        0,
        dynamic=True,
        doc="New connections in a second from one address, ten seconds' worth of them at once; "
        "more are closed. 0: no limit, as with Kafka.",
    )
    queued_max_request_bytes: int = broker_key(
        "queued.max.request.bytes",
        size(-1, LONG_MAX),
        536_870_912,
        doc="Memory that requests of more than 128 KiB are received into, of all clients together; "
        "a request that would need more closes its connection. -1 (Kafka's default): no limit.",
    )
    connections_max_idle_ms: int = broker_key(
        "connections.max.idle.ms",
        millis(),
        600_000,
        doc="A connection without traffic for so long is closed.",
    )
    horolog_queued_max_response_bytes: int = broker_key(
        "horolog.queued.max.response.bytes",
        size(1),
        8_388_608,
        doc="Answers waiting for one slow reader, above which its requests wait too.",
    )
    horolog_memory_max_bytes: int = broker_key(
        "horolog.memory.max.bytes",
        size(-1, LONG_MAX),
        -1,
        doc="Memory of this process: 70 % of it, or of the control group's or machine's if less, "
        "is shared out to what clients make the broker hold. -1: what the system allows.",
    )
    fetch_max_bytes: int = broker_key(
        "fetch.max.bytes",
        size(1024),
        57_671_680,
        doc="Largest answer to one fetch, whatever the client allows.",
    )
    quota_window_num: int = broker_key(
        "quota.window.num",
        count(1, 10_000),
        11,
        importance="low",
        doc="Number of windows over which the rate of a client with a quota is measured.",
    )
    quota_window_size_seconds: int = broker_key(
        "quota.window.size.seconds",
        count(1, 86_400),
        1,
        importance="low",
        doc="Length of each of these windows.",
    )
    controller_quota_window_num: int = broker_key(
        "controller.quota.window.num",
        count(1, 10_000),
        11,
        importance="low",
        doc="Number of windows for which a client with a quota of changed partitions "
        "(controller_mutation_rate) saves up.",
    )
    controller_quota_window_size_seconds: int = broker_key(
        "controller.quota.window.size.seconds",
        count(1, 86_400),
        1,
        importance="low",
        doc="Length of each of these windows.",
    )
    max_incremental_fetch_session_cache_slots: int = broker_key(
        "max.incremental.fetch.session.cache.slots",
        count(),
        1000,
        doc="Incremental fetch sessions kept at one time.",
    )
    horolog_disk_reserve_bytes: int = broker_key(
        "horolog.disk.reserve.bytes",
        size(-1, LONG_MAX),
        -1,
        dynamic=True,
        doc="Free space below which records are refused (producers retry) and no topic is "
        "made; commits, deletions and compaction go on. -1: a twentieth of it, at most 1 GiB.",
    )
    horolog_disk_ballast_bytes: int = broker_key(
        "horolog.disk.ballast.bytes",
        size(-1, LONG_MAX),
        -1,
        dynamic=True,
        doc="Size of a file of zeros that is removed when others have filled the disk, so that "
        "commits and deletions go on. -1: a hundredth of the disk, at most 32 MiB; 0: none.",
    )
    horolog_crash_loop_starts: int = broker_key(
        "horolog.crash.loop.starts",
        count(),
        0,
        dynamic=True,
        doc="After so many starts within horolog.crash.loop.window.ms that ended within a minute, "
        "and not well, the next one takes no records for a while; 0: never, as with Kafka.",
    )
    horolog_crash_loop_window_ms: int = broker_key(
        "horolog.crash.loop.window.ms",
        millis(1),
        3_600_000,
        dynamic=True,
        doc="Time for which such a start counts.",
    )
    horolog_crash_loop_hold_ms: int = broker_key(
        "horolog.crash.loop.hold.ms",
        millis(),
        600_000,
        dynamic=True,
        doc="Time for which no records are taken and nothing is compacted then; 0 ends it, as "
        "POST /api/starts/confirm does.",
    )
    horolog_scrub_interval_ms: int = broker_key(
        "horolog.scrub.interval.ms",
        millis(1),
        604_800_000,
        dynamic=True,
        doc="Interval at which all closed segments are read again and checked for rot: "
        "records, checksums, indexes. What is found is reported, never changed.",
    )
    horolog_scrub_max_bytes_per_second: int = broker_key(
        "horolog.scrub.max.bytes.per.second",
        size(0, LONG_MAX),
        10_485_760,
        dynamic=True,
        doc="Bytes that this check reads in a second, at the most; 0 rests.",
    )
    horolog_audit_topic: str = broker_key(
        "horolog.audit.topic",
        Text(r"[a-zA-Z0-9._-]{0,249}", "a topic's name, or empty"),
        "",
        doc="Topic in which the broker notes who wrote which offsets with which times: a JSON row "
        "for each client, partition and interval. Internal: clients only read it. 256 MiB or a "
        "week at most; empty: none.",
    )
    horolog_security_audit_file: str = broker_key(
        "horolog.security.audit.file",
        Text(),
        "",
        doc="File of the security audit (changes, denials, failed log-ins, as JSON), readable to "
        "its owner only; at 16 MiB it is rotated, ten older ones stay. Empty: standard error.",
    )
    horolog_security_audit_topic: str = broker_key(
        "horolog.security.audit.topic",
        Text(r"[A-Za-z0-9._-]{0,249}", "the name of a topic"),
        "",
        doc="Topic that gets the lines of the security audit, too. Only the broker writes or "
        "changes it; readers need the right to read it.",
    )
    horolog_audit_interval_ms: int = broker_key(
        "horolog.audit.interval.ms",
        millis(100, INT_MAX),
        60_000,
        dynamic=True,
        doc="Interval at which those rows are written.",
    )
    horolog_client_telemetry_enable: bool = broker_key(
        "horolog.client.telemetry.enable",
        Flag(),
        False,
        doc="Serve GetTelemetrySubscriptions and PushTelemetry: clients push their own metrics, as "
        "subscriptions ask them to, and /metrics shows them. Needs the library of "
        "horolog[telemetry].",
    )
    horolog_client_telemetry_max_series: int = broker_key(
        "horolog.client.telemetry.max.series",
        count(1, 100_000),
        10_000,
        importance="low",
        doc="Series of clients' metrics at once, of all clients; more are dropped and counted.",
    )
    telemetry_max_bytes: int = broker_key(
        "telemetry.max.bytes",
        size(1, 8_388_608),
        1_048_576,
        importance="low",
        doc="Largest push of a client's metrics, packed and unpacked.",
    )
    log_flush_offset_checkpoint_interval_ms: int = broker_key(
        "log.flush.offset.checkpoint.interval.ms",
        millis(1, INT_MAX),
        60_000,
        doc="Interval at which the recovery points are written. They, the log start offsets and "
        "the high watermarks are written together, at the shortest of their three intervals.",
    )
    log_flush_start_offset_checkpoint_interval_ms: int = broker_key(
        "log.flush.start.offset.checkpoint.interval.ms",
        millis(1, INT_MAX),
        60_000,
        doc="Interval at which the log start offsets are written, or a shorter one: see "
        "log.flush.offset.checkpoint.interval.ms.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = broker_key(
        "replica.high.watermark.checkpoint.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Interval at which the high watermarks are written, or a shorter one: see "
        "log.flush.offset.checkpoint.interval.ms.",
    )
    log_retention_check_interval_ms: int = broker_key(
        "log.retention.check.interval.ms",
        millis(1),
        300_000,
        doc="Interval between two rounds of retention.",
    )
    log_initial_task_delay_ms: int = broker_key(
        "log.initial.task.delay.ms",
        millis(),
        30_000,
        importance="low",
        doc="Time from the start to the first round of retention.",
    )
    log_cleaner_enable: bool = broker_key(
        "log.cleaner.enable",
        Flag(),
        True,
        doc="Compact logs of topics with cleanup.policy compact.",
    )
    log_cleaner_threads: int = broker_key(
        "log.cleaner.threads",
        count(1, 64),
        1,
        dynamic=True,
        doc="Logs that are compacted at one time.",
    )
    log_cleaner_dedupe_buffer_size: int = broker_key(
        "log.cleaner.dedupe.buffer.size",
        size(1_048_576, LONG_MAX),
        134_217_728,
        dynamic=True,
        doc="Memory for the last offsets of keys, 24 bytes each, of all compactions together; at "
        "least 1 MiB each. What does not fit is left to the next run.",
    )
    log_cleaner_io_buffer_load_factor: float = broker_key(
        "log.cleaner.io.buffer.load.factor",
        Decimal(0, 1),
        0.9,
        dynamic=True,
        doc="Share of that memory that may be filled: more is slower.",
    )
    log_cleaner_io_buffer_size: int = broker_key(
        "log.cleaner.io.buffer.size",
        size(1024),
        524_288,
        dynamic=True,
        doc="Memory for reading, of all compactions together; a larger batch takes what it needs.",
    )
    log_cleaner_io_max_bytes_per_second: float = broker_key(
        "log.cleaner.io.max.bytes.per.second",
        Decimal(),
        DOUBLE_MAX,
        dynamic=True,
        doc="Bytes that compaction reads and writes in a second, at the most.",
    )
    log_cleaner_backoff_ms: int = broker_key(
        "log.cleaner.backoff.ms",
        millis(1),
        15_000,
        dynamic=True,
        doc="Pause of the cleaner when there is nothing to compact.",
    )
    horolog_clock_step_ms: int = broker_key(
        "horolog.clock.step.ms",
        millis(1),
        1000,
        dynamic=True,
        importance="low",
        doc="A jump of the wall clock against the monotonic one that counts as a step.",
    )
    horolog_clock_hold_ms: int = broker_key(
        "horolog.clock.hold.ms",
        millis(),
        600_000,
        dynamic=True,
        doc="After a step of the clock, or a start far from the last write on the disk, nothing is "
        "removed or rolled by time for so long; 0 ends a hold, as POST /api/clock/confirm does.",
    )
    horolog_flush_interval_ms: int = broker_key(
        "horolog.flush.interval.ms",
        millis(1),
        100,
        doc="With durability interval: unforced records reach the disk within this time.",
    )
    horolog_flush_interval_bytes: int = broker_key(
        "horolog.flush.interval.bytes",
        size(1, LONG_MAX),
        262_144,
        doc="With durability interval: or once so many bytes of a partition are unforced.",
    )
    group_min_session_timeout_ms: int = broker_key(
        "group.min.session.timeout.ms",
        millis(0, INT_MAX),
        6000,
        doc="Shortest session time-out that a member of a group may ask for.",
    )
    group_max_session_timeout_ms: int = broker_key(
        "group.max.session.timeout.ms",
        millis(0, INT_MAX),
        1_800_000,
        doc="Longest session time-out that a member of a group may ask for.",
    )
    group_initial_rebalance_delay_ms: int = broker_key(
        "group.initial.rebalance.delay.ms",
        millis(0, INT_MAX),
        3000,
        doc="Time for which the first rebalance of an empty group waits for more members.",
    )
    group_max_size: int = broker_key(
        "group.max.size",
        count(1, INT_MAX),
        1000,
        doc="Members of one group (Kafka: no limit).",
    )
    group_consumer_session_timeout_ms: int = broker_key(
        "group.consumer.session.timeout.ms",
        millis(1, INT_MAX),
        45_000,
        doc="Session time-out of members that the broker assigns for (KIP-848).",
    )
    group_consumer_heartbeat_interval_ms: int = broker_key(
        "group.consumer.heartbeat.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Interval of heartbeats that such a member is asked for.",
    )
    group_consumer_min_session_timeout_ms: int = broker_key(
        "group.consumer.min.session.timeout.ms",
        millis(1, INT_MAX),
        45_000,
        doc="Shortest session time-out that a group may have as a setting of its own.",
    )
    group_consumer_max_session_timeout_ms: int = broker_key(
        "group.consumer.max.session.timeout.ms",
        millis(1, INT_MAX),
        60_000,
        doc="Longest session time-out that a group may have as a setting of its own.",
    )
    group_consumer_min_heartbeat_interval_ms: int = broker_key(
        "group.consumer.min.heartbeat.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Shortest interval of heartbeats that a group may have as a setting of its own.",
    )
    group_consumer_max_heartbeat_interval_ms: int = broker_key(
        "group.consumer.max.heartbeat.interval.ms",
        millis(1, INT_MAX),
        15_000,
        doc="Longest interval of heartbeats that a group may have as a setting of its own.",
    )
    group_consumer_max_size: int = broker_key(
        "group.consumer.max.size",
        count(1, INT_MAX),
        1000,
        doc="Members of one group that the broker assigns for. Kafka has no limit.",
    )
    group_consumer_assignors: str = broker_key(
        "group.consumer.assignors",
        Text(r"(uniform|range)(,(uniform|range))?", "uniform, range, or both"),
        "uniform,range",
        doc="Assignors of the broker; the first one is used when members do not ask for another.",
    )
    group_consumer_migration_policy: str = broker_key(
        "group.consumer.migration.policy",
        Choice(("bidirectional", "upgrade", "downgrade", "disabled")),
        "bidirectional",
        doc="Migrations of a group with members: from the classic protocol to the new one "
        "(upgrade), back (downgrade), or both.",
    )
    group_consumer_regex_refresh_interval_ms: int = broker_key(
        "group.consumer.regex.refresh.interval.ms",
        millis(10_000, INT_MAX),
        600_000,
        doc="Longest interval between two matches of the regular expressions of subscriptions.",
    )
    group_streams_session_timeout_ms: int = broker_key(
        "group.streams.session.timeout.ms",
        millis(1, INT_MAX),
        45_000,
        doc="Session time-out of members of streams groups (KIP-1071).",
    )
    group_streams_min_session_timeout_ms: int = broker_key(
        "group.streams.min.session.timeout.ms",
        millis(1, INT_MAX),
        45_000,
        doc="Shortest session time-out that a streams group may have.",
    )
    group_streams_max_session_timeout_ms: int = broker_key(
        "group.streams.max.session.timeout.ms",
        millis(1, INT_MAX),
        60_000,
        doc="Longest session time-out that a streams group may have.",
    )
    group_streams_heartbeat_interval_ms: int = broker_key(
        "group.streams.heartbeat.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Interval of heartbeats that members of streams groups are asked for.",
    )
    group_streams_min_heartbeat_interval_ms: int = broker_key(
        "group.streams.min.heartbeat.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Shortest interval of heartbeats that a streams group may have.",
    )
    group_streams_max_heartbeat_interval_ms: int = broker_key(
        "group.streams.max.heartbeat.interval.ms",
        millis(1, INT_MAX),
        15_000,
        doc="Longest interval of heartbeats that a streams group may have.",
    )
    group_streams_assignment_interval_ms: int = broker_key(
        "group.streams.assignment.interval.ms",
        millis(0, INT_MAX),
        1000,
        doc="Shortest time between two assignments of a streams group.",
    )
    group_streams_min_assignment_interval_ms: int = broker_key(
        "group.streams.min.assignment.interval.ms",
        millis(0, INT_MAX),
        0,
        doc="Least that a streams group may have between two assignments.",
    )
    group_streams_max_assignment_interval_ms: int = broker_key(
        "group.streams.max.assignment.interval.ms",
        millis(0, INT_MAX),
        15_000,
        doc="Most that a streams group may have between two assignments.",
    )
    group_streams_initial_rebalance_delay_ms: int = broker_key(
        "group.streams.initial.rebalance.delay.ms",
        millis(0, INT_MAX),
        3000,
        doc="Time for which the first member of a streams group waits for others.",
    )
    group_streams_num_standby_replicas: int = broker_key(
        "group.streams.num.standby.replicas",
        count(0, INT_MAX),
        0,
        doc="Standbys of each task with a state.",
    )
    group_streams_max_standby_replicas: int = broker_key(
        "group.streams.max.standby.replicas",
        count(0, INT_MAX),
        2,
        doc="Most standbys of each task that a streams group may have.",
    )
    group_streams_max_size: int = broker_key(
        "group.streams.max.size",
        count(1, INT_MAX),
        1000,
        doc="Members of one streams group. Kafka has no limit.",
    )
    group_share_session_timeout_ms: int = broker_key(
        "group.share.session.timeout.ms",
        millis(1, INT_MAX),
        45_000,
        doc="Session time-out of members of share groups (KIP-932).",
    )
    group_share_min_session_timeout_ms: int = broker_key(
        "group.share.min.session.timeout.ms",
        millis(1, INT_MAX),
        45_000,
        doc="Shortest session time-out that a share group may have.",
    )
    group_share_max_session_timeout_ms: int = broker_key(
        "group.share.max.session.timeout.ms",
        millis(1, INT_MAX),
        60_000,
        doc="Longest session time-out that a share group may have.",
    )
    group_share_heartbeat_interval_ms: int = broker_key(
        "group.share.heartbeat.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Interval of heartbeats that members of share groups are asked for.",
    )
    group_share_min_heartbeat_interval_ms: int = broker_key(
        "group.share.min.heartbeat.interval.ms",
        millis(1, INT_MAX),
        5000,
        doc="Shortest interval of heartbeats that a share group may have.",
    )
    group_share_max_heartbeat_interval_ms: int = broker_key(
        "group.share.max.heartbeat.interval.ms",
        millis(1, INT_MAX),
        15_000,
        doc="Longest interval of heartbeats that a share group may have.",
    )
    group_share_assignment_interval_ms: int = broker_key(
        "group.share.assignment.interval.ms",
        millis(0, INT_MAX),
        1000,
        doc="Shortest time between two assignments of a share group.",
    )
    group_share_min_assignment_interval_ms: int = broker_key(
        "group.share.min.assignment.interval.ms",
        millis(0, INT_MAX),
        0,
        doc="Least that a share group may have between two assignments.",
    )
    group_share_max_assignment_interval_ms: int = broker_key(
        "group.share.max.assignment.interval.ms",
        millis(0, INT_MAX),
        15_000,
        doc="Most that a share group may have between two assignments.",
    )
    group_share_record_lock_duration_ms: int = broker_key(
        "group.share.record.lock.duration.ms",
        millis(1, INT_MAX),
        30_000,
        doc="Time for which a member of a share group holds a record that it got.",
    )
    group_share_min_record_lock_duration_ms: int = broker_key(
        "group.share.min.record.lock.duration.ms",
        millis(1, INT_MAX),
        15_000,
        doc="Shortest time for which a share group may let members hold records.",
    )
    group_share_max_record_lock_duration_ms: int = broker_key(
        "group.share.max.record.lock.duration.ms",
        millis(1, INT_MAX),
        60_000,
        doc="Longest time for which a share group may let members hold records.",
    )
    group_share_delivery_count_limit: int = broker_key(
        "group.share.delivery.count.limit",
        count(2, 100),
        5,
        doc="Deliveries of a record to a share group, after which it is given up.",
    )
    group_share_min_delivery_count_limit: int = broker_key(
        "group.share.min.delivery.count.limit",
        count(2, 100),
        2,
        doc="Fewest deliveries of a record that a share group may set as its limit.",
    )
    group_share_max_delivery_count_limit: int = broker_key(
        "group.share.max.delivery.count.limit",
        count(2, 100),
        10,
        doc="Most deliveries of a record that a share group may set as its limit.",
    )
    group_share_partition_max_record_locks: int = broker_key(
        "group.share.partition.max.record.locks",
        count(100, 10_000),
        2000,
        doc="Records of one partition that a share group has taken in and not finished.",
    )
    group_share_min_partition_max_record_locks: int = broker_key(
        "group.share.min.partition.max.record.locks",
        count(100, 10_000),
        100,
        doc="Least limit of records in flight that a share group may set.",
    )
    group_share_max_partition_max_record_locks: int = broker_key(
        "group.share.max.partition.max.record.locks",
        count(100, 10_000),
        4000,
        doc="Greatest limit of records in flight that a share group may set.",
    )
    group_share_max_share_sessions: int = broker_key(
        "group.share.max.share.sessions",
        count(1, 100_000),
        2000,
        doc="Share sessions: members of all share groups that fetch.",
    )
    group_share_max_size: int = broker_key(
        "group.share.max.size",
        count(1, 1000),
        200,
        doc="Members of one share group.",
    )
    group_share_assignors: str = broker_key(
        "group.share.assignors",
        Choice(("simple",)),
        "simple",
        doc="The assignor of share groups.",
    )
    errors_deadletterqueue_topic_name_prefix: str = broker_key(
        "errors.deadletterqueue.topic.name.prefix",
        Text(r"[a-zA-Z0-9._-]{0,200}", "the begin of a topic's name, or empty"),
        "dlq.",
        doc="Begin of the names of topics for dead letters of share groups (KIP-1191).",
    )
    errors_deadletterqueue_auto_create_topics_enable: bool = broker_key(
        "errors.deadletterqueue.auto.create.topics.enable",
        Flag(),
        False,
        doc="A topic for dead letters that is missing is made with the first one.",
    )
    horolog_max_groups: int = broker_key(
        "horolog.max.groups",
        count(1),
        10_000,
        doc="Groups at one time, above which none is made.",
    )
    horolog_group_members_max_bytes: int = broker_key(
        "horolog.group.members.max.bytes",
        size(1, LONG_MAX),
        67_108_864,
        doc="Memory for metadata and assignments of the members of all groups.",
    )
    horolog_max_committed_offsets: int = broker_key(
        "horolog.max.committed.offsets",
        count(1),
        1_000_000,
        doc="Committed offsets of all groups, above which commits for more partitions are refused.",
    )
    offset_metadata_max_bytes: int = broker_key(
        "offset.metadata.max.bytes",
        size(0),
        4096,
        doc="Longest text that may be committed with an offset.",
    )
    offsets_retention_minutes: int = broker_key(
        "offsets.retention.minutes",
        count(1, INT_MAX),
        10_080,
        importance="high",
        doc="Offsets of a group are forgotten so long after its last member left it; those of a "
        "consumer outside of any membership, so long after their commit.",
    )
    offsets_retention_check_interval_ms: int = broker_key(
        "offsets.retention.check.interval.ms",
        millis(1),
        600_000,
        doc="Interval at which expired offsets are looked for.",
    )
    offsets_topic_num_partitions: int = broker_key(
        "offsets.topic.num.partitions",
        count(1, 10_000),
        50,
        importance="high",
        doc="Partitions of __consumer_offsets when it is made; never changed afterwards.",
    )
    offsets_topic_segment_bytes: int = broker_key(
        "offsets.topic.segment.bytes",
        size(1_048_576),
        104_857_600,
        doc="Segment size of __consumer_offsets when it is made: small, so that it is compacted.",
    )
    offsets_topic_compression_codec: int = broker_key(
        "offsets.topic.compression.codec",
        count(0, 4),
        0,
        doc="Codec of records of __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    offsets_load_buffer_size: int = broker_key(
        "offsets.load.buffer.size",
        size(1),
        5_242_880,
        doc="Bytes of __consumer_offsets that are read at one time after the start.",
    )
    share_coordinator_state_topic_num_partitions: int = broker_key(
        "share.coordinator.state.topic.num.partitions",
        count(1, 10_000),
        50,
        importance="high",
        doc="Partitions of __share_group_state when it is made; never changed afterwards.",
    )
    share_coordinator_state_topic_segment_bytes: int = broker_key(
        "share.coordinator.state.topic.segment.bytes",
        size(1_048_576),
        104_857_600,
        doc="Segment size of __share_group_state when it is made: small, so that old ones go soon.",
    )
    share_coordinator_state_topic_compression_codec: int = broker_key(
        "share.coordinator.state.topic.compression.codec",
        count(0, 4),
        0,
        doc="Codec of records of __share_group_state: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    share_coordinator_load_buffer_size: int = broker_key(
        "share.coordinator.load.buffer.size",
        size(1),
        5_242_880,
        doc="Bytes of __share_group_state that are read at one time after the start.",
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = broker_key(
        "share.coordinator.snapshot.update.records.per.snapshot",
        count(0, 500),
        500,
        doc="Updates of a share partition after which all that is remembered of it is stored "
        "again.",
    )
    share_coordinator_state_topic_prune_interval_ms: int = broker_key(
        "share.coordinator.state.topic.prune.interval.ms",
        millis(1),
        300_000,
        doc="Interval at which records of __share_group_state that nothing is read from go.",
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = broker_key(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        millis(1),
        300_000,
        doc="Interval at which all that is remembered of share partitions without a snapshot since "
        "the last time is stored again, where that lets more records go.",
    )
    transaction_max_timeout_ms: int = broker_key(
        "transaction.max.timeout.ms",
        count(1, INT_MAX),
        900_000,
        importance="high",
        doc="The longest time-out that a producer may ask for its transactions.",
    )
    transaction_state_log_num_partitions: int = broker_key(
        "transaction.state.log.num.partitions",
        count(1, 10_000),
        50,
        importance="high",
        doc="Partitions of __transaction_state when it is made; never changed afterwards.",
    )
    transaction_state_log_segment_bytes: int = broker_key(
        "transaction.state.log.segment.bytes",
        size(1_048_576),
        104_857_600,
        importance="high",
        doc="Segment size of __transaction_state when it is made: small, so that it is compacted.",
    )
    transaction_state_log_load_buffer_size: int = broker_key(
        "transaction.state.log.load.buffer.size",
        size(1),
        5_242_880,
        importance="high",
        doc="Bytes of __transaction_state that are read at one time after the start.",
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = broker_key(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        millis(1, INT_MAX),
        10_000,
        importance="low",
        doc="Interval at which transactions past their time-out are looked for and aborted.",
    )
    transactional_id_expiration_ms: int = broker_key(
        "transactional.id.expiration.ms",
        millis(1, INT_MAX),
        604_800_000,
        importance="high",
        doc="A transactional id that has no open transaction is forgotten so long after its last "
        "use.",
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = broker_key(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        millis(1, INT_MAX),
        3_600_000,
        importance="low",
        doc="Interval at which expired transactional ids are looked for.",
    )
    producer_id_expiration_ms: int = broker_key(
        "producer.id.expiration.ms",
        millis(1, INT_MAX),
        86_400_000,
        importance="low",
        dynamic=True,
        doc="Time after a producer's last batch (its own time, or its arrival where that is later) "
        "when its partition removes its state, unless it has a transaction open there.",
    )
    producer_id_expiration_check_interval_ms: int = broker_key(
        "producer.id.expiration.check.interval.ms",
        millis(1, INT_MAX),
        600_000,
        importance="low",
        doc="Interval at which expired producers are looked for.",
    )
    horolog_max_transactional_ids: int = broker_key(
        "horolog.max.transactional.ids",
        count(1, INT_MAX),
        100_000,
        doc="Transactional ids that are remembered, at the most, and so the transactions that are "
        "open at one time.",
    )
    horolog_max_transaction_partitions: int = broker_key(
        "horolog.max.transaction.partitions",
        count(1, INT_MAX),
        10_000,
        doc="Partitions of one transaction, at the most.",
    )
    remote_log_storage_system_enable: bool = broker_key(
        "remote.log.storage.system.enable",
        Flag(),
        False,
        doc="Allow topics to have closed segments in an object store (remote.storage.enable); true "
        "needs horolog.tier.url.",
    )
    horolog_tier_url: TierUrl | None = broker_key(  # noqa: RUF009 - a declaration
        "horolog.tier.url",
        OptionalTierUrl(),
        None,
        doc="Place of the tier: a bucket, and a prefix of all names in it, for this broker alone. "
        "Credentials come from the environment, a profile or the machine's role.",
    )
    horolog_tier_allow_http: bool = broker_key(
        "horolog.tier.allow.http",
        Flag(),
        False,
        doc="Allow a store that is reached by http and not on loopback: everybody on the way can "
        "read the data.",
    )
    horolog_tier_max_lag_ms: int = broker_key(
        "horolog.tier.max.lag.ms",
        Number(-LONG_MAX, LONG_MAX, "ms", unlimited=True),
        -1,
        doc="Longest time that a record of a tiered topic waits for the end of its segment, which "
        "is then copied: what the loss of the disk can cost. -1: as the topic's settings say.",
    )
    horolog_tier_compacted: bool = broker_key(
        "horolog.tier.compacted",
        Flag(),
        False,
        doc="Allow remote.storage.enable on topics with cleanup.policy=compact, which Kafka "
        "refuses: they are compacted in both tiers.",
    )
    horolog_tier_cache_dir: str = broker_key(
        "horolog.tier.cache.dir",
        Text(),
        "",
        doc="Directory for what was read from the tier, emptied at each start; one with other "
        "files is refused. Empty: beside the data directory.",
    )
    horolog_tier_cache_bytes: int = broker_key(
        "horolog.tier.cache.bytes",
        size(1_048_576, LONG_MAX),
        4_294_967_296,
        doc="Size of that directory at the most, in blocks of 1 MiB.",
    )
    horolog_tier_sweep_interval_ms: int = broker_key(
        "horolog.tier.sweep.interval.ms",
        millis(100),
        86_400_000,
        doc="Interval of the search for objects of the tier that nothing names. What one search "
        "finds, the next one removes.",
    )
    horolog_tier_orphan_min_age_ms: int = broker_key(
        "horolog.tier.orphan.min.age.ms",
        millis(),
        86_400_000,
        doc="Age, by the store's clock, below which no object counts as one that nothing names.",
    )
    horolog_tier_manifest_retention_ms: int = broker_key(
        "horolog.tier.manifest.retention.ms",
        millis(-1),
        604_800_000,
        doc="Time to every moment of which horolog restore --at goes back; -1: for ever. Records "
        "removed or compacted since are there for file.delete.delay.ms. The sweep removes older "
        "manifests.",
    )
    horolog_fleet_url: CatalogUrl | None = broker_key(  # noqa: RUF009 - a declaration
        "horolog.fleet.url",
        OptionalCatalogUrl(),
        None,
        doc="Database of PostgreSQL by which several brokers are one fleet; empty: this broker "
        "stands alone. Needs horolog.tier.url. The password comes from PGPASSFILE or PGPASSWORD.",
    )
    horolog_fleet_allow_plaintext: bool = broker_key(
        "horolog.fleet.allow.plaintext",
        Flag(),
        False,
        doc="Allow a database on another machine that is reached without TLS: everybody on the "
        "way can read the data, and change it.",
    )
    horolog_fleet_lease_ms: int = broker_key(
        "horolog.fleet.lease.ms",
        millis(500, 600_000),
        5000,
        doc="Time without a sign of life after which other nodes take over the partitions of one. "
        "It is renewed five times as often.",
    )
    horolog_fleet_flush_ms: int = broker_key(
        "horolog.fleet.flush.ms",
        millis(0, 10_000),
        5,
        doc="Least time from the begin of one commit to that of the next.",
    )
    horolog_fleet_inline_bytes: int = broker_key(
        "horolog.fleet.inline.bytes",
        size(0, 16_777_216),
        65_536,
        doc="Size up to which the bytes of a commit go into the database; those of larger ones go "
        "to the object store.",
    )
    horolog_fleet_rows_max_bytes: int = broker_key(
        "horolog.fleet.rows.max.bytes",
        size(1_048_576, 1 << 50),
        1_073_741_824,
        doc="Bytes of records that a node leaves in the database while the object store takes "
        "none. Above it producers get NOT_ENOUGH_REPLICAS, and try again; there is room again when "
        "a quarter of it is free.",
    )
    horolog_fleet_checkpoint_ms: int = broker_key(
        "horolog.fleet.checkpoint.ms",
        millis(1000),
        30_000,
        doc="Interval at which bytes in the database go to the object store.",
    )
    horolog_fleet_balance_bytes: int = broker_key(
        "horolog.fleet.balance.bytes",
        size(0, 1 << 40),
        2_097_152,
        doc="Bytes a second that one node takes more from producers than another, from which on it "
        "gives it a shard, one a minute; 0: shards go by their numbers alone.",
    )
    horolog_fleet_commit_timeout_ms: int = broker_key(
        "horolog.fleet.commit.timeout.ms",
        millis(1000),
        15_000,
        doc="Time after which a record that is not committed is answered with REQUEST_TIMED_OUT. "
        "It may still be committed.",
    )
    horolog_fleet_listener: str = broker_key(
        "horolog.fleet.listener",
        Text(),
        "",
        doc="In a fleet: the listener by which nodes ask each other; empty: the first one. All "
        "nodes need it, by one name.",
    )
    horolog_fleet_client_config: str = broker_key(
        "horolog.fleet.client.config",
        Text(),
        "",
        doc="File with the settings by which a node of a fleet asks others: security.protocol, "
        "sasl.*, ssl.*. Its user needs ClusterAction. Without it nodes ask in the clear, or not at "
        "all.",
    )
    remote_log_manager_task_interval_ms: int = broker_key(
        "remote.log.manager.task.interval.ms",
        millis(1),
        30_000,
        importance="low",
        doc="Interval at which segments are copied to the tier and expired ones removed from it.",
    )
    remote_log_manager_copier_thread_pool_size: int = broker_key(
        "remote.log.manager.copier.thread.pool.size",
        count(1),
        10,
        dynamic=True,
        doc="Partitions whose segments are copied to the tier at one time.",
    )
    remote_log_manager_expiration_thread_pool_size: int = broker_key(
        "remote.log.manager.expiration.thread.pool.size",
        count(1),
        10,
        dynamic=True,
        doc="Partitions whose expired segments are removed from the tier at one time.",
    )
    remote_log_manager_copy_max_bytes_per_second: int = broker_key(
        "remote.log.manager.copy.max.bytes.per.second",
        size(1, LONG_MAX),
        LONG_MAX,
        dynamic=True,
        doc="Bytes that are copied to the tier in a second, of all partitions together.",
    )
    remote_log_manager_fetch_max_bytes_per_second: int = broker_key(
        "remote.log.manager.fetch.max.bytes.per.second",
        size(1, LONG_MAX),
        LONG_MAX,
        dynamic=True,
        doc="Bytes that are read from the tier in a second, of all partitions together.",
    )
    remote_log_reader_threads: int = broker_key(
        "remote.log.reader.threads",
        count(1),
        10,
        dynamic=True,
        doc="Reads of the tier at one time.",
    )
    remote_log_reader_max_pending_tasks: int = broker_key(
        "remote.log.reader.max.pending.tasks",
        count(1),
        100,
        doc="Reads of the tier that wait for their turn, above which a fetch is answered with an "
        "error that clients retry.",
    )
    remote_fetch_max_wait_ms: int = broker_key(
        "remote.fetch.max.wait.ms",
        millis(1, INT_MAX),
        500,
        dynamic=True,
        doc="Time for which a fetch waits for the tier; after it, the answer is empty and the read "
        "goes on.",
    )
    remote_list_offsets_request_timeout_ms: int = broker_key(
        "remote.list.offsets.request.timeout.ms",
        millis(1),
        30_000,
        dynamic=True,
        doc="Time for which a search by time waits for the tier.",
    )
    listener_max_connections: Mapping[str, int] = field(default_factory=dict)
    """By listener, of those with `listener.name.NAME.max.connections` (see `listener_keys`)."""
    listener_tls: Mapping[str, TlsConfig] = field(default_factory=dict)
    """By listener, of those that speak TLS; the HTTP port's name is HTTP."""
    listener_sasl_mechanisms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By listener, of those with mechanisms of their own."""
    listener_oauth: Mapping[str, OauthConfig] = field(default_factory=dict)
    """By listener, of those that take OAUTHBEARER."""
    listener_reauth_ms: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By listener with SASL and mechanism, of those with `connections.max.reauth.ms` of their own.
    """
    listener_of_key: Mapping[str, str] = field(default_factory=dict)
    """The listener of each key that is set as `listener.name.NAME.KEY`."""

    @property
    def client_listeners(self) -> tuple[Listener, ...]:
        """The listeners that are opened: all but a controller's."""
        names = self.controller_listener_names.upper().replace(",", " ").split()
        return tuple(each for each in self.listeners if each.name not in names)

    @property
    def sasl_listeners(self) -> tuple[Listener, ...]:
        """The listeners whose clients have to prove who they are."""
        return tuple(each for each in self.client_listeners if self._speaks(each, SASL))

    def mechanisms_of(self, listener: str) -> tuple[str, ...]:
        """The ways in which clients of a SASL listener prove who they are."""
        return self.listener_sasl_mechanisms.get(listener, self.sasl_enabled_mechanisms)

    def longest_sessions_ms(self, listener: str) -> dict[str, int]:
        """By mechanism, after how long clients prove their names again; 0: never."""
        own, of_all = self.listener_reauth_ms, self.connections_max_reauth_ms
        return {each: own.get((listener, each), of_all) for each in self.mechanisms_of(listener)}

    def shows_passwords(self, listener: str) -> bool:
        """True when secrets may be sent there as they are, and nobody said networks may see it."""
        shown = not set(IN_CLEAR).isdisjoint(self.mechanisms_of(listener))
        return shown and not self.horolog_sasl_plaintext_allowed

    @property
    def tls_listeners(self) -> tuple[Listener, ...]:
        """The listeners whose bytes are encrypted."""
        return tuple(each for each in self.client_listeners if self._speaks(each, TLS))

    @property
    def http_has_tls(self) -> bool:
        """True when the HTTP port speaks https; its name among listeners is then HTTP."""
        is_served = self.horolog_http_listener is not None
        return is_served and self.horolog_http_security_protocol == SSL

    def is_of_http_port(self, listener: str) -> bool:
        """True for the name under which the HTTP port has settings of a listener."""
        return listener == HTTP and all(each.name != HTTP for each in self.client_listeners)

    def _speaks(self, listener: Listener, protocols: Collection[str]) -> bool:
        return self.protocol_of(listener.name) in protocols

    def protocol_of(self, listener: str) -> str | None:
        """The protocol that a listener speaks; None when nothing names it."""
        known = {each.listener: each.protocol for each in self.listener_security_protocol_map}
        return known.get(listener)

    @property
    def is_secured(self) -> bool:
        """True when some listener is not PLAINTEXT, or the map of protocols says more than names.

        A listener without protocol is PLAINTEXT only where nothing at all is secured.
        """
        protocols = {self.protocol_of(each.name) or PLAINTEXT for each in self.client_listeners}
        return self.listener_security_protocol_map != KAFKAS_MAP or protocols != {PLAINTEXT}

    @property
    def streams_group_bounds(self) -> Mapping[str, tuple[int, int, int]]:
        """Least, default and most of settings of streams groups, by the ends of their names."""
        return {
            "session.timeout.ms": (
                self.group_streams_min_session_timeout_ms,
                self.group_streams_session_timeout_ms,
                self.group_streams_max_session_timeout_ms,
            ),
            "heartbeat.interval.ms": (
                self.group_streams_min_heartbeat_interval_ms,
                self.group_streams_heartbeat_interval_ms,
                self.group_streams_max_heartbeat_interval_ms,
            ),
            "assignment.interval.ms": (
                self.group_streams_min_assignment_interval_ms,
                self.group_streams_assignment_interval_ms,
                self.group_streams_max_assignment_interval_ms,
            ),
        }

    @property
    def share_group_bounds(self) -> Mapping[str, tuple[int, int, int]]:
        """Least, default and most of settings of share groups, by the ends of their names."""
        return {
            "session.timeout.ms": (
                self.group_share_min_session_timeout_ms,
                self.group_share_session_timeout_ms,
                self.group_share_max_session_timeout_ms,
            ),
            "heartbeat.interval.ms": (
                self.group_share_min_heartbeat_interval_ms,
                self.group_share_heartbeat_interval_ms,
                self.group_share_max_heartbeat_interval_ms,
            ),
            "assignment.interval.ms": (
                self.group_share_min_assignment_interval_ms,
                self.group_share_assignment_interval_ms,
                self.group_share_max_assignment_interval_ms,
            ),
            "record.lock.duration.ms": (
                self.group_share_min_record_lock_duration_ms,
                self.group_share_record_lock_duration_ms,
                self.group_share_max_record_lock_duration_ms,
            ),
            "delivery.count.limit": (
                self.group_share_min_delivery_count_limit,
                self.group_share_delivery_count_limit,
                self.group_share_max_delivery_count_limit,
            ),
            "partition.max.record.locks": (
                self.group_share_min_partition_max_record_locks,
                self.group_share_partition_max_record_locks,
                self.group_share_max_partition_max_record_locks,
            ),
        }
