"""Gauges of logs: exact per partition up to a bound, beyond it one series per topic.

Above `MAX_EXACT` partitions the label `partition` is `all`: sizes and counts are summed, times are
the largest. Topics beyond `MAX_TOPICS` then share the series of `OTHERS`. So the number of series
stays bounded whatever clients create.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from broker.metrics.declare import Metric, Sample, gauge
from broker.runtime.probes import MAX_TOPICS, OTHERS
from broker.topics.topic_catalog import TopicCatalog
from storage.retention.plan import RetentionClock

if TYPE_CHECKING:
    from storage.log.log import Log

MAX_EXACT = 1000
LABELS = ("topic", "partition")


class HasTopics(Protocol):
    """Services of which gauges of logs read the topics."""

    @property
    def topics(self) -> TopicCatalog:
        """The topics, and with them the logs."""


H = TypeVar("H", bound=HasTopics)


class LogView(NamedTuple):
    """The service that gauges of logs read."""

    topics: TopicCatalog


def per_partition(
    name: str,
    text: str,
    value: "Callable[[Log], float | None]",
    merge: Callable[[float, float], float],
) -> Metric[H]:
    """A gauge of each log; None has no series. `merge` joins two partitions of a topic."""
    return gauge(name, text, LABELS, lambda view: series(view.topics, value, merge))


def series(
    topics: TopicCatalog,
    value: "Callable[[Log], float | None]",
    merge: Callable[[float, float], float],
) -> Iterable[Sample]:
    """The samples of such a gauge, for those that need more than the log to read it."""
    image = topics.image
    exact = image.partition_count <= MAX_EXACT
    found: dict[tuple[str, ...], float] = {}
    for position, topic in enumerate(image.topics.values()):
        name = topic.name if exact or position < MAX_TOPICS else OTHERS
        for partition in topic.led_here():
            number = value(partition.log)
            if number is None:
                continue
            key = (name, str(partition.index) if exact else "all")
            found[key] = merge(found[key], number) if key in found else number
    return found.items()


def _sum(first: float, second: float) -> float:
    return first + second


def _max_record_seconds(log: "Log") -> float | None:
    """Of the segments whose times are known by now; a scrape reads no file."""
    largest = max(segment.max_timestamp for segment in log.snapshot.segments)
    return largest / 1000 if largest >= 0 else None


def _last_arrival_seconds(log: "Log") -> float | None:
    """Known once something was appended, or retention has looked; a scrape reads no file."""
    snapshot = log.snapshot
    for index in range(len(snapshot.segments) - 1, -1, -1):
        segment = snapshot.segments[index]
        if not snapshot.end_of(index):
            continue
        is_written = segment.held is not None and segment.indexes is not None
        arrival_ms = segment.arrival_by_zones if is_written else segment.last_arrival_ms
        return arrival_ms / 1000 if arrival_ms >= 0 else None
    return None


def _effective_max_seconds(log: "Log") -> float | None:
    """Of the two newest times the one that `horolog.retention.clock` trusts; as they are known."""
    record, arrival = _max_record_seconds(log), _last_arrival_seconds(log)
    if record is None or arrival is None:
        return arrival
    match RetentionClock(log.config.horolog_retention_clock):
        case RetentionClock.RECORD:
            return record
        case RetentionClock.ARRIVAL:
            return arrival
        case RetentionClock.EARLIER:
            return min(record, arrival)
        case RetentionClock.LATER:
            return max(record, arrival)


PARTITION_METRICS: tuple[Metric[LogView], ...] = (
    per_partition(
        "horolog_log_start_offset",
        "First offset of the log.",
        lambda log: log.snapshot.log_start_offset,
        _sum,
    ),
    per_partition(
        "horolog_log_end_offset",
        "Offset that the next record gets.",
        lambda log: log.snapshot.log_end_offset,
        _sum,
    ),
    per_partition(
        "horolog_log_high_watermark_offset",
        "Offset up to which consumers may read.",
        lambda log: log.snapshot.high_watermark,
        _sum,
    ),
    per_partition(
        "horolog_log_size_bytes",
        "Bytes of all segments on the disk.",
        lambda log: log.snapshot.local_bytes,
        _sum,
    ),
    per_partition(
        "horolog_log_segments", "Segments of the log.", lambda log: len(log.snapshot.segments), _sum
    ),
    per_partition(
        "horolog_log_offline",
        "1 when the log takes no writes: its disk failed, or the start found damage.",
        lambda log: float(log.fault is not None),
        _sum,
    ),
    per_partition(
        "horolog_log_max_record_timestamp_seconds",
        "Largest time that a record of the log claims.",
        _max_record_seconds,
        max,
    ),
    per_partition(
        "horolog_log_last_arrival_timestamp_seconds",
        "Arrival of the last record, by the broker's clock.",
        _last_arrival_seconds,
        max,
    ),
    per_partition(
        "horolog_log_effective_max_timestamp_seconds",
        "Newest time by the clock that retention goes by (horolog.retention.clock).",
        _effective_max_seconds,
        max,
    ),
)
