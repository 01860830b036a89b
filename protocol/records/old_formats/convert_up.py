# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Messages of formats 0 and 1 into the records of a batch, in one pass, no object a record.

As `walk`, written once and run compiled or as it stands, with the same results. Nothing is trusted:
each message's size, format, CRC-32, key and value are checked before they are used. Rules:
semantics.md 7.1, 7.2, 7.5.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import cython

from protocol.records.batch import CorruptBatch, InvalidRecords
from protocol.records.blank import blank
from protocol.records.yielding import let_others_run

if cython.compiled:
    from cython.cimports.protocol.records.numbers import (
        int32_at,
        int64_at,
        put_bytes,
        put_zigzag,
        zigzag_size,
    )
else:
    from protocol.records.numbers import int32_at, int64_at, put_bytes, put_zigzag, zigzag_size

HIGHEST = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
LOWEST = cython.declare(cython.longlong, -0x7FFF_FFFF_FFFF_FFFF - 1)
LARGEST_DELTA = cython.declare(cython.longlong, 0x7FFF_FFFF)

STRETCH_BYTES = cython.declare(cython.Py_ssize_t, 256 * 1024)  # then other threads may run
LEAST = cython.declare(cython.Py_ssize_t, 26)  # bytes that a message of format 0 has
CODEC_BITS = cython.declare(cython.int, 7)
STAMPED_BIT = cython.declare(cython.int, 8)

# Faults, in the order in which they are judged; the CRC covers what the later ones look at.
CUT_OFF = cython.declare(cython.int, 1)
OTHER_FORMAT = cython.declare(cython.int, 2)
SIZE = cython.declare(cython.int, 3)
CRC = cython.declare(cython.int, 4)
PACKED = cython.declare(cython.int, 5)
KEY = cython.declare(cython.int, 6)
VALUE = cython.declare(cython.int, 7)

Buffer = bytes | bytearray | memoryview


class BatchRecords(NamedTuple):
    """The records of a batch that is being made, and what its header will say of them."""

    records: memoryview
    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody counts with
    first_offset: int  # as the messages have it, so relative in a wrapper of format 1
    last_offset: int
    base_timestamp: int  # ms; of the first message, -1 in format 0
    max_timestamp: int  # at least -1
    claims_stamp: bool  # whether a message says that a broker stamped it


def records_of(  # noqa: PLR0917 - called by position from one place
    data: Buffer,
    magic: cython.int,
    keep_offsets: cython.bint,
    stamped: cython.bint,
    stamp: cython.longlong,
    where: str,
) -> BatchRecords:
    """Make v2 records of a set of uncompressed messages of format `magic`.

    Offset deltas are 0, 1, 2, ..., or with `keep_offsets` what the messages' offsets call for.
    `stamped`: the wrapper says that every time is `stamp`. CorruptBatch for sizes, formats and
    CRCs; InvalidRecords for what a sound message may not say, and for times or kept offsets that a
    batch cannot hold. `where` is the set's name in errors.
    """
    octets: cython.const[cython.uchar][::1] = data
    limit: cython.Py_ssize_t = len(data)
    # A record takes at most 32 bytes beside key and value, a message at least 26.
    made: Buffer = blank(limit + limit // 4 + 64)
    out: cython.uchar[::1] = made
    at: cython.Py_ssize_t = 0
    rest_at: cython.Py_ssize_t = STRETCH_BYTES
    end: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    written: cython.Py_ssize_t = 0
    fault: cython.int
    count: cython.longlong = 0
    delta: cython.longlong
    offset: cython.longlong
    first_offset: cython.longlong = 0
    last_offset: cython.longlong = -1
    timestamp: cython.longlong = -1
    base: cython.longlong = -1
    latest: cython.longlong = -1
    attributes: cython.int = 0
    with memoryview(data) as view:
        while at < limit:
            fault, end, key_size, value_size = message_at(octets, at, limit, magic)
            if fault:
                raise bad_message(view, at, fault, end, magic, where)
            if crc32(view[at + 16 : end]) != int32_at(octets, at + 12) & 0xFFFFFFFF:
                raise bad_message(view, at, CRC, end, magic, where)
            offset = int64_at(octets, at)
            if magic:
                timestamp = stamp if stamped else int64_at(octets, at + 18)
                attributes |= octets[at + 17]
            if not count:
                first_offset, base = offset, timestamp
            if difference_leaves_int64(timestamp, base):
                raise InvalidRecords("the times in the set are more than 2^63 ms apart")
            if keep_offsets and not follows(offset, first_offset, last_offset):
                raise InvalidRecords(f"offset {offset} cannot follow {last_offset}", at)
            last_offset = offset
            latest = max(latest, timestamp)
            delta = offset - first_offset if keep_offsets else count
            written = put_record(
                out, written, timestamp - base, delta, octets, end, key_size, value_size
            )
            count += 1
            at = end
            if at >= rest_at:
                let_others_run()
                rest_at = at + STRETCH_BYTES
    return BatchRecords(
        memoryview(made)[:written], count, first_offset, last_offset, base, latest,
        magic == 1 and attributes & STAMPED_BIT != 0,
    )  # fmt: skip


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def message_at(
    octets: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    magic: cython.int,
) -> tuple[cython.int, cython.Py_ssize_t, cython.Py_ssize_t, cython.Py_ssize_t]:
    """Walk one message: fault or 0, position after it, key and value size, -1 for null."""
    least: cython.Py_ssize_t = least_size(magic)
    size: cython.Py_ssize_t
    end: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    if limit - at < LEAST:
        return CUT_OFF, 0, 0, 0
    if octets[at + 16] != magic:
        return OTHER_FORMAT, 0, 0, 0
    size = int32_at(octets, at + 8)
    if size < least - 12 or size > limit - at - 12:
        return SIZE, 0, 0, 0
    end = at + 12 + size
    if octets[at + 17] & CODEC_BITS:
        return PACKED, end, 0, 0
    at += least - 8
    key_size = int32_at(octets, at)
    if key_size < -1 or max(key_size, 0) > end - at - 8:
        return KEY, end, 0, 0
    value_size = int32_at(octets, at + 4 + max(key_size, 0))
    if value_size < -1 or max(value_size, 0) != end - at - 8 - max(key_size, 0):
        return VALUE, end, 0, 0
    return 0, end, key_size, value_size


def bad_message(  # noqa: PLR0917 - called by position
    data: memoryview, at: int, fault: int, end: int, magic: int, where: str
) -> CorruptBatch | InvalidRecords:
    """Build the refusal of the message at `at`; a wrong CRC goes before what it covers."""
    stated = int.from_bytes(data[at + 12 : at + 16], "big")
    if fault >= CRC and crc32(data[at + 16 : end]) != stated:
        return CorruptBatch(f"a message does not have the CRC {stated:08x}", at)
    if fault == OTHER_FORMAT:
        other = data[at + 16]
        if other <= 2:
            return InvalidRecords(f"formats {magic} and {other} in one set", at)
        return CorruptBatch(f"record format {other} is none", at)
    if fault == SIZE:
        size = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
        return CorruptBatch(f"a message of {size} bytes does not fit {where}", at)
    if fault == PACKED:
        return InvalidRecords(f"a compressed message in {where}", at)
    if fault == KEY:
        return InvalidRecords("a key runs past its message", at)
    if fault == VALUE:
        return InvalidRecords("a value does not end with its message", at)
    return CorruptBatch(f"{where} ends within a message", at)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def follows(offset: cython.longlong, first: cython.longlong, last: cython.longlong) -> cython.bint:
    """True when one batch can hold an offset after those from `first` to `last`."""
    return offset >= first >= 0 and offset > last and offset - first <= LARGEST_DELTA


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def least_size(magic: cython.int) -> cython.Py_ssize_t:
    """Bytes of a message without key and value, its offset and size included."""
    return 34 if magic else LEAST


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_record(  # noqa: PLR0917 - likewise
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    delta: cython.longlong,
    offset_delta: cython.longlong,
    octets: cython.const[cython.uchar][::1],
    end: cython.Py_ssize_t,
    key_size: cython.Py_ssize_t,
    value_size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write the record of the message that ends at `end`; the position after it."""
    value_at: cython.Py_ssize_t = end - max(value_size, 0)
    key_at: cython.Py_ssize_t = value_at - 4 - max(key_size, 0)
    at = put_zigzag(
        out,
        at,
        2  # the attributes, and the number of headers
        + zigzag_size(delta)
        + zigzag_size(offset_delta)
        + zigzag_size(key_size)
        + max(key_size, 0)
        + zigzag_size(value_size)
        + max(value_size, 0),
    )
    out[at] = 0
    at = put_zigzag(out, at + 1, delta)
    at = put_zigzag(out, at, offset_delta)
    at = put_zigzag(out, at, key_size)
    at = put_bytes(out, at, octets, key_at, key_at + max(key_size, 0))
    at = put_zigzag(out, at, value_size)
    at = put_bytes(out, at, octets, value_at, end)
    out[at] = 0
    return at + 1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def difference_leaves_int64(number: cython.longlong, base: cython.longlong) -> cython.bint:
    """True when number - base is no 64-bit number."""
    if base < 0:
        return number > HIGHEST + base
    return number < LOWEST + base
