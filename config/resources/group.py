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
from config.values import INT_MAX, millis

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


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


BOUNDS: Mapping[str, tuple[str, str]] = {
    SESSION: ("group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    HEARTBEAT: (
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
}
"""The keys of the broker for the least and the most that a group may set."""
LESS_THAN: Mapping[str, str] = {HEARTBEAT: SESSION}
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
    for name, setting in settings.items():
        least_key, most_key = BOUNDS[name]
        if setting.value < _OF_BROKER[least_key](broker):
            raise ConfigError(name, f"{name} must be greater than or equal to {least_key}")
        if setting.value > _OF_BROKER[most_key](broker):
            raise ConfigError(name, f"{name} must be less than or equal to {most_key}")
    for less, more in LESS_THAN.items():
        if (less in settings or more in settings) and _READS[less](config) >= _READS[more](config):
            raise ConfigError(more, f"{more} must be greater than {less}")


def clamped(settings: Mapping[str, Setting], broker: BrokerConfig) -> dict[str, Setting]:
    """The settings of a group within the bounds that the broker has now."""
    return {name: _within(setting, broker) for name, setting in settings.items()}


def check_bounds(config: BrokerConfig) -> None:
    """ConfigError when the bounds of a setting of groups leave no value."""
    for least_key, most_key in BOUNDS.values():
        least, most = _OF_BROKER[least_key](config), _OF_BROKER[most_key](config)
        if least > most:
            raise ConfigError(most_key, f"{most_key} must be greater than or equal to {least_key}")


def _within(setting: Setting, broker: BrokerConfig) -> Setting:
    least, most = (_OF_BROKER[key](broker) for key in BOUNDS[setting.name])
    value = min(max(setting.value, least), most)
    return setting if value == setting.value else replace(setting, value=value, text=str(value))


def bounds_of(key: ConfigKey) -> tuple[str, str]:
    """The names of the least and the most, for the documentation."""
    return BOUNDS[key.name]
