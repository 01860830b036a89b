"""Offset index of a segment: offset -> byte position in its `.log` (semantics.md 2).

An entry is 8 bytes: int32 offset minus base, int32 position, both big-endian. The offset is the
last one of the batch that begins at the position, so a search that starts at the greatest entry
below the wanted offset never begins too late.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from storage.errors import CorruptIndex, InvalidOffset
from storage.index.sparse_index import (
    MAX_RELATIVE_OFFSET,
    Columns,
    SparseIndex,
    big_endian,
    is_rising,
)


class OffsetPosition(NamedTuple):
    """An offset and the byte position in the segment's `.log` that belongs to it."""

    offset: int
    position: int


class OffsetIndex(SparseIndex):
    """Sparse map from offsets to positions; both strictly rise."""

    ENTRY_BYTES = 8
    __slots__ = ()

    @property
    def is_full(self) -> bool:
        """True when no slot is left: the segment must roll."""
        return len(self._load()[0]) >= self.capacity

    @property
    def last_entry(self) -> OffsetPosition:
        """The last entry, or (base, 0)."""
        columns = self._load()
        return self._entry(columns, len(columns[0]) - 1)

    def entry(self, index: int) -> OffsetPosition:
        """The entry number `index`, from 0; IndexError if there is none."""
        columns = self._load()
        if not 0 <= index < len(columns[0]):
            raise IndexError(index)
        return self._entry(columns, index)

    def append(self, offset: int, position: int) -> None:
        """Add an entry; it is in the file after `flush`.

        ValueError when the index is full, InvalidOffset when the offset is not greater than the
        last one or further than 2^31-1 from the base. A refusal changes nothing.
        """
        keys, values = self._columns or self._load()
        count = len(keys)
        if count >= self.capacity:
            raise ValueError(f"{self.path}: full with {count} entries")
        relative = offset - self.base_offset
        if count and relative <= keys[-1]:
            raise InvalidOffset(
                self.path, f"{offset} is not after the last entry {keys[-1] + self.base_offset}"
            )
        if not 0 <= relative <= MAX_RELATIVE_OFFSET:
            raise InvalidOffset(self.path, f"{offset} does not fit the base {self.base_offset}")
        values.append(position)  # first: a reader that sees the key finds its value
        keys.append(relative)

    def lookup(self, offset: int) -> OffsetPosition:
        """The greatest entry not above `offset`, or (base, 0)."""
        columns = self._load()
        return self._entry(columns, bisect_right(columns[0], offset - self.base_offset) - 1)

    def first_at_position(self, position: int) -> OffsetPosition | None:
        """The first entry at or after `position`: bounds the search for aborted transactions."""
        columns = keys, values = self._load()
        count = len(keys)
        index = bisect_left(values, position, 0, count)
        return self._entry(columns, index) if index < count else None

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`, in the file too."""
        self._keep(bisect_left(self._load()[0], offset - self.base_offset))

    def _entry(self, columns: Columns, index: int) -> OffsetPosition:
        if index < 0:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + columns[0][index], columns[1][index])

    def _decode(self, data: bytes) -> Columns:
        words = big_endian(array("i", data))
        keys, values = words[0::2], words[1::2]
        if keys and (keys[0] < 0 or values[0] < 0):
            raise CorruptIndex(self.path, "an offset or position before the segment's begin")
        if not (is_rising(keys, strictly=True) and is_rising(values, strictly=True)):
            raise CorruptIndex(self.path, "offsets or positions do not rise")
        return keys, values

    def _encode(self, columns: Columns, first: int, last: int) -> bytes:
        words = array("i", bytes(self.ENTRY_BYTES * (last - first)))
        words[0::2] = columns[0][first:last]
        words[1::2] = columns[1][first:last]
        return big_endian(words).tobytes()
