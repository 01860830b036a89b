"""Limits of retention on the local disk, for a topic whose closed segments are copied to a tier.

`plan` with these limits, and with the end of what is in the tier in the place of the high
watermark, says what may leave the disk. Nothing leaves the topic by it: that is for `limits_of`.
"""

from collections.abc import Sequence

from config.topic import TopicConfig
from storage.retention.limits import limits_of
from storage.retention.plan import RetentionLimits

_TOTAL_INSTEAD = -2


def is_copied(config: TopicConfig) -> bool:
    """True when closed segments of the topic go to the tier, and leave the disk by local limits.

    With `remote.log.copy.disable` they stay until the total limits take them (KIP-950).
    """
    return config.remote_storage_enable and not config.remote_log_copy_disable


def local_limits_of(config: TopicConfig, *, is_held: bool = False) -> RetentionLimits:
    """Limits on the local disk; those of the whole topic while nothing is copied.

    -2 is the total limit, and no local limit is above it, whatever was inherited. They hold for any
    cleanup.policy, as in Kafka. The shortest stay and `horolog.retention.before.timestamp` are
    about the whole topic: they have no part in this.
    """
    total = limits_of(config, is_held=is_held)
    if not is_copied(config):
        return total
    return total._replace(
        retention_ms=_local(config.local_retention_ms, total.retention_ms),
        retention_bytes=_local(config.local_retention_bytes, total.retention_bytes),
        deletes=True,
        min_stay_ms=0,
        before_ms=-1,
    )


def rounded_down(limits: RetentionLimits, sizes: Sequence[int]) -> RetentionLimits:
    """The same, for a disk that is short of space: what is left is at most the limit of bytes.

    Else it is at least that, as in Kafka: so a single large segment would never leave. `sizes` of
    the segments, the oldest first.
    """
    if limits.retention_bytes < 0:
        return limits
    left = sum(sizes)
    for size in sizes:
        if left <= limits.retention_bytes:
            break
        left -= size
    return limits._replace(retention_bytes=min(left, limits.retention_bytes))


def _local(local: int, total: int) -> int:
    """The smaller one of two limits, of which a negative one is none."""
    if local == _TOTAL_INSTEAD or (local < 0 <= total):
        return total
    return local if total < 0 else min(local, total)
