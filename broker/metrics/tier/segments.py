"""Metrics of the tier by its segments: what was copied, what waits, what is where, what fails.

A scrape looks at few segments: those that wait. Of logs that compaction rewrites it looks at all.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import add
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.runtime.probes import MAX_TOPICS, OTHERS
from broker.tier.standing import TierStanding
from broker.tier.status import waiting_segments
from broker.tier.tier import Tier
from broker.topics.topic_catalog import TopicCatalog
from storage.directory.log_manager import LogManager
from storage.env import Clock
from storage.retention.local_limits import is_copied

if TYPE_CHECKING:
    from storage.log.log import Log
    from storage.segment.segment import Segment


class TierView(NamedTuple):
    """Services that metrics of the tier read."""

    tier: Tier | None
    tier_standing: TierStanding | None
    topics: TopicCatalog
    logs: LogManager
    clock: Clock


class HasTier(Protocol):
    """Services of a broker that may have a tier."""

    @property
    def tier(self) -> Tier | None:
        """The tier."""


def of_tier(read: Callable[[Tier], float]) -> Callable[[HasTier], float]:
    """A figure of the tier; 0 where there is none."""
    return lambda view: 0.0 if view.tier is None else float(read(view.tier))


def by_topic(
    topics: TopicCatalog,
    value: "Callable[[Log], float | None]",
    merge: Callable[[float, float], float] = add,
) -> Iterable[Sample]:
    """A figure of each topic's logs; None: the log has none. Topics beyond `MAX_TOPICS` share."""
    found: dict[tuple[str, ...], float] = {}
    for position, topic in enumerate(topics.image.topics.values()):
        key = (topic.name if position < MAX_TOPICS else OTHERS,)
        for partition in topic.partitions:
            number = value(partition.log)
            if number is not None:
                found[key] = merge(found[key], number) if key in found else number
    return found.items()


class HasCopies(HasTier, Protocol):
    """Services that tell what waits to be copied."""

    @property
    def topics(self) -> TopicCatalog:
        """The topics, and with them the logs."""

    @property
    def logs(self) -> LogManager:
        """The directory of the logs."""


def lag(
    view: HasCopies,
    read: "Callable[[Sequence[Segment]], float]",
    merge: Callable[[float, float], float] = add,
) -> Iterable[Sample]:
    """A figure of what waits in each topic that is copied."""
    if view.tier is None:
        return ()
    state = view.topics.internal_topics

    def of_log(log: "Log") -> float | None:
        if log.topic not in state and not is_copied(log.config):
            return None
        return read(_waiting(log, is_rewritten=view.logs.is_rewritten(log)))

    return by_topic(view.topics, of_log, merge)


def _waiting(log: "Log", *, is_rewritten: bool) -> "Sequence[Segment]":
    """Closed segments that the store does not have, the oldest first."""
    snapshot = log.snapshot
    segments, closed_end = snapshot.segments, len(snapshot.segments) - 1
    if is_rewritten:
        places = log.tiers.places(snapshot, is_rewritten=True)
        return [segments[number] for number in waiting_segments(snapshot, places)]
    first = bisect_left(
        segments,
        log.tiers.uploaded_end,
        snapshot.first_local,
        closed_end,
        key=lambda each: each.base_offset,
    )
    return segments[first:closed_end]


def lag_bytes(waiting: "Sequence[Segment]") -> float:
    """Bytes of what waits."""
    return float(sum(each.size_bytes for each in waiting))


def _lag_seconds(view: TierView) -> Iterable[Sample]:
    now_ms = view.clock.now_ms()

    def seconds(waiting: "Sequence[Segment]") -> float:
        return max(0.0, (now_ms - waiting[0].mtime_ms) / 1000) if waiting else 0.0

    return lag(view, seconds, max)


def _remote_bytes(view: TierView) -> Iterable[Sample]:
    def of_log(log: "Log") -> float | None:
        is_tiered = log.config.remote_storage_enable or log.tiers.uploaded
        return float(log.tiers.away_bytes) if is_tiered else None

    return () if view.tier is None else by_topic(view.topics, of_log)


def _stopped(view: TierView) -> Iterator[Sample]:
    reasons = {} if view.tier is None else view.tier.tally.stopped_by
    for reason, error in (("writer_replaced", "WriterReplaced"), ("mismatch", "TierMismatch")):
        yield (reason,), float(reasons.get(error, 0))


def _paused(view: TierView) -> Iterable[Sample]:
    if view.tier is None:
        return ()
    paces = {"copy": view.tier.copy_pace, "fetch": view.tier.fetch_pace}
    return [((what,), pace.waited_seconds) for what, pace in paces.items()]


def _refused(view: TierView) -> float:
    return float(view.tier_standing is not None and bool(view.tier_standing.refused))


_COPIES: tuple[Metric[TierView], ...] = (
    counter(
        "horolog_tier_copied_bytes",
        "Bytes of segments that were copied to the store and compared there.",
        (),
        one(of_tier(lambda tier: tier.tally.copied_bytes)),
    ),
    counter(
        "horolog_tier_copied_segments",
        "Segments that were copied to the store.",
        (),
        one(of_tier(lambda tier: tier.tally.copied_segments)),
    ),
    counter(
        "horolog_tier_local_removed_bytes",
        "Bytes of segments that left the disk because the store has them.",
        (),
        one(of_tier(lambda tier: tier.tally.dropped_bytes)),
    ),
    counter(
        "horolog_tier_removed_objects",
        "Objects that were removed from the store.",
        (),
        one(of_tier(lambda tier: tier.trash.removed_objects)),
    ),
    counter(
        "horolog_tier_copier_ends",
        "Times that the process which carries copies has ended by itself, or could not be begun.",
        (),
        one(of_tier(lambda tier: tier.copier.ends)),
    ),
    gauge(
        "horolog_tier_lag_bytes",
        "Bytes of closed segments that the store does not have yet.",
        ("topic",),
        lambda view: lag(view, lag_bytes),
    ),
    gauge(
        "horolog_tier_lag_segments",
        "Closed segments that the store does not have yet.",
        ("topic",),
        lambda view: lag(view, len),
    ),
    gauge(
        "horolog_tier_lag_seconds",
        "Time since the last write to the oldest closed segment that the store does not have; 0 "
        "when it has all.",
        ("topic",),
        _lag_seconds,
    ),
    gauge(
        "horolog_tier_remote_bytes",
        "Bytes of segments that are in the store alone.",
        ("topic",),
        _remote_bytes,
    ),
    counter(
        "horolog_tier_paused_seconds",
        "Time that threads have waited for remote.log.manager.copy.max.bytes.per.second and its "
        "like for fetches.",
        ("direction",),
        _paused,
    ),
)

_FAILURES: tuple[Metric[TierView], ...] = (
    counter(
        "horolog_tier_failures",
        "Rounds of a partition, or questions to the store, that ended in an error.",
        (),
        one(of_tier(lambda tier: tier.tally.failures)),
    ),
    gauge(
        "horolog_tier_failing_partitions",
        "Partitions whose last round failed; GET /readyz is not touched by it.",
        (),
        one(of_tier(lambda tier: len(tier.tally.failing))),
    ),
    gauge(
        "horolog_tier_stopped_partitions",
        "Partitions of which nothing more is copied until a restart: another process writes their "
        "manifests (writer_replaced), or store and directory contradict each other (mismatch).",
        ("reason",),
        _stopped,
    ),
    gauge(
        "horolog_tier_refused",
        "1 when nothing is copied at all until a restart: the place is another cluster's, another "
        "process writes there, or the store cannot be used.",
        (),
        one(_refused),
    ),
)

_SWEEPS: tuple[Metric[TierView], ...] = (
    gauge(
        "horolog_tier_orphan_objects",
        "Objects that nothing names, as the last sweep saw them; the next one removes them.",
        (),
        one(of_tier(lambda tier: tier.tally.orphans.objects)),
    ),
    gauge(
        "horolog_tier_orphan_bytes",
        "Bytes of objects that nothing names, as the last sweep saw them.",
        (),
        one(of_tier(lambda tier: tier.tally.orphans.size_bytes)),
    ),
    gauge(
        "horolog_tier_unknown_objects",
        "Objects of topics of which the broker knows nothing, as the last sweep saw them; they "
        "stay.",
        (),
        one(of_tier(lambda tier: tier.tally.unknown.objects)),
    ),
    counter(
        "horolog_tier_removed_orphans",
        "Objects that nothing named and that a sweep removed.",
        (),
        one(of_tier(lambda tier: tier.tally.removed_orphans)),
    ),
    counter(
        "horolog_tier_removed_manifests",
        "Manifests, and pictures of topics and settings, that a sweep removed: only a restore to "
        "a time long ago needed them.",
        (),
        one(of_tier(lambda tier: tier.tally.removed_manifests)),
    ),
    counter(
        "horolog_tier_sweeps",
        "Sweeps that have seen all objects.",
        (),
        one(of_tier(lambda tier: tier.tally.sweeps)),
    ),
    counter(
        "horolog_tier_failed_sweeps",
        "Sweeps that did not come to their end.",
        (),
        one(of_tier(lambda tier: tier.tally.failed_sweeps)),
    ),
)

TIER_METRICS: tuple[Metric[TierView], ...] = (*_COPIES, *_FAILURES, *_SWEEPS)
