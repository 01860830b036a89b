"""Declarations of the broker's metrics: name, type, labels, help, and the source of the value.

Names follow the Prometheus guide: prefix, base units, `_total` for counters. `read` runs at scrape
time on a thread: it copies what may change under it before it iterates.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from broker.runtime.probes import LATENCY_BUCKETS, Histogram

if TYPE_CHECKING:
    from broker.metrics.view import MetricsView

Sample = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Metric:
    """A counter or gauge: one value per combination of label values."""

    kind: str
    name: str
    help: str
    labels: tuple[str, ...]
    read: "Callable[[MetricsView], Iterable[Sample]]"


@dataclass(frozen=True, slots=True)
class Durations:
    """A histogram of seconds per combination of label values."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: "Callable[[MetricsView], Iterable[tuple[tuple[str, ...], Histogram]]]"


@dataclass(frozen=True, slots=True)
class Spread:
    """A histogram of anything: counts by bound, not cumulative, the last one beyond all bounds."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    read: "Callable[[MetricsView], Iterable[tuple[tuple[str, ...], Sequence[int]]]]"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All metrics that one path answers with."""

    metrics: tuple[Metric, ...]
    durations: tuple[Durations, ...] = ()
    spreads: tuple[Spread, ...] = ()


def counter(
    name: str, text: str, labels: tuple[str, ...], read: "Callable[[MetricsView], Iterable[Sample]]"
) -> Metric:
    """A number that only grows; `name` without the `_total` that readers see."""
    return Metric("counter", name, text, labels, read)


def gauge(
    name: str, text: str, labels: tuple[str, ...], read: "Callable[[MetricsView], Iterable[Sample]]"
) -> Metric:
    """A number as it is at the scrape."""
    return Metric("gauge", name, text, labels, read)


def one(read: "Callable[[MetricsView], float]") -> "Callable[[MetricsView], Iterable[Sample]]":
    """The reader of a metric without labels."""
    return lambda broker: [((), read(broker))]


BUCKETS_SHOWN = tuple(range(5, LATENCY_BUCKETS, 2))  # every second power of two from 32 us on


def cumulative(histogram: Histogram) -> list[tuple[str, float]]:
    """(upper bound in seconds, count up to it), as Prometheus wants buckets."""
    counts = list(histogram.buckets)
    shown: list[tuple[str, float]] = [
        (repr((1 << exponent) / 1e6), float(sum(counts[: exponent + 1])))
        for exponent in BUCKETS_SHOWN
    ]
    shown.append(("+Inf", float(sum(counts))))
    return shown


def summed(bounds: Sequence[float], counts: Sequence[int]) -> list[tuple[str, float]]:
    """(upper bound, count up to it) of a spread, as Prometheus wants buckets."""
    names = [*map(repr, bounds), "+Inf"]
    return list(zip(names, map(float, accumulate(counts)), strict=True))
