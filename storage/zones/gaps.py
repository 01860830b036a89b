"""The stretch of time that no record of a zone has: between its usual times and its dirty ones.

One dirty record in every zone, and bounds tell a search nothing any more: all zones reach to 2035.
So a row also says where between its bounds there is nothing. It does so in bits of its flags that
were zero before, by the sizes of two parts as powers of two: every time is less than `2^a` ms
above the minimum, or less than `2^b` below the maximum. Rounding makes a gap smaller, never larger.

Rows with `LOG_APPEND_TIME` have none: their records are found by the broker's times.
"""

from typing import NamedTuple

from protocol.records.batch import NO_TIMESTAMP
from protocol.records.gaps import NO_EDGES, Edges
from storage.zones.rows import DIRTY_FUTURE, DIRTY_PAST

_LOW_SHIFT, _LOW_MASK = 7, 0x7F  # bits of the lower part's size, and one; 0: there is no gap
_HIGH_SHIFT, _HIGH_MASK = 14, 0x3F  # bits of the upper part's size
GAP_BITS = _LOW_MASK << _LOW_SHIFT | _HIGH_MASK << _HIGH_SHIFT
JOINED_WITH_CARE = GAP_BITS | DIRTY_FUTURE | DIRTY_PAST
"""Flags of a zone or batch whose times may leave a gap to those of another."""


class Gap(NamedTuple):
    """Times in ms that no record has, both included."""

    first: int
    last: int


class GapTimes(NamedTuple):
    """Times of a row: both -1 when no record has one."""

    low: int
    high: int
    flags: int


def gap_of(times: GapTimes) -> Gap | None:
    """The gap between two bounds, if the flags tell of one."""
    bits = times.flags >> _LOW_SHIFT & _LOW_MASK
    if not bits:
        return None
    upper = times.flags >> _HIGH_SHIFT & _HIGH_MASK
    return Gap(times.low + (1 << bits - 1), times.high - (1 << upper))


def gap_flags(low: int, high: int, edges: Edges) -> int:
    """The flags of a batch with times from `low` to `high` that come so near to the limits."""
    parts = [(low, low), (high, high)]
    if edges.expired != NO_EDGES.expired:
        parts.append((low, edges.expired))
    if edges.first <= edges.last:
        parts.append((edges.first, edges.last))
    if edges.ahead != NO_EDGES.ahead:
        parts.append((edges.ahead, high))
    return _gap_between(parts)


def joined_flags(one: GapTimes, other: GapTimes) -> int:
    """The flags of both together, with the largest gap that is left."""
    return (one.flags | other.flags) & ~GAP_BITS | _gap_between(_parts(one) + _parts(other))


def _parts(times: GapTimes) -> list[tuple[int, int]]:
    if times.low == NO_TIMESTAMP == times.high:
        return []
    gap = gap_of(times)
    if gap is None:
        return [(times.low, times.high)]
    return [(times.low, gap.first - 1), (gap.last + 1, times.high)]


def _gap_between(parts: list[tuple[int, int]]) -> int:
    """The bits for the widest gap between the parts, each from its first to its last time."""
    if not parts:
        return 0
    parts.sort()
    low, reach = parts[0]
    below = above = reach
    for first, last in parts:
        if first - reach > above - below:
            below, above = reach, first
        reach = max(reach, last)
    return _bits(low, below, above, reach)


def _bits(low: int, below: int, above: int, high: int) -> int:
    """For times from `low` to `below` and from `above` to `high`; 0 when nothing is between."""
    lower, upper = (below - low).bit_length(), (high - above).bit_length()
    if low + (1 << lower) > high - (1 << upper):
        return 0
    return lower + 1 << _LOW_SHIFT | upper << _HIGH_SHIFT
