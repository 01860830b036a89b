"""The settings of a group: one statement per key, and the frozen snapshot that coordinators read.

Each has its default on the broker. Two keys of the broker bound what a group may set; a value that
was within them when it was set is taken to the nearer one once they change (KIP-848, and
`GroupConfig` of Kafka 4.3, with its texts).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from operator import attrgetter

from config.broker import BrokerConfig
from config.declare import group_key, keys_of
from config.errors import ConfigError
from config.key import ConfigKey
from config.layers import Setting
from config.names import Named
from config.offset_reset import LATEST, OffsetReset
from config.values import INT_MAX, Choice, Flag, Text, count, millis

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SHARE_SESSION, SHARE_HEARTBEAT = "share.session.timeout.ms", "share.heartbeat.interval.ms"
STREAMS_SESSION, STREAMS_HEARTBEAT = "streams.session.timeout.ms", "streams.heartbeat.interval.ms"
STANDBYS = "streams.num.standby.replicas"
STREAMS_BOUNDED = ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms")
"""As `SHARE_BOUNDED`, of streams groups."""
SHARE_BOUNDED = (
    "session.timeout.ms",
    "heartbeat.interval.ms",
    "assignment.interval.ms",
    "record.lock.duration.ms",
    "delivery.count.limit",
    "partition.max.record.locks",
)
"""Ends of the names of settings of share groups that have bounds on the broker."""
OFFSET_RESET = "share.auto.offset.reset"
READ_COMMITTED = "read_committed"
NO_DELAY, DELAY_BY_RECORD_TIME, DELAY_BY_HEADER = "none", "record-time", "header"
DELAY_MS, DELAY_MAX_MS = "horolog.share.delay.ms", "horolog.share.delay.max.ms"
DAY_MS = 86_400_000
LETTERS = "errors.deadletterqueue.topic.name"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """All settings of one group, merged from every layer. `GroupConfig()` holds the defaults."""

    consumer_session_timeout_ms: int = group_key(
        SESSION,
        millis(1, INT_MAX),
        45_000,
        broker="group.consumer.session.timeout.ms",
        doc="Session time-out of members that the broker assigns for. More than "
        "consumer.heartbeat.interval.ms.",
    )
    consumer_heartbeat_interval_ms: int = group_key(
        HEARTBEAT,
        millis(1, INT_MAX),
        5000,
        broker="group.consumer.heartbeat.interval.ms",
        doc="Interval of heartbeats that such a member is asked for.",
    )
    streams_session_timeout_ms: int = group_key(
        STREAMS_SESSION,
        millis(1, INT_MAX),
        45_000,
        broker="group.streams.session.timeout.ms",
        doc="Session time-out of members of a streams group. More than "
        "streams.heartbeat.interval.ms.",
    )
    streams_heartbeat_interval_ms: int = group_key(
        STREAMS_HEARTBEAT,
        millis(1, INT_MAX),
        5000,
        broker="group.streams.heartbeat.interval.ms",
        doc="Interval of heartbeats that such a member is asked for.",
    )
    streams_assignment_interval_ms: int = group_key(
        "streams.assignment.interval.ms",
        millis(0, INT_MAX),
        1000,
        broker="group.streams.assignment.interval.ms",
        doc="Shortest time between two assignments of a streams group.",
    )
    streams_initial_rebalance_delay_ms: int = group_key(
        "streams.initial.rebalance.delay.ms",
        millis(0, INT_MAX),
        3000,
        broker="group.streams.initial.rebalance.delay.ms",
        doc="Time for which the first member of a streams group waits for others.",
    )
    streams_num_standby_replicas: int = group_key(
        STANDBYS,
        count(0, INT_MAX),
        0,
        broker="group.streams.num.standby.replicas",
        doc="Standbys of each task with a state, which another process takes over at once.",
    )
    share_session_timeout_ms: int = group_key(
        SHARE_SESSION,
        millis(1, INT_MAX),
        45_000,
        broker="group.share.session.timeout.ms",
        doc="Session time-out of members of a share group. More than share.heartbeat.interval.ms.",
    )
    share_heartbeat_interval_ms: int = group_key(
        SHARE_HEARTBEAT,
        millis(1, INT_MAX),
        5000,
        broker="group.share.heartbeat.interval.ms",
        doc="Interval of heartbeats that such a member is asked for.",
    )
    share_assignment_interval_ms: int = group_key(
        "share.assignment.interval.ms",
        millis(0, INT_MAX),
        1000,
        broker="group.share.assignment.interval.ms",
        doc="Shortest time between two assignments of a share group.",
    )
    share_record_lock_duration_ms: int = group_key(
        "share.record.lock.duration.ms",
        millis(1, INT_MAX),
        30_000,
        broker="group.share.record.lock.duration.ms",
        doc="Time for which a member of a share group holds a record that it got.",
    )
    share_delivery_count_limit: int = group_key(
        "share.delivery.count.limit",
        count(2, 100),
        5,
        broker="group.share.delivery.count.limit",
        doc="Deliveries of a record, after which it is given up.",
    )
    share_partition_max_record_locks: int = group_key(
        "share.partition.max.record.locks",
        count(100, 10_000),
        2000,
        broker="group.share.partition.max.record.locks",
        doc="Records of one partition that are taken in and not finished.",
    )
    share_auto_offset_reset: str = group_key(
        OFFSET_RESET,
        OffsetReset(),
        LATEST,
        broker=None,
        doc="Where a share group begins to read a partition, at its first fetch.",
    )
    share_isolation_level: str = group_key(
        "share.isolation.level",
        Choice(("read_uncommitted", READ_COMMITTED)),
        "read_uncommitted",
        broker=None,
        doc="Which records a share group gets: those of open and aborted transactions too, or not.",
    )
    share_renew_acknowledge_enable: bool = group_key(
        "share.renew.acknowledge.enable",
        Flag(),
        True,
        broker=None,
        doc="Members may hold records for longer by renewing (KIP-1222).",
    )
    horolog_share_retry_backoff_ms: int = group_key(
        "horolog.share.retry.backoff.ms",
        millis(0, INT_MAX),
        0,
        broker=None,
        doc="Time from a release, or the end of a lock, to the next delivery of the record; twice "
        "as long after each delivery. 0: none. A restart of the broker forgets it.",
    )
    horolog_share_retry_backoff_max_ms: int = group_key(
        "horolog.share.retry.backoff.max.ms",
        millis(0, INT_MAX),
        60_000,
        broker=None,
        doc="Longest time between two deliveries of a record that the back-off may come to.",
    )
    horolog_share_delay: str = group_key(
        "horolog.share.delay",
        Choice((NO_DELAY, DELAY_BY_RECORD_TIME, DELAY_BY_HEADER)),
        NO_DELAY,
        broker=None,
        doc="What says when a record is due, before which no member gets it: its time "
        "(record-time), or the header horolog-deliver-at with ms since 1970, as decimal digits or "
        "as a big-endian number of eight bytes (header).",
    )
    horolog_share_delay_ms: int = group_key(
        DELAY_MS,
        millis(0, 365 * DAY_MS),
        0,
        broker=None,
        doc="Time from the arrival of a record before which no member gets it.",
    )
    horolog_share_delay_max_ms: int = group_key(
        DELAY_MAX_MS,
        millis(1, 365 * DAY_MS),
        7 * DAY_MS,
        broker=None,
        doc="Longest time for which a record waits after its arrival, whatever its time or header "
        "says.",
    )
    horolog_share_delay_max_pending: int = group_key(
        "horolog.share.delay.max.pending",
        count(1, 10_000_000),
        1_000_000,
        broker=None,
        doc="Records of one partition that wait for their time. Those behind them are taken in "
        "later, and may then be late.",
    )
    horolog_share_retention_hold: bool = group_key(
        "horolog.share.retention.hold",
        Flag(),
        False,
        broker=None,
        doc="Retention by time and by size leaves segments with records that the group has not "
        "finished, but only for horolog.share.delay.max.ms after the last arrival in them.",
    )
    errors_deadletterqueue_topic_name: str = group_key(
        LETTERS,
        Text(r"[a-zA-Z0-9._-]{0,249}", "a topic's name, or empty"),
        "",
        broker=None,
        doc="Topic of dead letters of a share group, written before a record is given up; empty: "
        "none (KIP-1191).",
    )
    errors_deadletterqueue_copy_record_enable: bool = group_key(
        "errors.deadletterqueue.copy.record.enable",
        Flag(),
        False,
        broker=None,
        doc="Dead letters of a share group have key, value and headers of the record.",
    )


BOUNDS: Mapping[str, tuple[str | None, str]] = {
    SESSION: ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    HEARTBEAT: (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
    **{
        f"share.{end}": (f"group.share.min.{end}", f"group.share.max.{end}")
        for end in SHARE_BOUNDED
    },
    **{
        f"streams.{end}": (f"group.streams.min.{end}", f"group.streams.max.{end}")
        for end in STREAMS_BOUNDED
    },
    STANDBYS: (None, "group.streams.max.standby.replicas"),
}
"""The keys of the broker for the least and the most that a group may set."""
LESS_THAN: Mapping[str, str] = {
    HEARTBEAT: SESSION,
    SHARE_HEARTBEAT: SHARE_SESSION,
    STREAMS_HEARTBEAT: STREAMS_SESSION,
}
"""Keys whose value has to be less than that of another one."""
GROUP_KEYS = keys_of(GroupConfig)
_BY_NAME = {key.name: Named(key.on_topic[0], (key,)) for key in GROUP_KEYS}
_READS = {key.name: attrgetter(key.attribute) for key in GROUP_KEYS}
_OF_BROKER = {key.name: attrgetter(key.attribute) for key in keys_of(BrokerConfig)}


def group_name(name: str) -> Named:
    """The key that `name` sets on a group; ConfigError when there is none."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ConfigError(name, f"Unknown group config name: {name}") from None


def check_group(settings: Mapping[str, Setting], config: GroupConfig, broker: BrokerConfig) -> None:
    """ConfigError for a setting of a group beyond the bounds, or that contradicts another one.

    `config` is the snapshot with these settings in it.
    """
    for name in BOUNDS.keys() & settings.keys():
        setting, (least_key, most_key) = settings[name], BOUNDS[name]
        if setting.value < _least(least_key, broker):
            raise ConfigError(name, f"{name} must be greater than or equal to {least_key}")
        if setting.value > _OF_BROKER[most_key](broker):
            raise ConfigError(name, f"{name} must be less than or equal to {most_key}")
    for less, more in LESS_THAN.items():
        if (less in settings or more in settings) and _READS[less](config) >= _READS[more](config):
            raise ConfigError(more, f"{more} must be greater than {less}")
    if config.horolog_share_delay_ms > config.horolog_share_delay_max_ms:
        raise ConfigError(DELAY_MS, f"{DELAY_MS} must be less than or equal to {DELAY_MAX_MS}")
    prefix, topic = broker.errors_deadletterqueue_topic_name_prefix, settings.get(LETTERS)
    if topic is not None and topic.value and not topic.value.startswith(prefix):
        raise ConfigError(LETTERS, f"{LETTERS} must begin with {prefix}")


def clamped(settings: Mapping[str, Setting], broker: BrokerConfig) -> dict[str, Setting]:
    """The settings of a group within the bounds that the broker has now."""
    return {name: _within(setting, broker) for name, setting in settings.items()}


def check_bounds(config: BrokerConfig) -> None:
    """ConfigError when the bounds of a setting of groups leave no value."""
    for least_key, most_key in BOUNDS.values():
        least, most = _least(least_key, config), _OF_BROKER[most_key](config)
        if least > most:
            raise ConfigError(most_key, f"{most_key} must be greater than or equal to {least_key}")


def _within(setting: Setting, broker: BrokerConfig) -> Setting:
    if setting.name not in BOUNDS:
        return setting
    least_key, most_key = BOUNDS[setting.name]
    least, most = _least(least_key, broker), _OF_BROKER[most_key](broker)
    value = min(max(setting.value, least), most)
    return setting if value == setting.value else replace(setting, value=value, text=str(value))


def _least(key: str | None, broker: BrokerConfig) -> int:
    return 0 if key is None else _OF_BROKER[key](broker)


def bounds_of(key: ConfigKey) -> tuple[str | None, str] | None:
    """The names of the least and the most, for the documentation; None without them."""
    return BOUNDS.get(key.name)
