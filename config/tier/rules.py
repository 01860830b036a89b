"""Rules of the tier between keys: Kafka's, in Kafka's words, so that tools show what they know.

Kafka's are `LogConfig.validateTopicLogConfigValues` and its `validateBrokerLogConfigValues`.
"""

from config.broker import BrokerConfig
from config.errors import ConfigError
from config.topic import TopicConfig

SYSTEM = "remote.log.storage.system.enable"
TOTAL_INSTEAD = -2
NO_LIMIT = -1

_NOT_HERE = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
COMPACTED = "horolog.tier.compacted"
_COMPACTED = (
    "Remote log storage only supports topics with cleanup.policy=delete or cleanup.policy being "
    "an empty list."
)
_COPIED = (
    "remote.log.copy.disable=true is not for topics with cleanup.policy=compact: what compaction "
    "rewrites has to be copied again."
)
_COMPACTED_IN_USE = (
    f"You have to delete all topics with cleanup.policy=compact and remote.storage.enable=true "
    f"before {COMPACTED} becomes false"
)
_STAYS = (
    "It is invalid to disable remote storage without deleting remote data. If you want to keep "
    "the remote data and turn to read only, please set "
    "`remote.storage.enable=true,remote.log.copy.disable=true`. If you want to disable remote "
    "storage and delete all remote data, please set "
    "`remote.storage.enable=false,remote.log.delete.on.disable=true`."
)
_IN_USE = (
    "You have to delete all topics with the property remote.storage.enable=true before disabling "
    "tiered storage cluster-wide"
)


def check_tier(config: BrokerConfig) -> None:
    """ConfigError when the tier is on and has no place."""
    if config.remote_log_storage_system_enable and config.horolog_tier_url is None:
        raise ConfigError(
            SYSTEM,
            f"{SYSTEM}=true needs horolog.tier.url: the bucket that segments are copied to, "
            "s3://bucket/prefix",
        )


def local_limits(config: TopicConfig) -> tuple[int, int, int, int]:
    """All that `check_tier_defaults` looks at."""
    local = config.local_retention_ms, config.local_retention_bytes
    return (*local, config.retention_ms, config.retention_bytes)


def check_tier_defaults(config: TopicConfig) -> None:
    """ConfigError when the broker's local retention is more than its total one."""
    _check_local(config, "log.")


def check_tiered_topic(config: TopicConfig, broker: BrokerConfig, *, was_tiered: bool) -> None:
    """ConfigError when a topic may not have these settings, after `was_tiered` or not."""
    if config.remote_storage_enable:
        _check_may_be_tiered(config, broker)
        _check_local(config)
        _check_without_copying(config)
    elif was_tiered and not config.remote_log_delete_on_disable:
        raise ConfigError("remote.storage.enable", _STAYS)


def check_stored_topic(config: TopicConfig, broker: BrokerConfig, topic: str) -> None:
    """ConfigError when a topic that has a tier would start without."""
    if config.remote_storage_enable and not broker.remote_log_storage_system_enable:
        raise ConfigError(SYSTEM, f"{_IN_USE}: {SYSTEM} is false, and topic {topic} has it")
    if _is_compacted_away(config) and not broker.horolog_tier_compacted:
        raise ConfigError(COMPACTED, f"{_COMPACTED_IN_USE}: topic {topic} has both")


def _check_may_be_tiered(config: TopicConfig, broker: BrokerConfig) -> None:
    if not broker.remote_log_storage_system_enable:
        raise ConfigError("remote.storage.enable", _NOT_HERE)
    if _is_compacted_away(config):
        if not broker.horolog_tier_compacted:
            raise ConfigError("cleanup.policy", _COMPACTED)
        if config.remote_log_copy_disable:
            raise ConfigError("remote.log.copy.disable", _COPIED)


def _is_compacted_away(config: TopicConfig) -> bool:
    return config.remote_storage_enable and "compact" in config.cleanup_policy


def _check_local(config: TopicConfig, prefix: str = "") -> None:
    """A negative size is no limit, of a time only -1 is (as in Kafka)."""
    of_bytes, of_ms = config.retention_bytes, config.retention_ms
    if of_bytes > NO_LIMIT:
        _check_less(f"{prefix}local.retention.bytes", config.local_retention_bytes, of_bytes)
    if of_ms != NO_LIMIT:
        _check_less(f"{prefix}local.retention.ms", config.local_retention_ms, of_ms)


def _check_less(key: str, local: int, total: int) -> None:
    name = key.replace("local.", "")
    if local == NO_LIMIT:
        raise _invalid(key, local, f"Value must not be -1 as {name} value is set as {total}.")
    if local > total:
        raise _invalid(key, local, f"Value must not be more than {name} property value: {total}")


def _check_without_copying(config: TopicConfig) -> None:
    if not config.remote_log_copy_disable:
        return
    for key, local, total in (
        ("local.retention.bytes", config.local_retention_bytes, config.retention_bytes),
        ("local.retention.ms", config.local_retention_ms, config.retention_ms),
    ):
        if local not in (TOTAL_INSTEAD, total):
            raise ConfigError(
                key,
                f"When `remote.log.copy.disable` is set to true, the `{key}` and "
                f"`{key.removeprefix('local.')}` must be set to the identical value because there "
                "will be no more logs copied to the remote storage.",
            )


def _invalid(key: str, value: int, reason: str) -> ConfigError:
    return ConfigError(key, f"Invalid value {value} for configuration {key}: {reason}")
