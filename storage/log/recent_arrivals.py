"""Arrivals of the batches of late, each one: a zone map has those of a zone's first and last."""

from array import array
from bisect import bisect_left

from storage.locks import Lock


class RecentArrivals:
    """Used from any thread; one adds at a time."""

    __slots__ = ("_arrivals", "_gate", "_offsets", "begin")

    def __init__(self, begin: int) -> None:
        """Batches from this offset on are kept."""
        self.begin = begin
        self._gate = Lock()
        self._offsets = array("q")
        self._arrivals = array("q")

    def add(self, base_offset: int, arrival_ms: int) -> None:
        """A batch was appended; it came at that time (ms)."""
        with self._gate:
            self._offsets.append(base_offset)
            self._arrivals.append(arrival_ms)

    def of(self, base_offset: int) -> int | None:
        """The arrival of the batch that begins there; None for one that is not kept."""
        with self._gate:
            at = bisect_left(self._offsets, base_offset)
            is_kept = at < len(self._offsets) and self._offsets[at] == base_offset
            return self._arrivals[at] if is_kept else None

    def forget(self, below: int) -> None:
        """Batches below that offset are not asked for any more."""
        with self._gate:
            at = bisect_left(self._offsets, below)
            self._offsets, self._arrivals = self._offsets[at:], self._arrivals[at:]
            self.begin = max(self.begin, below)
