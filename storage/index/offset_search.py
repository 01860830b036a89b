"""Searches of offset indexes whose order nobody has checked, and the proof of what they find.

`OffsetIndex` reads and checks a whole file, and refuses one that a Kafka has open: it is longer
than its entries, and zeros follow them. Here only the entries that a search visits are unpacked, so
each of them is a guess until `indexed_batch` has found the batch that it speaks of.
"""

from bisect import bisect_left, bisect_right
from struct import Struct

from storage.env import FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.index.offset_index import OffsetPosition
from storage.index.sparse_index import used_bytes
from storage.scan.batch_walk import BatchPlace, Readable, batch_at

_ENTRY = Struct(">ii")


class OffsetSearch:
    """The offset index of one segment, as it is in its file."""

    __slots__ = ("_base_offset", "_data", "_numbers")

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        """Reads the file; one that is missing has no entries. DiskError."""
        try:
            data = fs.read_bytes(path)
        except FileMissing:
            data = b""
        self._numbers = range(used_bytes(data, _ENTRY.size) // _ENTRY.size)
        self._base_offset = base_offset
        self._data = data

    def last_up_to(self, offset: int) -> OffsetPosition | None:
        """The entry of the greatest offset that is not above `offset`."""
        wanted = offset - self._base_offset
        behind = bisect_right(self._numbers, wanted, key=lambda number: self._pair(number)[0])
        return self._entry(behind - 1)

    def first_at_position(self, position: int) -> OffsetPosition | None:
        """The first entry at or after a byte position."""
        found = bisect_left(self._numbers, position, key=lambda number: self._pair(number)[1])
        return self._entry(found)

    def _entry(self, number: int) -> OffsetPosition | None:
        if number not in self._numbers:
            return None
        relative, position = self._pair(number)
        if relative < 0 or position < 0:
            return None
        return OffsetPosition(self._base_offset + relative, position)

    def _pair(self, number: int) -> tuple[int, int]:
        relative, position = _ENTRY.unpack_from(self._data, number * _ENTRY.size)
        return relative, position


def indexed_batch(file: Readable, entry: OffsetPosition | None, limit: int) -> BatchPlace | None:
    """The batch that an entry of the offset index speaks of, by its header; None if there is none.

    An entry is true when a batch that begins at its position, within `limit` bytes of the `.log`,
    ends with its offset (semantics.md 2). No entry is no batch. DiskError.
    """
    if entry is None or not 0 <= entry.position < limit:
        return None
    try:
        place = batch_at(file, entry.position, limit)
    except CorruptLog:
        return None
    return place if place.last_offset == entry.offset else None
