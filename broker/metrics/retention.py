"""Metrics of segments that go, and of those that should have gone (time.md 10)."""

from collections.abc import Iterable
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.metrics.partitions import LABELS, series
from broker.tasks.retention import Retention
from broker.tasks.rolling import Rolling
from broker.topics.topic_catalog import TopicCatalog
from protocol.records.batch import NO_TIMESTAMP
from storage.env import Clock
from storage.log.lifecycle import limits_of

if TYPE_CHECKING:
    from storage.log.log import Log


class RetentionView(NamedTuple):
    """Services that metrics of retention read."""

    topics: TopicCatalog
    retention: Retention
    rolling: Rolling
    clock: Clock
    clock_watch: ClockWatch


def _overdue_seconds(view: RetentionView) -> Iterable[Sample]:
    now_ms = view.clock.now_ms()

    def overdue(log: "Log") -> float:
        verdict = view.retention.verdicts.get(log)
        deadline = None if verdict is None else verdict.next_deadline_ms
        return 0.0 if deadline is None else max(0.0, (now_ms - deadline) / 1000)

    return series(view.topics, overdue, max)


def _blocked_segments(view: RetentionView) -> Iterable[Sample]:
    def blocked(log: "Log") -> float:
        verdict = view.retention.verdicts.get(log)
        return 0.0 if verdict is None else float(verdict.overdue_segments)

    return series(view.topics, blocked, add)


def _oldest_seconds(view: RetentionView) -> Iterable[Sample]:
    def oldest(log: "Log") -> float | None:
        verdict = view.retention.verdicts.get(log)
        oldest_ms = None if verdict is None else verdict.oldest_ms
        return None if oldest_ms is None else oldest_ms / 1000

    return series(view.topics, oldest, min)


def _horizon_seconds(view: RetentionView) -> Iterable[Sample]:
    now_ms = view.clock.now_ms()

    def horizon(log: "Log") -> float | None:
        limits = limits_of(log.config)
        by_age = now_ms - limits.retention_ms if limits.retention_ms >= 0 else NO_TIMESTAMP
        latest = max(by_age, limits.before_ms)
        return latest / 1000 if limits.deletes and latest >= 0 else None

    return series(view.topics, horizon, max)


def _stepped(view: RetentionView) -> Iterable[Sample]:
    watch = view.clock_watch
    return [(("forward",), watch.ahead_ms / 1000), (("backward",), watch.back_ms / 1000)]


RETENTION_METRICS: tuple[Metric[RetentionView], ...] = (
    gauge(
        "horolog_log_oldest_timestamp_seconds",
        "The time that retention judges the oldest segment by: of its newest record, or when that "
        "arrived, by the topic's clock. As of the last round.",
        LABELS,
        _oldest_seconds,
    ),
    gauge(
        "horolog_log_retention_horizon_timestamp_seconds",
        "Records older than this should be removed (retention.ms, "
        "horolog.retention.before.timestamp). Topics without a limit by time have none.",
        LABELS,
        _horizon_seconds,
    ),
    gauge(
        "horolog_retention_overdue_seconds",
        "Time for which a segment has stayed past its own deadline; 0 when none does.",
        LABELS,
        _overdue_seconds,
    ),
    gauge(
        "horolog_retention_blocked_segments",
        "Segments past their own deadline that the last round had to leave.",
        LABELS,
        _blocked_segments,
    ),
    counter(
        "horolog_retention_removed_segments",
        "Segments removed since the start.",
        (),
        one(lambda view: view.retention.removed_segments),
    ),
    counter(
        "horolog_retention_removed_bytes",
        "Bytes of the segments removed since the start.",
        (),
        one(lambda view: view.retention.removed_bytes),
    ),
    counter(
        "horolog_broker_clock_steps",
        "Jumps of the wall clock since the start.",
        (),
        one(lambda view: view.clock_watch.steps),
    ),
    counter(
        "horolog_broker_clock_step_seconds",
        "Sum of the jumps of the wall clock, by direction.",
        ("direction",),
        _stepped,
    ),
    gauge(
        "horolog_clock_hold",
        "1 while nothing is removed or rolled by time, because the wall clock is unverified.",
        (),
        one(lambda view: float(view.clock_watch.is_held)),
    ),
    counter(
        "horolog_rolled_by_time_segments",
        "Segments that the timer ended since the start.",
        (),
        one(lambda view: view.rolling.rolled_segments),
    ),
)
