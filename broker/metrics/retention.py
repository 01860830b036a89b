"""Metrics of segments that go, and of those that should have gone (time.md 10)."""

from collections.abc import Iterable
from operator import add
from typing import TYPE_CHECKING

from broker.metrics.declare import Sample, counter, gauge, one
from broker.metrics.partitions import LABELS, series

if TYPE_CHECKING:
    from broker.app import Broker
    from storage.log import Log


def _overdue_seconds(broker: "Broker") -> Iterable[Sample]:
    now_ms = broker.clock.now_ms()

    def overdue(log: "Log") -> float:
        verdict = broker.retention.verdicts.get(log)
        deadline = None if verdict is None else verdict.next_deadline_ms
        return 0.0 if deadline is None else max(0.0, (now_ms - deadline) / 1000)

    return series(broker, overdue, max)


def _blocked_segments(broker: "Broker") -> Iterable[Sample]:
    def blocked(log: "Log") -> float:
        verdict = broker.retention.verdicts.get(log)
        return 0.0 if verdict is None else float(verdict.overdue_segments)

    return series(broker, blocked, add)


RETENTION_METRICS = (
    gauge(
        "horolog_retention_overdue_seconds",
        "For how long a segment has stayed past its own deadline; 0 when none does.",
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
    gauge(
        "horolog_clock_hold",
        "1 while nothing is removed or rolled by time, because the wall clock is in doubt.",
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
