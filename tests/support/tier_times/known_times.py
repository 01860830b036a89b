"""Every record that was written, by time, arrival and offset, and the answers that follow.

One rule: the smallest offset whose time by the clock is at least T. Times by arrival are those of
zones, as docs/rules/time.md 3 has them; segments begin where the broker has begun them.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ZONE_BYTES, TIMED_ZONE_BYTES, ZONE_MS = 65_536, 4096, 1000
NO_TIME = -1
Times = NDArray[np.int64]


class ArrivedBatch(NamedTuple):
    """One batch: times of its records, its arrival, and its size in the log."""

    times: tuple[int, ...]
    arrival_ms: int
    size_bytes: int


class FoundRecord(NamedTuple):
    """Offset and time; both -1 when there is none."""

    offset: int
    time_ms: int


class FoundRange(NamedTuple):
    """Number of records; the first offset and the last, None when there are none."""

    records: int
    first: int | None
    last: int | None


NOTHING = FoundRecord(-1, -1)


class KnownTimes:
    """All records of a partition that begins at offset 0."""

    def __init__(self, batches: list[ArrivedBatch], segment_bases: Iterable[int]) -> None:
        """`segment_bases`: first offsets of the segments."""
        zones = list(_last_arrivals(batches, set(segment_bases)))
        claimed = np.array([at for each in batches for at in each.times], np.int64)
        arrival = np.array(
            [at for each, at in zip(batches, zones, strict=True) for _ in each.times], np.int64
        )
        record = np.where(claimed < 0, NO_TIME, claimed)
        earlier = np.where(claimed == NO_TIME, arrival, np.minimum(record, arrival))
        self.by_clock: dict[str, Times] = {
            "record": record,
            "arrival": arrival,
            "earlier": earlier,
        }
        self._largest_so_far = {
            clock: np.maximum.accumulate(times) for clock, times in self.by_clock.items()
        }

    def first(self, clock: str, timestamp: int) -> FoundRecord:
        """The smallest offset with a time of at least `timestamp`; negative ones are none."""
        so_far = self._largest_so_far[clock]
        offset = int(np.searchsorted(so_far, max(timestamp, 0)))
        return NOTHING if offset == len(so_far) else FoundRecord(offset, int(so_far[offset]))

    def largest(self) -> FoundRecord:
        """The first record with the largest record time."""
        times = self.by_clock["record"]
        offset = int(np.argmax(times))
        return FoundRecord(offset, int(times[offset]))

    def between(self, clock: str, from_ms: int, to_ms: int) -> FoundRange:
        """Records with from <= time < to."""
        times = self.by_clock[clock]
        offsets = np.flatnonzero((times >= max(from_ms, 0)) & (times < to_ms))
        if not len(offsets):
            return FoundRange(0, None, None)
        return FoundRange(len(offsets), int(offsets[0]), int(offsets[-1]))


def _last_arrivals(batches: list[ArrivedBatch], bases: set[int]) -> Iterator[int]:
    """Of each batch the last arrival of its zone."""
    offset = size_bytes = count = first_ms = last_ms = 0
    for each in batches:
        is_old = size_bytes >= TIMED_ZONE_BYTES and each.arrival_ms - first_ms >= ZONE_MS
        if count and (is_old or size_bytes >= ZONE_BYTES or offset in bases):
            yield from [last_ms] * count
            count = size_bytes = 0
        if not count:
            first_ms = each.arrival_ms
        last_ms = each.arrival_ms
        count, size_bytes = count + 1, size_bytes + each.size_bytes
        offset += len(each.times)
    yield from [last_ms] * count
