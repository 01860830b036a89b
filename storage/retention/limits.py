"""Limits of retention and of compaction from a topic's settings."""

from config.topic import TopicConfig
from storage.retention.cleanability import CleaningLimits
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


def cleaning_limits_of(config: TopicConfig) -> CleaningLimits:
    """Limits of compaction. Lags that contradict one another by inheritance: the maximum wins."""
    most = config.max_compaction_lag_ms
    return CleaningLimits(
        config.min_cleanable_dirty_ratio, min(config.min_compaction_lag_ms, most), most
    )
