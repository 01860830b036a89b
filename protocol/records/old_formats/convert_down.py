# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""The records of a batch into messages of formats 0 and 1, in two passes, no object a record.

As `walk`, written once and run compiled or as it stands, with the same results. The records must
have passed `walk.check_records`; what the messages take is measured before they are written, so
that nothing is made which has no room. Rules: semantics.md 7.1, 7.2, 7.5.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import cython

from protocol.records.blank import blank
from protocol.records.yielding import let_others_run

if cython.compiled:
    from cython.cimports.protocol.records.numbers import (
        put_bytes,
        put_int32,
        put_int64,
        walked_zigzag,
    )
else:
    from protocol.records.numbers import put_bytes, put_int32, put_int64, walked_zigzag

STAMPED_BIT = cython.declare(cython.int, 8)
STRETCH_BYTES = cython.declare(cython.Py_ssize_t, 256 * 1024)  # then other threads may run

Buffer = bytes | bytearray | memoryview


class Messages(NamedTuple):
    """Messages of an old format, and what their wrapper would say of them."""

    messages: bytearray | memoryview
    count: int  # type: ignore[assignment]  # likewise
    first_offset: int
    last_offset: int
    max_timestamp: int  # ms; at least -1
    is_whole: bool  # False when records were left out for want of room


def messages_of(  # noqa: PLR0917 - called by position from one place
    payload: Buffer,
    count: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    stamped: cython.bint,
    stamp: cython.longlong,
    magic: cython.int,
    from_offset: cython.longlong,
    relative: cython.bint,
    room: cython.Py_ssize_t,
) -> Messages:
    """Make messages of format `magic` of the records of a batch that were checked before.

    Those from `from_offset` on, while there is `room` (bytes), and the first whatever its size.
    `stamped`: every time is `stamp` and said to be a broker's. `relative`: offsets count from the
    first message's. The offsets must fit 64 bits.
    """
    octets: cython.const[cython.uchar][::1] = payload
    end: cython.Py_ssize_t
    key_at: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    value_at: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    delta: cython.longlong
    at: cython.Py_ssize_t = 0
    rest_at: cython.Py_ssize_t = STRETCH_BYTES
    written: cython.Py_ssize_t = 0
    start: cython.Py_ssize_t
    total: cython.Py_ssize_t
    left: cython.longlong
    taken: cython.longlong
    offset: cython.longlong
    first_offset: cython.longlong = -1
    last_offset: cython.longlong = -1
    latest: cython.longlong = -1
    timestamp: cython.longlong
    attributes: cython.int = STAMPED_BIT if stamped and magic else 0
    total, taken, left = measured(octets, count, base_offset, magic, from_offset, room)
    made: bytearray | memoryview = blank(total)
    out: cython.uchar[::1] = made
    count = taken
    with memoryview(made) as view:
        while count > 0:
            end, delta, offset, key_at, key_size, value_at, value_size = fields_at(octets, at)
            at = end
            if at >= rest_at:
                let_others_run()
                rest_at = at + STRETCH_BYTES
            offset += base_offset
            if offset < from_offset:
                continue
            if count == taken:
                first_offset = offset
            count -= 1
            last_offset = offset
            timestamp = stamp if stamped else base_timestamp + delta
            latest = max(latest, timestamp)
            start = written
            written = put_message(
                out, start, offset - first_offset if relative else offset, magic, timestamp,
                octets, key_at, key_size, value_at, value_size,
            )  # fmt: skip
            out[start + 17] = attributes
            put_int32(out, start + 12, crc32(view[start + 16 : written]))
    return Messages(made, taken, first_offset, last_offset, latest, left == 0)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def measured(  # noqa: PLR0917 - likewise
    octets: cython.const[cython.uchar][::1],
    count: cython.longlong,
    base_offset: cython.longlong,
    magic: cython.int,
    from_offset: cython.longlong,
    room: cython.Py_ssize_t,
) -> tuple[cython.Py_ssize_t, cython.longlong, cython.longlong]:
    """Bytes that the messages will have, how many there are, and how many records are left out."""
    end: cython.Py_ssize_t
    _key_at: cython.Py_ssize_t
    key_size: cython.Py_ssize_t
    _value_at: cython.Py_ssize_t
    value_size: cython.Py_ssize_t
    _delta: cython.longlong
    offset: cython.longlong
    at: cython.Py_ssize_t = 0
    rest_at: cython.Py_ssize_t = STRETCH_BYTES
    total: cython.Py_ssize_t = 0
    size: cython.Py_ssize_t
    taken: cython.longlong = 0
    while count > 0:
        end, _delta, offset, _key_at, key_size, _value_at, value_size = fields_at(octets, at)
        at = end
        if at >= rest_at:
            let_others_run()
            rest_at = at + STRETCH_BYTES
        if base_offset + offset >= from_offset:
            size = least_size(magic) + max(key_size, 0) + max(value_size, 0)
            if taken and total + size > room:
                break
            total += size
            taken += 1
        count -= 1
    return total, taken, count


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def fields_at(
    octets: cython.const[cython.uchar][::1], at: cython.Py_ssize_t
) -> tuple[
    cython.Py_ssize_t,
    cython.longlong,
    cython.longlong,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
    cython.Py_ssize_t,
]:
    """Take a sound record apart: its end, time and offset deltas, where key and value lie.

    Position and size of the key, then of the value; a null has the size -1.
    """
    size: cython.longlong
    end: cython.Py_ssize_t
    delta: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    key_at: cython.Py_ssize_t
    value_size: cython.longlong
    size, at = walked_zigzag(octets, at)
    end = at + size
    delta, at = walked_zigzag(octets, at + 1)
    offset_delta, at = walked_zigzag(octets, at)
    key_size, key_at = walked_zigzag(octets, at)
    value_size, at = walked_zigzag(octets, key_at + max(key_size, 0))
    return end, delta, offset_delta, key_at, key_size, at, value_size


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_message(  # noqa: PLR0917 - likewise
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    offset: cython.longlong,
    magic: cython.int,
    timestamp: cython.longlong,
    octets: cython.const[cython.uchar][::1],
    key_at: cython.Py_ssize_t,
    key_size: cython.Py_ssize_t,
    value_at: cython.Py_ssize_t,
    value_size: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Write a message but for its attributes and its CRC; the position after it."""
    size: cython.Py_ssize_t = least_size(magic) - 12 + max(key_size, 0) + max(value_size, 0)
    put_int64(out, at, offset)
    put_int32(out, at + 8, size)
    out[at + 16] = magic
    if magic:
        put_int64(out, at + 18, timestamp)
    at += least_size(magic) - 8
    put_int32(out, at, key_size)
    at = put_bytes(out, at + 4, octets, key_at, key_at + max(key_size, 0))
    put_int32(out, at, value_size)
    return put_bytes(out, at + 4, octets, value_at, value_at + max(value_size, 0))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def least_size(magic: cython.int) -> cython.Py_ssize_t:
    """Bytes of a message without key and value, its offset and size included."""
    return 34 if magic else 26
