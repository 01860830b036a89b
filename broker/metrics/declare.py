"""Declarations of the broker's metrics: name, type, labels, help, and the source of the value.

Names follow the Prometheus guide: prefix, base units, `_total` for counters. `read` runs at scrape
time on a thread: it copies what may change under it before it iterates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Generic, TypeVar

from broker.runtime.probes import LATENCY_BUCKETS, Histogram

Sample = tuple[tuple[str, ...], float]
T = TypeVar("T")
"""Services that a metric reads."""


@dataclass(frozen=True, slots=True)
class Metric(Generic[T]):
    """A counter or gauge: one value per combination of label values."""

    kind: str
    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[T], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Durations(Generic[T]):
    """A histogram of seconds per combination of label values."""

    name: str
    help: str
    labels: tuple[str, ...]
    read: Callable[[T], Iterable[tuple[tuple[str, ...], Histogram]]]


@dataclass(frozen=True, slots=True)
class Spread(Generic[T]):
    """A histogram of anything: counts by bound, not cumulative, the last one beyond all bounds."""

    name: str
    help: str
    labels: tuple[str, ...]
    bounds: tuple[float, ...]
    read: Callable[[T], Iterable[tuple[tuple[str, ...], Sequence[int]]]]


@dataclass(frozen=True, slots=True)
class Family(Generic[T]):
    """Metrics that read the same services: a NamedTuple, bound once."""

    services: type[T]
    metrics: tuple[Metric[T], ...] = ()
    durations: tuple[Durations[T], ...] = ()
    spreads: tuple[Spread[T], ...] = ()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All metrics that one path answers with."""

    families: tuple[Family[Any], ...]

    @property
    def metrics(self) -> tuple[Metric[Any], ...]:
        """Its counters and gauges."""
        return tuple(each for family in self.families for each in family.metrics)

    @property
    def durations(self) -> tuple[Durations[Any], ...]:
        """Its histograms of seconds."""
        return tuple(each for family in self.families for each in family.durations)

    @property
    def spreads(self) -> tuple[Spread[Any], ...]:
        """Its other histograms."""
        return tuple(each for family in self.families for each in family.spreads)


def counter(
    name: str, text: str, labels: tuple[str, ...], read: Callable[[T], Iterable[Sample]]
) -> Metric[T]:
    """A number that only grows; `name` without the `_total` that readers see."""
    return Metric("counter", name, text, labels, read)


def gauge(
    name: str, text: str, labels: tuple[str, ...], read: Callable[[T], Iterable[Sample]]
) -> Metric[T]:
    """A number as it is at the scrape."""
    return Metric("gauge", name, text, labels, read)


def one(read: Callable[[T], float]) -> Callable[[T], Iterable[Sample]]:
    """The reader of a metric without labels."""
    return lambda services: [((), read(services))]


def labelled(values: Mapping[str, int]) -> Iterable[Sample]:
    """The samples of a metric with one label, by its value."""
    return [((label,), float(value)) for label, value in dict(values).items()]


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
