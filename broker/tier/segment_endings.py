"""Ends of segments that the tier brings about: only a closed one is copied."""

from broker.partitions.partition import Partition
from broker.tier.tiering_parts import TierParts, in_turn
from storage.log.log import Log
from storage.retention.local_limits import local_limits_of
from storage.segment.times import learn_first_times
from storage.tier.tiered_log import TieredLog

LEAST_ENDED_BYTES = 1 << 20
LARGE_SHARE = 8  # of the disk's margin
SOON_MS = 60_000
MOST_UNCOPIED_BYTES = 128 << 20
"""In a fleet a segment ends at this size: the next leader loads what is in none from commits."""


class SegmentEndings:
    """Used from the event loop."""

    def __init__(self, parts: TierParts) -> None:
        """Nothing was looked at."""
        self._parts = parts

    async def of_age(self, partition: Partition) -> None:
        """Keeps `horolog.tier.max.lag.ms`: what nobody has sent yet is not older than that."""
        most_ms = self._parts.config.broker_config.horolog_tier_max_lag_ms
        log = partition.log
        snapshot = log.snapshot
        if most_ms < 0 or not snapshot.end_position or self._parts.clock_watch.look():
            return
        active, end = snapshot.active, snapshot.end_position
        await self._parts.disk.run(learn_first_times, active, end, *log.search.lookup)
        if self._parts.clock.now_ms() - active.first_arrival_ms > most_ms:
            await in_turn(partition, log.roll)
            self._parts.sync(log)

    async def of_size(self, partition: Partition, tiered: TieredLog) -> None:
        """Ends, on a scarce disk, what can leave then, when all else is copied.

        Smaller ones end only while nothing is taken in, since each is two objects.
        """
        parts, log = self._parts, partition.log
        space, snapshot = parts.space, log.snapshot
        share = 0 if space.is_low else space.margin_bytes // LARGE_SHARE
        if (
            space.is_scarce
            and snapshot.end_position >= max(LEAST_ENDED_BYTES, share)
            and tiered.uploaded_end >= snapshot.active.base_offset
            and _would_leave(log)
        ):
            await in_turn(partition, log.roll)
            parts.sync(log)

    async def of_what_is_loaded(self, partition: Partition) -> None:
        """Ends a segment that a next leader of a fleet would take long to load."""
        log = partition.log
        if log.snapshot.end_position >= MOST_UNCOPIED_BYTES:
            await in_turn(partition, log.roll)
            self._parts.sync(log)


def _would_leave(log: Log) -> bool:
    """True when the limits of the local disk are such that a copied segment leaves soon."""
    limits = local_limits_of(log.config)
    local_bytes = sum(each.size_bytes for each in log.snapshot.local_segments)
    return 0 <= limits.retention_bytes < local_bytes or 0 <= limits.retention_ms <= SOON_MS
