"""The closed zones of a segment as columns of machine numbers: little memory, quick to search.

Rules: rows are added at the end only, by the log's one writer; readers take the count first
and looks at no row beyond it. `positions` grows last, so that a row that is counted is whole. Rows
of `BLOCK` zones have their bounds summed up, so a search passes over 128 zones in one step.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.rows import (
    ARRIVAL_ESTIMATED,
    LIFTED,
    LOG_APPEND_TIME,
    ROW_BYTES,
    pack_row,
)

BLOCK = 128

_WORDS = ROW_BYTES // 4
_HIGH_WORD, _LOW_WORD = (1, 0) if sys.byteorder == "little" else (0, 1)
_SHORT, _LONG = "i", "q"


class ZoneColumns:
    """Rows of a zone map by field; offsets are relative to the segment's base."""

    __slots__ = (
        "_block_flags",
        "_block_floors",
        "_block_reaches",
        "all_flags",
        "counts",
        "first_arrivals",
        "flags",
        "floors",
        "highs",
        "last_arrivals",
        "lows",
        "offsets",
        "positions",
        "reaches",
        "tops",
    )

    def __init__(self) -> None:
        """No rows."""
        self.offsets, self.positions = array(_SHORT), array(_SHORT)
        self.counts, self.flags = array(_SHORT), array(_SHORT)
        self.lows, self.highs = array(_LONG), array(_LONG)
        self.first_arrivals, self.last_arrivals = array(_LONG), array(_LONG)
        self.floors, self.reaches = array(_LONG), array(_LONG)
        """The earliest and the latest time that readers can see there, on the record clock."""
        self.tops = array(_LONG)
        """The greatest of the reaches so far."""
        self.all_flags = 0
        """The flags that any row has."""
        self._block_reaches, self._block_floors = array(_LONG), array(_LONG)
        self._block_flags = array(_SHORT)

    @classmethod
    def of_rows(cls, data: bytes) -> "ZoneColumns":
        """The columns of whole, sound rows as the file has them."""
        words = array(_SHORT, data)
        if sys.byteorder == "little":
            words.byteswap()
        made = cls()
        made.offsets, made.positions = words[0::_WORDS], words[1::_WORDS]
        made.counts, made.flags = words[2::_WORDS], words[3::_WORDS]
        made.lows, made.highs = _longs(words, 4), _longs(words, 6)
        made.first_arrivals, made.last_arrivals = _longs(words, 8), _longs(words, 10)
        made._sum_up()
        return made

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.positions)

    def append(self, row: tuple[int, ...]) -> None:
        """Add a row, in the order of `Zone`."""
        count = len(self.positions)
        self.offsets.append(row[0])
        self.counts.append(row[2])
        self.flags.append(row[3])
        self.lows.append(row[4])
        self.highs.append(row[5])
        self.first_arrivals.append(row[6])
        self.last_arrivals.append(row[7])
        self.floors.append(floor_of(row[3], row[4], row[6]))
        reach = reach_of(row[3], row[5], row[7])
        self.reaches.append(reach)
        self.tops.append(max(reach, self.tops[-1]) if count else reach)
        self.all_flags |= row[3]
        if not (count + 1) % BLOCK:
            self._sum_up_block(count + 1 - BLOCK)
        self.positions.append(row[1])

    def row(self, index: int) -> tuple[int, ...]:
        """The fields of a row, in the order of `Zone`."""
        return (
            self.offsets[index],
            self.positions[index],
            self.counts[index],
            self.flags[index],
            self.lows[index],
            self.highs[index],
            self.first_arrivals[index],
            self.last_arrivals[index],
        )

    def bytes_of(self, first: int, last: int) -> bytes:
        """The rows from `first` to before `last` as the file has them."""
        return b"".join(pack_row(self.row(index)) for index in range(first, last))

    def kept(self, count: int) -> "ZoneColumns":
        """The first `count` rows alone; these stay what they are, for those who read them."""
        made = ZoneColumns()
        for index in range(count):
            made.append(self.row(index))
        return made

    def holding_position(self, position: int, count: int) -> int:
        """The last of `count` rows that begins at or before `position`, or -1."""
        return bisect_right(self.positions, position, 0, count) - 1

    def holding_offset(self, relative: int, count: int) -> int:
        """The last of `count` rows that begins at or before the relative offset, or -1."""
        return bisect_right(self.offsets, relative, 0, count) - 1

    def arrived_from(self, arrival_ms: int, count: int) -> int:
        """The first of `count` rows whose last arrival is not before `arrival_ms`, or `count`."""
        return bisect_left(self.last_arrivals, arrival_ms, 0, count)

    def next_between(self, first: int, count: int, low: int, high: int, wanted_flags: int) -> int:
        """The first row from `first` on that may hold a time from `low` to `high`, or `count`.

        Both included, on the record clock. A row with one of the `wanted_flags` always may.
        """
        reaches, floors, flags = self.reaches, self.floors, self.flags
        index = first
        wanted_flags &= self.all_flags
        if not wanted_flags:
            index = max(first, bisect_left(self.tops, low, 0, count))
        while index < count:
            if (reaches[index] >= low and floors[index] <= high) or flags[index] & wanted_flags:
                return index
            index += 1
            if not index % BLOCK:
                index = self._next_block(index, count, low, high, wanted_flags)
        return count

    def _next_block(self, index: int, count: int, low: int, high: int, wanted_flags: int) -> int:
        """The start of the first block from `index` on that is not to be passed over."""
        reaches, floors, flags = self._block_reaches, self._block_floors, self._block_flags
        for block in range(index // BLOCK, count // BLOCK):
            if (reaches[block] >= low and floors[block] <= high) or flags[block] & wanted_flags:
                return block * BLOCK
        return count // BLOCK * BLOCK

    def _sum_up(self) -> None:
        self.floors, self.reaches = array(_LONG, self.lows), array(_LONG, self.highs)
        for index, flags in enumerate(self.flags):
            if flags & LOG_APPEND_TIME:
                self.floors[index] = floor_of(flags, self.lows[index], self.first_arrivals[index])
                self.reaches[index] = reach_of(flags, self.highs[index], self.last_arrivals[index])
        self.tops = array(_LONG, accumulate(self.reaches, max))
        for first in range(0, len(self) // BLOCK * BLOCK, BLOCK):
            self._sum_up_block(first)
        for flags in set(self.flags):
            self.all_flags |= flags

    def _sum_up_block(self, first: int) -> None:
        last = first + BLOCK
        flags = 0
        for each in self.flags[first:last]:
            flags |= each
        self._block_flags.append(flags)
        self._block_floors.append(min(self.floors[first:last]))
        self._block_reaches.append(max(self.reaches[first:last]))


def _longs(words: "array[int]", first: int) -> "array[int]":
    """The 64-bit column that begins with the word number `first` of each row."""
    halves = array(_SHORT, bytes(8 * (len(words) // _WORDS)))
    halves[_HIGH_WORD::2] = words[first::_WORDS]
    halves[_LOW_WORD::2] = words[first + 1 :: _WORDS]
    return array(_LONG, halves.tobytes())


def floor_of(flags: int, low: int, first_arrival: int) -> int:
    """The earliest time that readers see there, in ms; a stamp is between the zone's arrivals."""
    if not flags & LOG_APPEND_TIME:
        return low
    return INT64_MIN if flags & (ARRIVAL_ESTIMATED | LIFTED) else first_arrival


def reach_of(flags: int, high: int, last_arrival: int) -> int:
    """The latest time that readers see there: rows of stamped batches have the claimed ones."""
    if not flags & LOG_APPEND_TIME:
        return high
    return INT64_MAX if flags & ARRIVAL_ESTIMATED else last_arrival
