"""Filters of Spark's as bounds of a read. None is taken over: Spark applies them all again.

What can prune: comparisons, equality and IN on `offset`, `timestamp`, `timestampMs`, `appendTime`,
`partition` and `topic`, joined by AND. Nothing below OR ever reaches a source.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql.datasource import (
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
)

from pipeline.sources.bounds import ANY, OffsetBounds, Range

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def narrowed(bounds: OffsetBounds, filters: Iterable[Filter]) -> OffsetBounds:
    """The bounds that are left when the filters hold as well."""
    for each in filters:
        attribute: tuple[str, ...] = getattr(each, "attribute", ())
        if len(attribute) == 1:
            bounds = _with(bounds, attribute[0].lower(), each)
    return bounds


def _with(bounds: OffsetBounds, column: str, found: Filter) -> OffsetBounds:
    match column:
        case "offset":
            return replace(bounds, offsets=bounds.offsets.within(_range(found, int)))
        case "timestamp":
            return replace(bounds, times=bounds.times.within(_range(found, _ms)))
        case "timestampms":
            return replace(bounds, times=bounds.times.within(_range(found, int)))
        case "appendtime":
            return replace(bounds, arrivals=bounds.arrivals.within(_range(found, _ms)))
        case "partition":
            return replace(bounds, partitions=_among(bounds.partitions, found))
        case "topic":
            return replace(bounds, topics=_among(bounds.topics, found))
    return bounds


def _among(known: frozenset[Any] | None, found: Filter) -> frozenset[Any] | None:
    values = _values(found)
    if values is None:
        return known
    return frozenset(values) if known is None else known & frozenset(values)


def _range(found: Filter, number_of: Callable[[Any], int]) -> Range:
    """The numbers that a comparison leaves, or more: strict bounds count as included."""
    match found:
        case GreaterThan() | GreaterThanOrEqual():
            return Range(low=number_of(found.value))
        case LessThan() | LessThanOrEqual():
            return Range(high=number_of(found.value))
    values = [number_of(each) for each in _values(found) or ()]
    return Range(min(values), max(values)) if values else ANY


def _values(found: Filter) -> list[Any] | None:
    """Values that an equality or IN allows; None for another filter."""
    match found:
        case EqualTo():
            return [found.value]
        case In():
            return [each for each in found.value if each is not None]
    return None


def _ms(value: datetime) -> int:
    """Milliseconds, rounded down: a bound between two of them leaves both in."""
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    passed = value - _EPOCH
    return (passed.days * 86_400_000_000 + passed.seconds * 1_000_000 + passed.microseconds) // 1000
