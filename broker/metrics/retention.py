"""Metrics of segments that go, and of those that should have gone (time.md 10)."""

from collections.abc import Iterable
from operator import add
from typing import TYPE_CHECKING

from broker.metrics.declare import Sample, counter, gauge, one
from broker.metrics.partitions import LABELS, series
from protocol.records.batch import NO_TIMESTAMP
from storage.log.lifecycle import limits_of

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView
    from storage.log.log import Log


def _overdue_seconds(broker: "MetricsView") -> Iterable[Sample]:
    now_ms = broker.clock.now_ms()

    def overdue(log: "Log") -> float:
        verdict = broker.retention.verdicts.get(log)
        deadline = None if verdict is None else verdict.next_deadline_ms
        return 0.0 if deadline is None else max(0.0, (now_ms - deadline) / 1000)

    return series(broker, overdue, max)


def _blocked_segments(broker: "MetricsView") -> Iterable[Sample]:
    def blocked(log: "Log") -> float:
        verdict = broker.retention.verdicts.get(log)
        return 0.0 if verdict is None else float(verdict.overdue_segments)

    return series(broker, blocked, add)


def _oldest_seconds(broker: "MetricsView") -> Iterable[Sample]:
    def oldest(log: "Log") -> float | None:
        verdict = broker.retention.verdicts.get(log)
        oldest_ms = None if verdict is None else verdict.oldest_ms
        return None if oldest_ms is None else oldest_ms / 1000

    return series(broker, oldest, min)


def _horizon_seconds(broker: "MetricsView") -> Iterable[Sample]:
    now_ms = broker.clock.now_ms()

    def horizon(log: "Log") -> float | None:
        limits = limits_of(log.config)
        by_age = now_ms - limits.retention_ms if limits.retention_ms >= 0 else NO_TIMESTAMP
        latest = max(by_age, limits.before_ms)
        return latest / 1000 if limits.deletes and latest >= 0 else None

    return series(broker, horizon, max)


def _stepped(broker: "MetricsView") -> Iterable[Sample]:
    watch = broker.clock_watch
    return [(("forward",), watch.ahead_ms / 1000), (("backward",), watch.back_ms / 1000)]


RETENTION_METRICS = (
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
        one(lambda broker: broker.retention.removed_segments),
    ),
    counter(
        "horolog_retention_removed_bytes",
        "Bytes of the segments removed since the start.",
        (),
        one(lambda broker: broker.retention.removed_bytes),
    ),
    counter(
        "horolog_broker_clock_steps",
        "Jumps of the wall clock since the start.",
        (),
        one(lambda broker: broker.clock_watch.steps),
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
        one(lambda broker: float(broker.clock_watch.is_held)),
    ),
    counter(
        "horolog_rolled_by_time_segments",
        "Segments that the timer ended since the start.",
        (),
        one(lambda broker: broker.rolling.rolled_segments),
    ),
)
