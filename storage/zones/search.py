"""Finds batches of a segment by their times, zone by zone; what cannot hold one is not read.

Headers only; the log was checked when it was written, or by recovery. CorruptLog for a header that
no batch can have, CorruptIndex for a zone that does not begin where its row says.
"""

from storage.errors import CorruptIndex
from storage.scan.batch_walk import BatchPlace, Readable, find_timestamp
from storage.timestamps import INT64_MAX
from storage.zones.proof import begin_of
from storage.zones.rows import Zone
from storage.zones.view import ZoneView

WINDOW_BYTES = 160 * 1024  # a zone is read in one piece up to this size


class Window:
    """A stretch of a file in memory; other bytes are read from the file."""

    __slots__ = ("_data", "_file", "_position", "path")

    def __init__(self, file: Readable, position: int, size: int) -> None:
        """Reads the stretch. DiskError."""
        self.path = file.path
        self._file = file
        self._position = position
        self._data = memoryview(file.read_at(position, size))

    def read_at(self, position: int, size: int) -> bytes | memoryview:
        """As of a file; no copy for bytes within the window."""
        begin = position - self._position
        if begin >= 0 and begin + size <= len(self._data):
            return self._data[begin : begin + size]
        return self._file.read_at(position, size)


def zone_window(file: Readable, zone: Zone, end: int) -> Readable:
    """The zone's bytes, read in one piece unless they are many; it must begin as its row says.
    Raises CorruptIndex.
    """
    size = end - zone.position
    window: Readable = Window(file, zone.position, size) if size <= WINDOW_BYTES else file
    if begin_of(window, zone.position, zone.first_offset, end) is None:
        raise CorruptIndex(file.path, f"no zone begins at {zone.position}")
    return window


def find_time(
    file: Readable, zones: ZoneView, position: int, limit: int, timestamp: int
) -> BatchPlace | None:
    """The first batch from `position` on whose largest time is at least `timestamp`, or None."""
    index = max(zones.holding_position(position), 0)
    while (index := zones.next_between(index, timestamp, INT64_MAX)) < zones.total:
        begin = max(zones.zone(index).position, position)
        end = zones.end_position(index, limit)
        if begin >= limit:
            return None
        place = find_timestamp(file, begin, end, timestamp) if begin < end else None
        if place is not None:
            return place
        index += 1
    return None
