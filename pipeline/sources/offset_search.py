"""Searches an offset index in its file; only the entries that a search visits are unpacked. An
index that a Kafka has open is longer than its entries, and zeros follow them.
"""

from bisect import bisect_left, bisect_right
from struct import Struct

from storage.env import FileSystem
from storage.errors import FileMissing
from storage.index.offset_index import OffsetPosition

_ENTRY = Struct(">ii")


class OffsetSearch:
    """The offset index of one segment, unproved."""

    __slots__ = ("_base_offset", "_data", "_numbers")

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        """Reads the file; one that is missing has no entries. DiskError."""
        try:
            data = fs.read_bytes(path)
        except FileMissing:
            data = b""
        used = -(-len(data.rstrip(b"\0")) // _ENTRY.size)
        self._numbers = range(min(used, len(data) // _ENTRY.size))
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
