"""Metrics of the tier: what was copied, what waits, what was read back, what fails."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from storage.log.log import Log


class TierView(NamedTuple):
    """Services that metrics of the tier read."""

    tier: Tier | None
    topics: TopicCatalog


def _of(read: Callable[[Tier], float]) -> Callable[[TierView], float]:
    """A figure of the tier; 0 where there is none."""
    return lambda view: 0.0 if view.tier is None else float(read(view.tier))


def _waiting(read: Callable[[Log], int]) -> Callable[[TierView], Iterable[Sample]]:
    """A figure of each topic's logs, added up; none for topics without a tier."""

    def samples(view: TierView) -> Iterable[Sample]:
        if view.tier is None:
            return
        for topic in view.topics.image.topics.values():
            logs = [each.log for each in topic.partitions if each.log.config.remote_storage_enable]
            if logs:
                yield (topic.name,), float(sum(map(read, logs)))

    return samples


def _lag_bytes(log: Log) -> int:
    """Bytes of closed segments that the store does not have."""
    snapshot = log.snapshot
    closed = snapshot.local_segments[:-1]
    return sum(each.size_bytes for each in closed if each.base_offset >= log.tiers.uploaded_end)


def _lag_segments(log: Log) -> int:
    closed = log.snapshot.local_segments[:-1]
    return sum(each.base_offset >= log.tiers.uploaded_end for each in closed)


def _remote_bytes(log: Log) -> int:
    """Bytes that are only in the store."""
    snapshot = log.snapshot
    return sum(each.size_bytes for each in snapshot.segments[: snapshot.first_local])


TIER_METRICS: tuple[Metric[TierView], ...] = (
    counter(
        "horolog_tier_copied_bytes",
        "Bytes of segments that were copied to the store and compared there.",
        (),
        one(_of(lambda tier: tier.tally.copied_bytes)),
    ),
    counter(
        "horolog_tier_copied_segments",
        "Segments that were copied to the store.",
        (),
        one(_of(lambda tier: tier.tally.copied_segments)),
    ),
    counter(
        "horolog_tier_local_removed_bytes",
        "Bytes of segments that left the disk because the store has them.",
        (),
        one(_of(lambda tier: tier.tally.dropped_bytes)),
    ),
    counter(
        "horolog_tier_removed_objects",
        "Objects that were removed from the store.",
        (),
        one(_of(lambda tier: tier.trash.removed_objects)),
    ),
    gauge(
        "horolog_tier_orphan_objects",
        "Objects that nothing names, as the last sweep saw them; the next one removes them.",
        (),
        one(_of(lambda tier: tier.tally.orphans.objects)),
    ),
    gauge(
        "horolog_tier_orphan_bytes",
        "Bytes of objects that nothing names, as the last sweep saw them.",
        (),
        one(_of(lambda tier: tier.tally.orphans.size_bytes)),
    ),
    counter(
        "horolog_tier_removed_orphans",
        "Objects that nothing named and that a sweep removed.",
        (),
        one(_of(lambda tier: tier.tally.removed_orphans)),
    ),
    counter(
        "horolog_tier_failed_sweeps",
        "Sweeps that did not come to their end.",
        (),
        one(_of(lambda tier: tier.tally.failed_sweeps)),
    ),
    counter(
        "horolog_tier_failures",
        "Rounds of a partition, or questions to the store, that ended in an error.",
        (),
        one(_of(lambda tier: tier.tally.failures)),
    ),
    gauge(
        "horolog_tier_failing_partitions",
        "Partitions whose last round failed; GET /readyz is not touched by it.",
        (),
        one(_of(lambda tier: len(tier.tally.failing))),
    ),
    gauge(
        "horolog_tier_lag_bytes",
        "Bytes of closed segments that the store does not have yet.",
        ("topic",),
        _waiting(_lag_bytes),
    ),
    gauge(
        "horolog_tier_lag_segments",
        "Closed segments that the store does not have yet.",
        ("topic",),
        _waiting(_lag_segments),
    ),
    gauge(
        "horolog_tier_remote_bytes",
        "Bytes of segments that are in the store alone.",
        ("topic",),
        _waiting(_remote_bytes),
    ),
    counter(
        "horolog_tier_cache_hits",
        "Reads of the store's objects that found all bytes here.",
        (),
        one(_of(lambda tier: tier.cache.hits)),
    ),
    counter(
        "horolog_tier_cache_misses",
        "Reads of the store's objects that had to ask the store.",
        (),
        one(_of(lambda tier: tier.cache.misses)),
    ),
    gauge(
        "horolog_tier_cache_bytes",
        "Bytes of the store's objects that are here.",
        (),
        one(_of(lambda tier: tier.cache.bytes_here)),
    ),
    gauge(
        "horolog_tier_waiting_reads",
        "Reads of the store that wait for a thread.",
        (),
        one(_of(lambda tier: tier.reads.waiting)),
    ),
    counter(
        "horolog_tier_refused_reads",
        "Reads that were refused because remote.log.reader.max.pending.tasks waited already.",
        (),
        one(_of(lambda tier: tier.reads.refused)),
    ),
)
