"""Dumps the files beside a `.log` entry by entry: offset index, time index, aborts, zones.

They are shown as stored, read a piece at a time, without a look at the log (`verify`
compares). What contradicts itself is named where it begins. An index that Kafka preallocated ends,
for its reader, at the first later entry for the base offset; what follows must be zeros.
"""

from collections.abc import Callable, Iterator
from struct import Struct

from protocol.checksum import crc32c
from storage.dump.rows import Damage, Dumped, Row
from storage.index.txn_index import ENTRY as TXN_ENTRY
from storage.index.txn_index import VERSION as TXN_VERSION
from storage.scan.log_window import LogWindow
from storage.zones.rows import (
    ARRIVAL_ESTIMATED,
    DIRTY_FUTURE,
    DIRTY_PAST,
    LIFTED,
    LOG_APPEND_TIME,
    ROW_BYTES,
    UNREAD,
    UNTIMED,
    iter_rows,
)

ZONE_FLAGS = {
    UNTIMED: "untimed",
    DIRTY_FUTURE: "dirtyFuture",
    DIRTY_PAST: "dirtyPast",
    LOG_APPEND_TIME: "logAppendTime",
    ARRIVAL_ESTIMATED: "arrivalEstimated",
    UNREAD: "unread",
    LIFTED: "lifted",
}
_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_PIECE_ENTRIES = 8192


def dump_offset_index(window: LogWindow, base_offset: int) -> Iterator[Dumped]:
    """`offset` and `position` of each entry."""
    if not window.size:
        yield Row("empty", {})
    last = (-1, -1)
    for at, (relative, position) in _entries(window, _OFFSET_ENTRY.size, _OFFSET_ENTRY.iter_unpack):
        if at and not relative:
            yield from _zero_tail(window, at)
            return
        yield Row("offset", {"offset": base_offset + relative, "position": position})
        if relative <= last[0] or position <= last[1]:
            yield Damage(at, f"offset {base_offset + relative} or its position does not rise")
        last = relative, position
    yield from _rest(window, _OFFSET_ENTRY.size)


def dump_time_index(window: LogWindow, base_offset: int) -> Iterator[Dumped]:
    """`timestamp` (ms) and `offset` of each entry."""
    last = (-1, -1)
    for at, (timestamp, relative) in _entries(window, _TIME_ENTRY.size, _TIME_ENTRY.iter_unpack):
        if at and not relative:
            yield from _zero_tail(window, at)
            return
        yield Row("time", {"timestamp": timestamp, "offset": base_offset + relative})
        if timestamp <= last[0] or relative < last[1]:
            yield Damage(at, f"timestamp {timestamp} or its offset goes backwards")
        last = timestamp, relative
    yield from _rest(window, _TIME_ENTRY.size)


def dump_txn_index(window: LogWindow, base_offset: int) -> Iterator[Dumped]:
    """The transactions that were aborted in the segment."""
    last = base_offset - 1
    for at, (version, producer_id, first, ended, stable) in _entries(
        window, TXN_ENTRY.size, TXN_ENTRY.iter_unpack
    ):
        if version > TXN_VERSION:
            yield Damage(at, f"version {version} is not known")
            return
        fields = {
            "version": version,
            "producerId": producer_id,
            "firstOffset": first,
            "lastOffset": ended,
            "lastStableOffset": stable,
        }
        yield Row("abortedTransaction", dict(fields))
        if ended <= last:
            yield Damage(at, f"last offset {ended} is not after {last}")
        last = ended
    yield from _rest(window, TXN_ENTRY.size)


def dump_zones(window: LogWindow, base_offset: int) -> Iterator[Dumped]:
    """Both bounds of both times, zone by zone (time.md 3)."""
    before = (-1, -1)
    for at, (*row, seal) in _entries(window, ROW_BYTES, iter_rows):
        relative, position, count, flags, low, high, first_arrival, last_arrival = row
        is_valid = crc32c(window.view(at, ROW_BYTES - 4)) == seal
        names = [name for bit, name in ZONE_FLAGS.items() if flags & bit]
        yield Row(
            "zone",
            {
                "firstOffset": base_offset + relative,
                "position": position,
                "count": count,
                "minTimestamp": low,
                "maxTimestamp": high,
                "firstArrival": first_arrival,
                "lastArrival": last_arrival,
                "flags": names,
                "isvalid": is_valid,
            },
        )
        if not is_valid:
            yield Damage(at, f"the zone at offset {base_offset + relative} has a wrong CRC")
        elif relative <= before[0] or position <= before[1]:
            yield Damage(at, f"offset {base_offset + relative} or its position does not rise")
        before = relative, position
    yield from _rest(window, ROW_BYTES)


def _entries(
    window: LogWindow, size: int, unpack: Callable[[bytes], Iterator[tuple[int, ...]]]
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Each whole entry of `size` bytes with its position."""
    position, whole = 0, window.size // size * size
    while position < whole:
        piece = bytes(window.view(position, min(_PIECE_ENTRIES * size, whole - position)))
        piece = piece[: len(piece) // size * size]
        if not piece:
            return  # it became shorter while we read
        for fields in unpack(piece):
            yield position, fields
            position += size


def _zero_tail(window: LogWindow, position: int) -> Iterator[Damage]:
    if not window.is_zeros(position):
        yield Damage(position, "an entry for the base offset behind others, and not zeros only")


def _rest(window: LogWindow, entry_bytes: int) -> Iterator[Damage]:
    rest = window.size % entry_bytes
    if rest:
        yield Damage(window.size - rest, f"the last {rest} bytes are no whole entry")
