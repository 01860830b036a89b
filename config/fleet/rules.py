"""Rules of settings for a broker that is one of a fleet."""

from collections.abc import Sequence

from config.alter import read_setting
from config.broker import BrokerConfig
from config.errors import ConfigError
from config.layers import Layer, SettingSource
from config.names import broker_name
from config.topic import TopicConfig

URL = "horolog.fleet.url"
DURABILITY = "horolog.durability"
COMMITTED = "fsync"
TIER = "remote.log.storage.system.enable"
CLIENT_CONFIG = "horolog.fleet.client.config"
LISTENER = "horolog.fleet.listener"
_ALONE = (
    ("horolog.audit.topic", "a node writes to the partitions that it leads alone"),
    ("horolog.security.audit.topic", "a node writes to the partitions that it leads alone"),
)
"""Settings that a broker of a fleet may not have, and why."""


def with_fleet_defaults(static: Sequence[Layer]) -> tuple[Layer, ...]:
    """The layers fixed at start, and one below them: in a fleet records are answered when they are
    committed, and closed segments go to the store. Without a fleet it is empty.
    """
    is_one = any(layer.settings.get(URL) and layer.settings[URL].text for layer in static)
    defaults = ((DURABILITY, COMMITTED), (TIER, "true")) if is_one else ()
    settings = {key: read_setting(key, text, broker_name, where=URL) for key, text in defaults}
    return (*static, Layer(SettingSource.STATIC_BROKER, settings))


def check_fleet(config: BrokerConfig, defaults: TopicConfig) -> None:
    """ConfigError for settings that a broker of a fleet may not have."""
    url = config.horolog_fleet_url
    if url is None:
        return
    if config.horolog_tier_url is None:
        raise ConfigError(
            URL, f"{URL} needs horolog.tier.url: the bucket for the bytes, s3://bucket/prefix"
        )
    if not url.is_private and not config.horolog_fleet_allow_plaintext:
        raise ConfigError(
            URL,
            f"{URL} leads to another machine, and everybody on the way could read along: add "
            "?sslmode=verify-full, or set horolog.fleet.allow.plaintext=true",
        )
    if not config.remote_log_storage_system_enable:
        raise ConfigError(
            TIER, f"{TIER} cannot be false with {URL}: what is in segments is in no commit any more"
        )
    for key, why in _ALONE:
        if getattr(config, broker_name(key).keys[0].attribute):
            raise ConfigError(key, f"{key} cannot be set with {URL}: {why}")
    name = config.horolog_fleet_listener
    if name and name not in {each.name for each in config.client_listeners}:
        raise ConfigError(LISTENER, f"{LISTENER}: no listener has the name {name}")
    check_fleet_topic(defaults, config)


def check_fleet_topic(config: TopicConfig, broker: BrokerConfig) -> None:
    """ConfigError when a topic of a fleet may not have these settings."""
    if broker.horolog_fleet_url is None:
        return
    if config.horolog_durability != COMMITTED:
        raise ConfigError(
            DURABILITY,
            f"{DURABILITY} is {COMMITTED} in a fleet: a record is answered when it is committed",
        )
    if config.horolog_timestamp_policy == "quarantine":
        raise ConfigError(
            "horolog.timestamp.policy",
            "horolog.timestamp.policy cannot be quarantine in a fleet: the quarantine's partition "
            "may be another node's",
        )
