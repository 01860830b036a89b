"""Rows of a zone map: 52 bytes each, and what makes them credible (time.md 3).

Big-endian: relative first offset, position, record count, flags (int32 each), minimum and maximum
record time, first and last arrival (int64 each, milliseconds), CRC-32C of the rest. First offsets
and positions rise, arrivals never fall. Pure bytes and values.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from protocol.checksum import crc32c

UNTIMED = 1  # some records have no time
DIRTY_FUTURE = 2
DIRTY_PAST = 4
LOG_APPEND_TIME = 8  # all batches carry the broker's time; record times here are the claimed ones
ARRIVAL_ESTIMATED = 16
UNREAD = 32  # nobody looked into it: it may hold any time
LIFTED = 64  # the wall clock had gone back: stamps may be before the first arrival

ROW_BYTES = 52

_ROW = Struct(">iiiiqqqq")
_SEALED_ROW = Struct(">iiiiqqqqI")


class Zone(NamedTuple):
    """A stretch of a segment: from `position` to the next zone's, or to the segment's end.

    In a row `first_offset` is relative to the segment's base.
    """

    first_offset: int
    position: int
    record_count: int
    flags: int
    min_timestamp: int
    max_timestamp: int
    first_arrival_ms: int
    last_arrival_ms: int


def pack_row(zone: tuple[int, ...]) -> bytes:
    """The row of a zone whose first offset is relative."""
    row = _ROW.pack(*zone)
    seal: int = crc32c(row)
    return row + seal.to_bytes(4)


def iter_rows(rows: bytes) -> Iterator[tuple[int, ...]]:
    """The fields of each row in the order of `Zone`, and its CRC."""
    return _SEALED_ROW.iter_unpack(rows)


def sound_rows(data: bytes) -> tuple[int, str | None]:
    """Number of sound rows from the begin, and the fault of the next one."""
    before: tuple[int, ...] = (-1, -1, 0, 0, 0, 0, 0, 0)
    count = len(data) // ROW_BYTES
    for index, (*row, seal) in enumerate(iter_rows(data[: count * ROW_BYTES])):
        begin = index * ROW_BYTES
        if crc32c(data[begin : begin + _ROW.size]) != seal:
            return index, f"row {index}: the CRC does not match"
        if row[0] <= before[0] or row[1] <= before[1] or not before[-1] <= row[-2] <= row[-1]:
            return index, f"row {index}: offset, position or arrival runs backwards"
        before = tuple(row)
    if len(data) % ROW_BYTES:
        return count, f"{len(data)} bytes are not whole rows"
    return count, None


def sound_zones(data: bytes, base_offset: int = 0) -> tuple[list[Zone], str | None]:
    """The zones of the sound rows from the begin, and the fault of the row behind them.

    Their offsets count from `base_offset`: by default from the segment's.
    """
    good, damage = sound_rows(data)
    rows = iter_rows(data[: good * ROW_BYTES])
    return [Zone(relative + base_offset, *rest) for relative, *rest, _seal in rows], damage


def latest_arrival(last_arrival_ms: int, flags: int, modified_ms: int) -> int:
    """The latest possible arrival of the last zone's last batch, in ms.

    One that is estimated may have been as late as the last write to the `.log`, at `modified_ms`.
    """
    return max(last_arrival_ms, modified_ms) if flags & ARRIVAL_ESTIMATED else last_arrival_ms
