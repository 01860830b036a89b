"""Limits of retention from a topic's settings."""

from config.topic import TopicConfig
from storage.retention.plan import RetentionClock, RetentionLimits


def limits_of(config: TopicConfig, *, is_held: bool = False) -> RetentionLimits:
    """Limits of retention from a topic's settings."""
    return RetentionLimits(
        config.retention_ms,
        config.retention_bytes,
        "delete" in config.cleanup_policy,
        RetentionClock(config.horolog_retention_clock),
        config.horolog_retention_min_stay_ms,
        config.horolog_retention_before_timestamp,
        is_held,
    )
