"""Offsets by the time at which they are due: a wheel of wheels, compact enough for a million.

The finest wheel has buckets of about a second, each coarser one is 64 times as wide. An offset goes
into the finest wheel whose round it falls into, and comes down as its time comes near: a few moves
in its life, and nobody ever looks at all of them. A bucket is three arrays: 20 bytes an entry.
Times are milliseconds.
"""

from array import array
from bisect import insort
from collections.abc import Callable, Iterator
from typing import NamedTuple

FIRST_BITS, ROUND_BITS, WHEELS = 10, 6, 7
ROUND = 1 << ROUND_BITS
LAST_MS = (1 << (FIRST_BITS + ROUND_BITS * WHEELS)) - 1
"""Later than any time that a clock shows: who is due later is due then."""
MOST_OFFSETS = (1 << 31) - 1


class Due(NamedTuple):
    """Neighbouring offsets, both ends included, that are due at the same time."""

    at_ms: int
    first: int
    last: int


class _Bucket:
    __slots__ = ("counts", "firsts", "times")

    def __init__(self) -> None:
        self.times = array("q")
        self.firsts = array("q")
        self.counts = array("i")

    def add(self, due: Due) -> None:
        self.times.append(due.at_ms)
        self.firsts.append(due.first)
        self.counts.append(due.last - due.first + 1)

    def __iter__(self) -> Iterator[Due]:
        for at_ms, first, count in zip(self.times, self.firsts, self.counts, strict=True):
            yield Due(at_ms, first, first + count - 1)


class DueWheel:
    """The offsets of one share partition that wait for their time."""

    def __init__(self, now_ms: int = 0) -> None:
        """Nothing waits; what comes is mostly due later than `now_ms`."""
        self._wheels: list[dict[int, _Bucket]] = [{} for _ in range(WHEELS)]
        self._now: list[Due] = []
        """Offsets that are due before `_reached`, the next one last."""
        self._reached = now_ms >> FIRST_BITS << FIRST_BITS
        self._size = 0

    def __len__(self) -> int:
        """Number of entries."""
        return self._size

    def add(self, due: Due) -> None:
        """Offsets wait from now on; fewer than 2^31 of them."""
        self._size += 1
        self._put(due)

    def take(self, now_ms: int, most: int) -> list[Due]:
        """Removes what is due, by time, then by offset: entries until they have `most` offsets."""
        taken: list[Due] = []
        while most > 0 and self._next_is_due(now_ms):
            due = self._now.pop()
            taken.append(due)
            most -= due.last - due.first + 1
        self._size -= len(taken)
        return taken

    def next_ms(self) -> int | None:
        """A time before which nothing is due; None when nothing waits."""
        if self._now:
            return self._now[-1].at_ms
        found = self._first_bucket()
        return None if found is None else _begin(*found)

    def keep(self, is_wanted: Callable[[Due], bool]) -> None:
        """Removes all that is not wanted. It takes a look at each."""
        kept = [due for due in self._all() if is_wanted(due)]
        self._wheels = [{} for _ in range(WHEELS)]
        self._now = []
        self._size = 0
        for due in kept:
            self.add(due)

    def _all(self) -> Iterator[Due]:
        yield from self._now
        for wheel in self._wheels:
            for bucket in wheel.values():
                yield from bucket

    def _put(self, due: Due) -> None:
        if due.at_ms < self._reached:
            insort(self._now, due, key=_backwards)
            return
        at_ms = min(due.at_ms, LAST_MS)
        shift, level = FIRST_BITS, 0
        while (at_ms >> shift) - (self._reached >> shift) >= ROUND and level + 1 < WHEELS:
            shift, level = shift + ROUND_BITS, level + 1
        index, wheel = at_ms >> shift, self._wheels[level]
        bucket = wheel.get(index)
        if bucket is None:
            bucket = wheel[index] = _Bucket()
        bucket.add(due)

    def _next_is_due(self, now_ms: int) -> bool:
        while not self._now:
            found = self._first_bucket()
            if found is None or _begin(*found) > now_ms:
                return False
            self._come_down(*found)
        return self._now[-1].at_ms <= now_ms

    def _first_bucket(self) -> tuple[int, int] | None:
        """The bucket that begins first, of those the coarsest: its wheel, its number."""
        best: tuple[int, int] | None = None
        for level, wheel in enumerate(self._wheels):
            if wheel:
                index = min(wheel)
                if best is None or _begin(level, index) <= _begin(*best):
                    best = level, index
        return best

    def _come_down(self, level: int, index: int) -> None:
        bucket = self._wheels[level].pop(index)
        begin = _begin(level, index)
        if level:
            self._reached = max(self._reached, begin)
            for due in bucket:
                self._put(due)
            return
        self._reached = max(self._reached, begin + (1 << FIRST_BITS))
        self._now = sorted(bucket, reverse=True)


def _begin(level: int, index: int) -> int:
    return index << (FIRST_BITS + ROUND_BITS * level)


def _backwards(due: Due) -> tuple[int, int]:
    return -due.at_ms, -due.first
