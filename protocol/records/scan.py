# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""A log's bytes walked header by header, a chunk at a time: recovery, reads and the search by time.

Like `walk`, written once and run compiled or as it stands, with the same results. The scan checks
each batch's CRC and says why it stopped, for its caller decides what a bad end means: a write that
was torn, or damage. The skips trust a log that was checked when it was written, and read headers
only. Format 2 only; positions are bytes from the start of `data`. Rules: semantics.md 7.2, 9.

Fields of a header are read only where `batch_size` found all its 61 bytes; Cython's own bounds
checks are off here, since they would keep the readers from being inlined.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import cython

from protocol.checksum import crc32c
from protocol.records.batch import CorruptBatch

if cython.compiled:
    from cython.cimports.protocol.records.numbers import int16_at, int32_at, int64_at
else:
    from protocol.records.numbers import int16_at, int32_at, int64_at

HEADER = cython.declare(cython.Py_ssize_t, 61)
LENGTH_ENDS = cython.declare(cython.Py_ssize_t, 12)
ROW = cython.declare(cython.Py_ssize_t, 12)  # numbers of a batch
CRC_STARTS = cython.declare(cython.Py_ssize_t, 21)
HIGHEST = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)

Buffer = bytes | bytearray | memoryview
Fault = Literal["", "length", "magic", "offset", "crc"]
_FAULTS: tuple[Fault, ...] = ("", "length", "magic", "offset")  # by the negative of `batch_size`

# position, base offset, last offset, base timestamp, max timestamp, size in bytes, record count,
# attributes, producer id, producer epoch, base sequence, leader epoch
BatchRow = tuple[int, int, int, int, int, int, int, int, int, int, int, int]


class Scan(NamedTuple):
    """The good batches of a chunk, and why the scan ended where it did."""

    batches: list[BatchRow]
    stop: Literal["end", "partial", "corrupt"]
    position: int  # after the last good batch
    needed: int  # when "partial": bytes from `position` on that the next header or batch takes
    fault: Fault  # when "corrupt": what is wrong there


def scan_batches(data: Buffer, position: cython.Py_ssize_t = 0) -> Scan:
    """Walk the whole batches from `position` on, checking length, format, offsets and CRC.

    "end": the data ended with a batch. "partial": what is left is less than a header, or than the
    batch its header announces. "corrupt": the next batch is all there, or its header is, and wrong.
    """
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = checked_limit(len(data), position)
    size: cython.Py_ssize_t
    batches: list[BatchRow] = []
    with memoryview(data) as view:
        while position < limit:
            size = batch_size(octets, position, limit)
            if size < 0:
                return Scan(batches, "corrupt", position, 0, _FAULTS[-size])
            if size == 0 or size > limit - position:
                return Scan(batches, "partial", position, size or HEADER, "")
            if crc32c(view[position + CRC_STARTS : position + size]) != stated_crc(
                octets, position
            ):
                return Scan(batches, "corrupt", position, 0, "crc")
            batches.append(row_at(octets, position, size))
            position += size
    return Scan(batches, "end", position, 0, "")


def tabulate_batches(
    data: Buffer, position: cython.Py_ssize_t, table: cython.longlong[::1]
) -> tuple[int, Scan]:
    """As `scan_batches`, with the rows in `table`, twelve numbers each, and none in the answer.

    Gives how many rows were written. A full table is an "end", too: there may be more.
    """
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = checked_limit(len(data), position)
    size: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    with memoryview(data) as view:
        while position < limit and at + ROW <= len(table):
            size = batch_size(octets, position, limit)
            if size < 0:
                return at // ROW, Scan([], "corrupt", position, 0, _FAULTS[-size])
            if size == 0 or size > limit - position:
                return at // ROW, Scan([], "partial", position, size or HEADER, "")
            if crc32c(view[position + CRC_STARTS : position + size]) != stated_crc(
                octets, position
            ):
                return at // ROW, Scan([], "corrupt", position, 0, "crc")
            write_row(octets, position, size, table, at)
            position += size
            at += ROW
    return at // ROW, Scan([], "end", position, 0, "")


def find_next_batch(data: Buffer, position: cython.Py_ssize_t) -> int:
    """Find where, from `position` on, a whole batch with a right CRC begins; -1 when nowhere.

    The CRCs it computes cover at most four times the data, so crafted bytes cannot make it slow.
    """
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = checked_limit(len(data), position)
    size: cython.Py_ssize_t
    budget: cython.longlong = 4 * limit
    raw: bytes = bytes(data)
    at: cython.Py_ssize_t = raw.find(b"\x02", position + 16)  # the format's number
    with memoryview(data) as view:
        while at >= 0 and budget > 0:
            position = at - 16
            size = batch_size(octets, position, limit)
            if 0 < size <= limit - position:
                budget -= size
                if crc32c(view[position + CRC_STARTS : position + size]) == stated_crc(
                    octets, position
                ):
                    return position
            at = raw.find(b"\x02", at + 1)
    return -1


def skip_to_offset(data: Buffer, position: cython.Py_ssize_t, offset: cython.longlong) -> int:
    """Find the first batch whose last offset is at least `offset`; -1 when the data ends before.

    The found batch may itself be cut off by the end of the data. CorruptBatch for a header that no
    batch can have. After -1, `resume_position` tells where to go on.
    """
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = checked_limit(len(data), position)
    size: cython.Py_ssize_t = batch_size(octets, position, limit)
    while size > 0:
        if last_offset(octets, position) >= offset:
            return position
        position += size
        size = batch_size(octets, position, limit)
    return nowhere(size, position)


def skip_to_timestamp(data: Buffer, position: cython.Py_ssize_t, timestamp: cython.longlong) -> int:
    """Find the first batch whose maximum timestamp (ms) is at least `timestamp`; else as above."""
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = checked_limit(len(data), position)
    size: cython.Py_ssize_t = batch_size(octets, position, limit)
    while size > 0:
        if int64_at(octets, position + 35) >= timestamp:
            return position
        position += size
        size = batch_size(octets, position, limit)
    return nowhere(size, position)


def resume_position(data: Buffer, position: cython.Py_ssize_t) -> int:
    """Position of the first header that is not wholly in the data; may be past the data's end."""
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = checked_limit(len(data), position)
    size: cython.Py_ssize_t = batch_size(octets, position, limit)
    while size > 0:
        position += size
        size = batch_size(octets, position, limit)
    nowhere(size, position)
    return position


@cython.cfunc
@cython.inline
def checked_limit(limit: cython.Py_ssize_t, position: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Give the limit; ValueError when the walk would begin before the data."""
    if position < 0:
        raise ValueError(f"position {position} is before the data")
    return limit


@cython.cfunc
def nowhere(size: cython.Py_ssize_t, position: cython.Py_ssize_t) -> cython.int:
    """Give -1 for data that ended; CorruptBatch when `size` is a fault."""
    if size < 0:
        raise CorruptBatch(f"the {_FAULTS[-size]} in a batch's header is wrong", position)
    return -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def batch_size(
    octets: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, limit: cython.Py_ssize_t
) -> cython.Py_ssize_t:
    """Size of the batch at `position`; 0 when its header is cut off, negative for a fault in it."""
    base_offset: cython.longlong
    delta: cython.longlong
    size: cython.Py_ssize_t
    if limit - position < HEADER:
        return 0
    size = int32_at(octets, position + 8) + LENGTH_ENDS
    if size < HEADER:
        return -1
    if octets[position + 16] != 2:
        return -2
    base_offset = int64_at(octets, position)
    delta = int32_at(octets, position + 23)
    if base_offset < 0 or delta < 0 or base_offset > HIGHEST - delta:
        return -3
    return size


@cython.cfunc
@cython.inline
def row_at(
    octets: cython.const[cython.uchar][::1], position: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> BatchRow:
    """Collect what recovery wants to know of a batch."""
    return (
        position,
        int64_at(octets, position),
        last_offset(octets, position),
        int64_at(octets, position + 27),
        int64_at(octets, position + 35),
        size,
        int32_at(octets, position + 57),
        int16_at(octets, position + 21),
        int64_at(octets, position + 43),
        int16_at(octets, position + 51),
        int32_at(octets, position + 53),
        int32_at(octets, position + 12),
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def write_row(
    octets: cython.const[cython.uchar][::1],
    position: cython.Py_ssize_t,
    size: cython.Py_ssize_t,
    table: cython.longlong[::1],
    at: cython.Py_ssize_t,
) -> cython.void:
    """Write what `row_at` collects, in its order."""
    table[at] = position
    table[at + 1] = int64_at(octets, position)
    table[at + 2] = last_offset(octets, position)
    table[at + 3] = int64_at(octets, position + 27)
    table[at + 4] = int64_at(octets, position + 35)
    table[at + 5] = size
    table[at + 6] = int32_at(octets, position + 57)
    table[at + 7] = int16_at(octets, position + 21)
    table[at + 8] = int64_at(octets, position + 43)
    table[at + 9] = int16_at(octets, position + 51)
    table[at + 10] = int32_at(octets, position + 53)
    table[at + 11] = int32_at(octets, position + 12)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def last_offset(
    octets: cython.const[cython.uchar][::1], position: cython.Py_ssize_t
) -> cython.longlong:
    """Offset of the last record of the batch at `position`."""
    return int64_at(octets, position) + int32_at(octets, position + 23)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def stated_crc(
    octets: cython.const[cython.uchar][::1], position: cython.Py_ssize_t
) -> cython.longlong:
    """The CRC that the header of the batch at `position` holds."""
    return int32_at(octets, position + 17) & 0xFFFFFFFF
