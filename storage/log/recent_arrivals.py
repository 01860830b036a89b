"""Arrivals of the batches of late, each one: a zone map has those of a zone's first and last. With
each its checksum as it was appended: compaction may write other bytes in its place.
"""

from array import array
from bisect import bisect_left
from typing import NamedTuple

from storage.locks import Lock


class RecentBatch(NamedTuple):
    """A batch as it was appended."""

    arrival_ms: int
    crc: int
    """As its header states it, of all but its offset and leader epoch."""


class RecentArrivals:
    """Used from any thread; one adds at a time."""

    __slots__ = ("_arrivals", "_crcs", "_gate", "_offsets", "begin")

    def __init__(self, begin: int) -> None:
        """Batches from this offset on are kept."""
        self.begin = begin
        self._gate = Lock()
        self._offsets = array("q")
        self._arrivals = array("q")
        self._crcs = array("I")

    def add(self, base_offset: int, arrival_ms: int, crc: int) -> None:
        """A batch was appended."""
        with self._gate:
            self._offsets.append(base_offset)
            self._arrivals.append(arrival_ms)
            self._crcs.append(crc)

    def of(self, base_offset: int) -> RecentBatch | None:
        """The batch that begins there; None for one that is not kept."""
        with self._gate:
            at = bisect_left(self._offsets, base_offset)
            is_kept = at < len(self._offsets) and self._offsets[at] == base_offset
            return RecentBatch(self._arrivals[at], self._crcs[at]) if is_kept else None

    def forget(self, below: int) -> None:
        """Batches below that offset are not asked for any more."""
        with self._gate:
            at = bisect_left(self._offsets, below)
            self._offsets, self._arrivals = self._offsets[at:], self._arrivals[at:]
            self._crcs = self._crcs[at:]
            self.begin = max(self.begin, below)
