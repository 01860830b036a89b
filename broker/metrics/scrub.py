"""Metrics of the check for rot: how far it is, and what it found."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.metrics.declare import Metric, Sample, counter, gauge, one

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView

NOWHERE = -1


def _faulty(broker: "MetricsView") -> Iterable[Sample]:
    """Only logs in which something was found have a series: none, when all is well."""
    for log, rot in broker.scrubber.found().items():
        for severity in ("damage", "wrong"):
            count = sum(any(f.severity == severity for f in each.findings) for each in rot)
            if count:
                yield (log.topic, str(log.partition), severity), float(count)


def _ended_seconds(broker: "MetricsView") -> Iterable[Sample]:
    ended_ms = broker.scrubber.tally.ended_ms
    return [((), ended_ms / 1000)] if ended_ms != NOWHERE else []


SCRUB_METRICS: tuple[Metric, ...] = (
    counter(
        "horolog_scrub_read_bytes",
        "Bytes of closed segments that were read again to look for rot.",
        (),
        one(lambda broker: broker.scrubber.tally.bytes_read),
    ),
    counter(
        "horolog_scrub_read_segments",
        "Closed segments that were read again whole.",
        (),
        one(lambda broker: broker.scrubber.tally.segments_read),
    ),
    gauge(
        "horolog_scrub_faulty_segments",
        "Segments whose records (damage) or indexes (wrong) are not what was written.",
        ("topic", "partition", "severity"),
        _faulty,
    ),
    gauge(
        "horolog_scrub_last_pass_timestamp_seconds",
        "End of the last pass over all logs since the start.",
        (),
        _ended_seconds,
    ),
)
