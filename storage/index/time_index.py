"""Time index of a segment: timestamp -> offset (semantics.md 1, KIP-33 as shipped).

An entry is 12 bytes: int64 timestamp, int32 offset minus base, both big-endian. It says: every
record of the segment with a greater timestamp is at or after this offset. Timestamps strictly
rise, offsets never fall. One slot stays free for the entry that is written at roll.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from protocol.records.batch import NO_TIMESTAMP
from storage.errors import CorruptIndex, InvalidOffset
from storage.index.sparse_index import (
    MAX_RELATIVE_OFFSET,
    Columns,
    SparseIndex,
    big_endian,
    is_rising,
)

_HIGH_WORD, _LOW_WORD = (1, 0) if sys.byteorder == "little" else (0, 1)


class TimestampEntry(NamedTuple):
    """A timestamp in milliseconds and the offset that the time index keeps for it."""

    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    """Sparse running maximum of the record time, with the offset where it was reached."""

    ENTRY_BYTES = 12
    __slots__ = ()

    @property
    def is_full(self) -> bool:
        """True when only the slot for the entry at roll is left: the segment must roll."""
        return len(self._load()[0]) >= self.capacity - 1

    @property
    def last_entry(self) -> TimestampEntry:
        """The last entry, or (-1, base)."""
        columns = self._load()
        return self._entry(columns, len(columns[0]) - 1)

    def entry(self, index: int) -> TimestampEntry:
        """The entry number `index`, from 0; IndexError if there is none."""
        columns = self._load()
        if not 0 <= index < len(columns[0]):
            raise IndexError(index)
        return self._entry(columns, index)

    def maybe_append(self, timestamp: int, offset: int, *, skip_full_check: bool = False) -> bool:
        """Offer the running maximum; says whether it became an entry (semantics.md 1.3).

        Only a timestamp above the last one is taken, so -1 never is. ValueError when full (unless
        `skip_full_check`, for the entry at roll) or when the timestamp goes backwards,
        InvalidOffset when the offset does. A refusal changes nothing.
        """
        keys, values = self._columns or self._load()
        count = len(keys)
        if not skip_full_check and count >= self.capacity - 1:
            raise ValueError(f"{self.path}: full with {count} entries")
        relative = offset - self.base_offset
        last = NO_TIMESTAMP
        if count:
            last = keys[-1]
            self._refuse_backwards(timestamp, relative, last, values[-1])
        if timestamp <= last:
            return False
        if not 0 <= relative <= MAX_RELATIVE_OFFSET:
            raise InvalidOffset(self.path, f"{offset} does not fit the base {self.base_offset}")
        values.append(relative)  # first: a reader that sees the key finds its value
        keys.append(timestamp)
        return True

    def lookup(self, timestamp: int) -> TimestampEntry:
        """The greatest entry with a timestamp not above `timestamp`, or (-1, base)."""
        columns = self._load()
        return self._entry(columns, bisect_right(columns[0], timestamp) - 1)

    def search_offset(self, timestamp: int) -> int:
        """First offset to search for `timestamp`: no record before it has that time or a later one.

        Of the greatest entry below it, which is right for both meanings of an entry (time.md 8),
        the one before: so a single wrong entry cannot hide a record.
        """
        columns = self._load()
        index = bisect_left(columns[0], timestamp) - 2
        return self._entry(columns, index).offset

    def truncate_to(self, offset: int) -> None:
        """Keep the entries with an offset below `offset`, in the file too."""
        keys, values = self._load()
        self._keep(bisect_left(values, offset - self.base_offset, 0, len(keys)))

    def _refuse_backwards(
        self, timestamp: int, relative: int, last_timestamp: int, last_relative: int
    ) -> None:
        if relative < last_relative:
            raise InvalidOffset(
                self.path,
                f"{relative + self.base_offset} is before the last entry's "
                f"{last_relative + self.base_offset}",
            )
        if timestamp < last_timestamp:
            raise ValueError(
                f"{self.path}: timestamp {timestamp} is before the last entry's {last_timestamp}"
            )

    def _entry(self, columns: Columns, index: int) -> TimestampEntry:
        if index < 0:
            return TimestampEntry(NO_TIMESTAMP, self.base_offset)
        return TimestampEntry(columns[0][index], self.base_offset + columns[1][index])

    def _decode(self, data: bytes) -> Columns:
        words = big_endian(array("i", data))
        halves = array("i", bytes(8 * (len(words) // 3)))
        halves[_HIGH_WORD::2] = words[0::3]
        halves[_LOW_WORD::2] = words[1::3]
        keys, values = array("q", halves.tobytes()), words[2::3]
        if keys and (keys[0] < 0 or values[0] < 0):
            raise CorruptIndex(self.path, "a timestamp below 0 or an offset before the base")
        if not (is_rising(keys, strictly=True) and is_rising(values, strictly=False)):
            raise CorruptIndex(self.path, "timestamps or offsets go backwards")
        return keys, values

    def _encode(self, columns: Columns, first: int, last: int) -> bytes:
        halves = array("i", columns[0][first:last].tobytes())
        words = array("i", bytes(self.ENTRY_BYTES * (last - first)))
        words[0::3] = halves[_HIGH_WORD::2]
        words[1::3] = halves[_LOW_WORD::2]
        words[2::3] = columns[1][first:last]
        return big_endian(words).tobytes()
