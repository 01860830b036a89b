"""Answers to a search by time, from a plain list of the records: the exact one, and Kafka's."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.support.tier_sides.side import Lived, Row

NOTHING = (0, -1, -1)
Found = tuple[int, int, int]
"""Error code, time, offset."""


class Places(NamedTuple):
    """Offsets at which parts of the log begin."""

    start: int
    local_start: int
    bases: list[int]
    """First offsets of all segments that are not removed, in order."""


def exact(lived: Lived, places: Places, at: int, below: int) -> Found:
    """The first record at or after the log's start, at that time or later, below that offset."""
    return _visible(_first(lived.rows, at, places.start), below)


def by_kafka(lived: Lived, places: Places, at: int, below: int) -> Found:
    """Kafka's rule: one segment of the tier is searched, the first whose largest time is late
    enough; where it has nothing, one segment of the local part.

    A segment without times has that of its file instead, which is about now.
    """
    rows, ends = lived.rows, [*places.bases[1:], lived.end]
    segments = list(zip(places.bases, ends, strict=True))
    for base, end in segments:
        inside = [row for row in rows if base <= row.offset < end]
        if (
            base < places.local_start
            and end > places.start
            and _largest(inside, lived.now_ms) >= at
        ):
            if (found := _first(inside, at, places.start)) is not None:
                return _visible(found, below)
            break
    for base, end in segments:
        inside = [row for row in rows if base <= row.offset < end]
        if base >= places.local_start and _largest(inside, lived.now_ms) >= at:
            return _visible(_first(inside, at, places.start), below)
    return NOTHING


def newest(rows: Iterable[Row]) -> Found:
    """The first of the records with the largest time."""
    best = max(rows, key=lambda row: (row.time_ms, -row.offset), default=None)
    return NOTHING if best is None else (0, best.time_ms, best.offset)


def _largest(rows: Iterable[Row], now_ms: int) -> int:
    """Largest time of a segment's records; that of its file if none has one."""
    found = max((row.time_ms for row in rows), default=-1)
    return now_ms if found < 0 else found


def _first(rows: Iterable[Row], at: int, start: int) -> Row | None:
    late = (row for row in rows if row.offset >= start and row.time_ms >= at)
    return next(late, None)


def _visible(row: Row | None, below: int) -> Found:
    return NOTHING if row is None or row.offset >= below else (0, row.time_ms, row.offset)
