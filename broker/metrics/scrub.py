"""Metrics of the check for rot: how far it is, and what it found."""

from collections.abc import Iterable
from typing import NamedTuple

from broker.metrics.declare import Metric, Sample, counter, gauge, one
from broker.tasks.scrubber import Scrubber


class ScrubView(NamedTuple):
    """The service that metrics of the check for rot read."""

    scrubber: Scrubber


NOWHERE = -1


def _faulty(view: ScrubView) -> Iterable[Sample]:
    """Only logs in which something was found have a series: none, when all is well."""
    for log, rot in view.scrubber.found().items():
        for severity in ("damage", "wrong"):
            count = sum(any(f.severity == severity for f in each.findings) for each in rot)
            if count:
                yield (log.topic, str(log.partition), severity), float(count)


def _ended_seconds(view: ScrubView) -> Iterable[Sample]:
    ended_ms = view.scrubber.tally.ended_ms
    return [((), ended_ms / 1000)] if ended_ms != NOWHERE else []


SCRUB_METRICS: tuple[Metric[ScrubView], ...] = (
    counter(
        "horolog_scrub_read_bytes",
        "Bytes of closed segments that were read again to look for rot.",
        (),
        one(lambda view: view.scrubber.tally.bytes_read),
    ),
    counter(
        "horolog_scrub_read_segments",
        "Closed segments that were read again whole.",
        (),
        one(lambda view: view.scrubber.tally.segments_read),
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
