"""Metrics of compaction: what waits for it and for how long, what it did, what it could not do.

The delay of a partition is reckoned at the scrape from facts in memory, so it rises a second a
second whether or not a cleaner lives. Sizes and shares are those of the cleaner's last look.
"""

from collections.abc import Callable, Iterable, Mapping
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.metrics.partitions import LABELS, series
from broker.tasks.cleaner import Cleaner
from broker.tasks.cleaner_tally import LastChoice, LastRun
from broker.topics.topic_catalog import TopicCatalog
from storage.cleaner.dirty_age import dirty_age, has_bound
from storage.directory.log_manager import LogManager
from storage.env import Clock

if TYPE_CHECKING:
    from storage.log.log import Log
    from storage.retention.cleanability import Verdict


class CompactionView(NamedTuple):
    """Services that metrics of compaction read."""

    topics: TopicCatalog
    logs: LogManager
    cleaner: Cleaner
    clock: Clock


STUCK = "stuck"


def _delays(view: CompactionView) -> Iterable[Sample]:
    now_ms, offsets = view.clock.now_ms(), view.logs.cleaner_offsets

    def delay(log: "Log") -> float | None:
        return dirty_age(log, offsets).delay_ms(now_ms) / 1000 if has_bound(log) else None

    return series(view.topics, delay, max)


def _of_verdict(
    name: str,
    text: str,
    read: "Callable[[Verdict], float]",
    merge: Callable[[float, float], float],
) -> Metric[CompactionView]:
    """A gauge of each compacted partition, as of the cleaner's last look."""

    def samples(view: CompactionView) -> Iterable[Sample]:
        verdicts = view.cleaner.verdicts

        def value(log: "Log") -> float | None:
            verdict = verdicts.get(log)
            return None if verdict is None else read(verdict)

        return series(view.topics, value, merge)

    return gauge(name, text, LABELS, samples)


def _eligible(view: CompactionView) -> float:
    return sum(verdict.is_eligible for verdict in view.cleaner.verdicts.values())


def _uncleanable(read: "Callable[[Log], int]") -> Callable[[CompactionView], Iterable[Sample]]:
    """Sums over the backed off logs, by the reason; a log counts for one reason."""

    def samples(view: CompactionView) -> Iterable[Sample]:
        found: dict[tuple[str, ...], float] = {}
        aside = view.cleaner.set_aside
        for topic in view.topics.image.topics.values():
            for partition in topic.partitions:
                log = partition.log
                because = STUCK if log.compaction.is_stuck else None
                if because is None and log in aside:
                    because = aside[log].kind
                if because is not None:
                    found[because,] = found.get((because,), 0) + read(log)
        return found.items()

    return samples


def _failures(view: CompactionView) -> Iterable[Sample]:
    return [((kind,), float(count)) for kind, count in view.cleaner.tally.failures.items()]


def _most_of_choices(read: Callable[[LastChoice], float]) -> Callable[[CompactionView], float]:
    return lambda view: max(map(read, view.cleaner.tally.choices.values()), default=0.0)


def _most_of_runs(read: Callable[[LastRun], float]) -> Callable[[CompactionView], float]:
    return lambda view: max(map(read, view.cleaner.tally.runs.values()), default=0.0)


def _sum_of_choices(view: CompactionView) -> float:
    choices: Mapping[int, LastChoice] = view.cleaner.tally.choices
    return sum(each.due_by_lag for each in choices.values())


COMPACTION_METRICS: tuple[Metric[CompactionView], ...] = (
    gauge(
        "horolog_log_cleaner_max_compaction_delay_seconds",
        "Time for which the latest of all logs had been overdue (max.compaction.lag.ms) when a "
        "cleaner last chose one (KIP-354); the largest of all cleaners.",
        (),
        one(_most_of_choices(lambda last: last.max_delay_ms / 1000)),
    ),
    gauge(
        "horolog_log_cleaner_logs_compacted_by_max_lag",
        "Logs that were due for nothing but max.compaction.lag.ms when a cleaner last chose one.",
        (),
        one(_sum_of_choices),
    ),
    gauge(
        "horolog_log_compaction_delay_seconds",
        "Time for which the oldest record that compaction has not seen has been overdue "
        "(max.compaction.lag.ms), now; 0 when it is not. Topics without that bound have no series.",
        LABELS,
        _delays,
    ),
    _of_verdict(
        "horolog_log_dirty_ratio",
        "Share of the log's closed segments, in bytes, that compaction could clean and has not.",
        lambda verdict: verdict.dirty_ratio,
        max,
    ),
    _of_verdict(
        "horolog_log_cleanable_bytes",
        "Bytes that compaction could clean and has not.",
        lambda verdict: verdict.cleanable_bytes,
        add,
    ),
    gauge(
        "horolog_log_cleaner_cleanable_partitions",
        "Partitions that a run would begin on, as of the last look.",
        (),
        one(_eligible),
    ),
    gauge(
        "horolog_log_cleaner_uncleanable_partitions",
        "Partitions that are backed off, by the reason: damage, disk, store, refused, bug, stuck.",
        ("reason",),
        _uncleanable(lambda _: 1),
    ),
    gauge(
        "horolog_log_cleaner_uncleanable_bytes",
        "Bytes of the partitions that are backed off, by the reason.",
        ("reason",),
        _uncleanable(lambda log: log.snapshot.size_bytes),
    ),
    counter(
        "horolog_log_cleaner_runs",
        "Successful runs over a log.",
        (),
        one(lambda view: view.cleaner.tally.ended_runs),
    ),
    counter(
        "horolog_log_cleaner_failures",
        "Failed runs, by the reason; each backed its log off.",
        ("reason",),
        _failures,
    ),
    counter(
        "horolog_log_cleaner_read_bytes",
        "Bytes of logs that compaction has read, both passes.",
        (),
        one(lambda view: view.cleaner.tally.read_bytes),
    ),
    counter(
        "horolog_log_cleaner_written_bytes",
        "Bytes of logs that compaction has written.",
        (),
        one(lambda view: view.cleaner.tally.written_bytes),
    ),
    counter(
        "horolog_log_cleaner_removed_records",
        "Records that compaction has removed.",
        (),
        one(lambda view: view.cleaner.tally.removed_records),
    ),
    gauge(
        "horolog_log_cleaner_map_utilisation_ratio",
        "Fill level of the map of keys in the last run; the fullest of all cleaners.",
        (),
        one(_most_of_runs(lambda run: run.map_utilisation)),
    ),
    gauge(
        "horolog_log_cleaner_last_run_timestamp_seconds",
        "End of the last successful run, by the broker's clock; 0 before the first.",
        (),
        one(_most_of_runs(lambda run: run.ended_ms / 1000)),
    ),
    gauge(
        "horolog_log_cleaner_last_run_duration_seconds",
        "Duration of the last run; the longest of all cleaners.",
        (),
        one(_most_of_runs(lambda run: run.seconds)),
    ),
    gauge(
        "horolog_log_cleaner_dead_threads",
        "Cleaners whose last round ended in an error of the program's own.",
        (),
        one(lambda view: view.cleaner.tally.dead_threads),
    ),
)
