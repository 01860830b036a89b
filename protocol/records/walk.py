# cython: language_level=3, boundscheck=True, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Walks inside of batches: every record checked, times found, headers walked. No object a record.

Written once and run twice: `scripts/compile` turns this file into C (Cython, pure Python mode), and
where no compiler is the same file runs as it stands, slower, with the same results. What reads
numbers is inlined from `numbers` and `record_head`: each index is judged by the end of the record,
and that by the end of the payload, before it is used. Elsewhere Cython checks indexes too. A sum is
tested before it is made, since C would wrap where Python grows. Rules: semantics.md 6.2 and 7.2.
"""

from __future__ import annotations

from typing import NamedTuple

import cython

from protocol.records.batch import InvalidRecords
from protocol.records.record_head import HEAD_FAULTS, OFFSET_FAULT

if cython.compiled:
    from cython.cimports.protocol.records.numbers import leaves_int64, sized, zigzag
    from cython.cimports.protocol.records.record_head import head_of
else:
    from protocol.records.numbers import leaves_int64, sized, zigzag
    from protocol.records.record_head import head_of

HIGHEST = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
BAD_OFFSET = cython.declare(cython.int, OFFSET_FAULT)
MAX_HEADERS = 100_000
"""Headers of a record that a client sends: librdkafka reads no record with more."""
MOST_HEADERS = cython.declare(cython.longlong, 0x7FFF_FFFF)
LONG_BYTES = cython.declare(cython.Py_ssize_t, 256 * 1024)
"""A walk over more lets other threads run; over less, coming back would take longer than it."""

Buffer = bytes | bytearray | memoryview

_FAULTS = (
    *HEAD_FAULTS,
    "its key runs past the record",
    "its value runs past the record",
    "its headers are damaged, or one has a null key",
    "bytes are left after its headers",
    "it has more headers than a record may have (100000)",
)


class Outline(NamedTuple):
    """Positions of one record's parts in its payload, as `outline_records` notes them."""

    start: int  # of its length
    time: int  # of the timestamp delta
    offset: int  # of the offset delta
    key: int  # of the key's size
    headers: int  # of the header count
    end: int
    timestamp: int  # ms
    key_size: int  # -1: null


class RecordFacts(NamedTuple):
    """Findings of a walk over all records of a batch; times in ms."""

    count: int  # type: ignore[assignment]  # hides tuple.count, which nobody counts with
    min_timestamp: int  # of the records that have a time; -1 when none has
    max_timestamp: int  # likewise; also -1 when all times are below that, as in Kafka
    max_timestamp_index: int  # of the first record that has it; -1 when none has
    untimed: int  # records whose timestamp is -1
    out_of_bounds: int  # records with a time below `low` or above `high`
    keyless: int  # records whose key is null
    first_misplaced: int  # of the first record whose offset delta is not its index; -1 when none is


def check_records(  # noqa: PLR0917 - called by position: the hot path
    payload: Buffer,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    low: cython.longlong,
    high: cython.longlong,
    most_headers: cython.longlong = 0x7FFF_FFFF,
) -> RecordFacts:
    """Check every record of an unpacked batch and count what validation and the zone map ask for.

    InvalidRecords when a record is damaged, when there are fewer records than `count` or bytes
    after them, or when a timestamp leaves the 64-bit range. Times out of bounds and null keys are
    counted, not refused; of a client's record, more than `most_headers` headers are (MAX_HEADERS).
    `low` and `high` (ms) both belong to the bounds.
    """
    data: cython.const[cython.uchar][::1] = payload
    limit: cython.Py_ssize_t = len(payload)
    seen: Seen = Seen()
    if limit > LONG_BYTES:
        with cython.nogil:
            look_at_all(seen, data, limit, count, base_timestamp, low, high, most_headers)
    else:
        look_at_all(seen, data, limit, count, base_timestamp, low, high, most_headers)
    if seen.fault:
        raise damaged(seen.index, seen.fault)
    if seen.at != limit or count < 0:
        raise left_over(count, limit - seen.at)
    return RecordFacts(
        count, seen.minimum if seen.untimed != count else -1, seen.maximum, seen.maximum_index,
        seen.untimed, seen.out_of_bounds, seen.keyless, seen.first_misplaced,
    )  # fmt: skip


@cython.cclass
class Seen:
    """Findings of `look_at_all`; `index` is the record's at which it ended with a fault."""

    at: cython.Py_ssize_t
    index: cython.longlong
    fault: cython.int
    minimum: cython.longlong
    maximum: cython.longlong
    maximum_index: cython.longlong
    untimed: cython.longlong
    out_of_bounds: cython.longlong
    keyless: cython.longlong
    first_misplaced: cython.longlong


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def look_at_all(  # noqa: PLR0917 - private, called by position
    seen: Seen, data: cython.const[cython.uchar][::1], limit: cython.Py_ssize_t,
    count: cython.longlong, base_timestamp: cython.longlong, low: cython.longlong,
    high: cython.longlong, most_headers: cython.longlong,
) -> cython.void:  # fmt: skip
    """Walk the records for `check_records`; another thread may run meanwhile."""
    at: cython.Py_ssize_t = 0
    index: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    fault: cython.int = 0
    timestamp: cython.longlong
    minimum: cython.longlong = HIGHEST
    maximum: cython.longlong = -1
    maximum_index: cython.longlong = -1
    untimed: cython.longlong = 0
    out_of_bounds: cython.longlong = 0
    keyless: cython.longlong = 0
    first_misplaced: cython.longlong = -1
    for index in range(count):
        at, timestamp, offset_delta, key_size, fault = record_at(
            data, at, limit, base_timestamp, most_headers
        )
        if fault:
            seen.index = index
            break
        if timestamp == -1:
            untimed += 1
        else:
            if timestamp < low or timestamp > high:
                out_of_bounds += 1
            minimum = min(minimum, timestamp)
            if timestamp > maximum:
                maximum = timestamp
                maximum_index = index
        if key_size < 0:
            keyless += 1
        if offset_delta != index and first_misplaced < 0:
            first_misplaced = index
    seen.at = at
    seen.fault = fault
    seen.minimum = minimum
    seen.maximum = maximum
    seen.maximum_index = maximum_index
    seen.untimed = untimed
    seen.out_of_bounds = out_of_bounds
    seen.keyless = keyless
    seen.first_misplaced = first_misplaced


def outline_records(  # noqa: PLR0917 - called by position, a chunk at a time
    payload: Buffer,
    at: cython.Py_ssize_t,
    first: cython.longlong,
    count: cython.longlong,
    base_timestamp: cython.longlong,
    outline: cython.longlong[::1],
) -> cython.Py_ssize_t:
    """Note where the parts of `count` records lie, from the record number `first` at `at` on.

    A record takes eight numbers of `outline`, in the order of `Outline`. Gives the position after
    the last one. InvalidRecords when one is damaged.
    """
    data: cython.const[cython.uchar][::1] = payload
    limit: cython.Py_ssize_t = len(payload)
    index: cython.longlong
    fault: cython.int
    if limit > LONG_BYTES:
        with cython.nogil:
            at, index, fault = outline_all(data, at, limit, count, base_timestamp, outline)
    else:
        at, index, fault = outline_all(data, at, limit, count, base_timestamp, outline)
    if fault:
        raise damaged(first + index, fault)
    return at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def outline_all(  # noqa: PLR0917 - private, called by position
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, limit: cython.Py_ssize_t,
    count: cython.longlong, base_timestamp: cython.longlong, outline: cython.longlong[::1],
) -> tuple[cython.Py_ssize_t, cython.longlong, cython.int]:  # fmt: skip
    """Position after the last record; or the index of a damaged one, and its fault."""
    index: cython.longlong
    row: cython.Py_ssize_t
    end: cython.Py_ssize_t
    _offset_delta: cython.longlong
    key_size: cython.longlong
    fault: cython.int
    timestamp: cython.longlong
    for index in range(count):
        end, timestamp, _offset_delta, key_size, fault = record_at(
            data, at, limit, base_timestamp, MOST_HEADERS
        )
        if fault:
            return at, index, fault
        row = index * 8
        outline[row] = at
        at = after_number(data, at) + 1
        outline[row + 1] = at
        at = after_number(data, at)
        outline[row + 2] = at
        at = after_number(data, at)
        outline[row + 3] = at
        outline[row + 4] = headers_of(data, at, end, key_size)
        outline[row + 5] = end
        outline[row + 6] = timestamp
        outline[row + 7] = key_size
        at = end
    return at, 0, 0


def find_timestamp(  # noqa: PLR0917 - likewise
    payload: Buffer,
    count: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    target: cython.longlong,
    min_offset: cython.longlong,
) -> tuple[int, int] | None:
    """Find the first record whose time is at least `target` and whose offset at least `min_offset`.

    Gives (offset, timestamp in ms), or None. For batches of client time; where the broker stamped
    the batch, every record's time is the header's.
    """
    number, first_offset, first_timestamp, _last_offset = find_between(
        payload, count, base_offset, base_timestamp, target, HIGHEST, min_offset, HIGHEST,
        target <= -1, 1,
    )  # fmt: skip
    return (first_offset, first_timestamp) if number else None


def find_between(  # noqa: PLR0917 - likewise
    payload: Buffer,
    count: cython.longlong,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    low: cython.longlong,
    high: cython.longlong,
    min_offset: cython.longlong,
    max_offset: cython.longlong,
    with_untimed: cython.bint,
    most: cython.longlong = 0x7FFF_FFFF,
) -> tuple[int, int, int, int]:
    """Count the records with a time from `low` to `high` ms and such an offset, all included.

    Gives their number, the first one's offset and time, and the last one's offset; zeros when there
    are none. Records without a time count if `with_untimed` says so, and only then. It ends when
    `most` are found.
    """
    data: cython.const[cython.uchar][::1] = payload
    limit: cython.Py_ssize_t = len(payload)
    found: tuple[cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.int]
    if limit > LONG_BYTES:
        with cython.nogil:
            found = search_all(
                data, limit, count, base_offset, base_timestamp,
                low, high, min_offset, max_offset, with_untimed, most,
            )  # fmt: skip
    else:
        found = search_all(
            data, limit, count, base_offset, base_timestamp,
            low, high, min_offset, max_offset, with_untimed, most,
        )  # fmt: skip
    if found[4]:
        raise damaged(found[0], found[4])
    return found[0], found[1], found[2], found[3]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def search_all(  # noqa: PLR0917 - private, called by position
    data: cython.const[cython.uchar][::1], limit: cython.Py_ssize_t, count: cython.longlong,
    base_offset: cython.longlong, base_timestamp: cython.longlong, low: cython.longlong,
    high: cython.longlong, min_offset: cython.longlong, max_offset: cython.longlong,
    with_untimed: cython.bint, most: cython.longlong,
) -> tuple[
    cython.longlong, cython.longlong, cython.longlong, cython.longlong, cython.int
]:  # fmt: skip
    """Number, first offset and time, last offset, 0; or a damaged record's index and its fault."""
    at: cython.Py_ssize_t = 0
    index: cython.longlong
    timestamp: cython.longlong
    offset: cython.longlong
    _key_size: cython.longlong
    fault: cython.int
    found: cython.longlong = 0
    first_offset: cython.longlong = 0
    first_timestamp: cython.longlong = 0
    last_offset: cython.longlong = 0
    for index in range(count):
        at, timestamp, offset, _key_size, fault = record_at(
            data, at, limit, base_timestamp, MOST_HEADERS
        )
        if fault == 0 and leaves_int64(base_offset, offset):
            fault = BAD_OFFSET
        if fault:
            return index, 0, 0, 0, fault
        offset += base_offset
        if offset < min_offset or offset > max_offset:
            continue
        if with_untimed if timestamp == -1 else low <= timestamp <= high:
            if not found:
                first_offset = offset
                first_timestamp = timestamp
            found += 1
            last_offset = offset
            if found == most:
                break
    return found, first_offset, first_timestamp, last_offset, 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def record_at(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
    base_timestamp: cython.longlong,
    most_headers: cython.longlong,
) -> tuple[cython.Py_ssize_t, cython.longlong, cython.longlong, cython.longlong, cython.int]:
    """Walk one record: position after it, timestamp, offset delta, key size, fault or 0."""
    end: cython.Py_ssize_t
    size: cython.longlong
    timestamp: cython.longlong
    offset_delta: cython.longlong
    key_size: cython.longlong
    fault: cython.int
    at, end, timestamp, offset_delta, fault = head_of(data, at, limit, base_timestamp)
    if fault:
        return 0, 0, 0, 0, fault
    key_size, at = sized(data, at, end)
    if at < 0:
        return 0, 0, 0, 0, 5
    at += key_size + (key_size < 0)  # a null, -1, takes no bytes
    size, at = sized(data, at, end)
    if at < 0:
        return 0, 0, 0, 0, 6
    at += size + (size < 0)
    if at + 1 == end and data[at] == 0:  # no headers
        return end, timestamp, offset_delta, key_size, 0
    at = after_headers(data, at, end, most_headers)
    if at < 0:
        return 0, 0, 0, 0, 9 if at == -2 else 7
    if at != end:
        return 0, 0, 0, 0, 8
    return end, timestamp, offset_delta, key_size, 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def after_headers(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    most: cython.longlong,
) -> cython.Py_ssize_t:
    """Position after the headers, -1 for damage, -2 for more than `most`; one takes two bytes."""
    count: cython.longlong
    count, at = zigzag(data, at, end, 32)
    if at < 0 or count < 0 or count > (end - at) // 2:
        return -1
    if count > most:
        return -2
    while count > 0 and at >= 0:
        at = after_field(data, at, end, 0)
        if at >= 0:
            at = after_field(data, at, end, -1)
        count -= 1
    return at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def after_field(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    least: cython.longlong,
) -> cython.Py_ssize_t:
    """Position after a sized field, or -1 when its size is below `least` or runs past `end`."""
    size: cython.longlong
    size, at = zigzag(data, at, end, 32)
    return -1 if at < 0 or size < least or size > end - at else at + max(0, size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def after_number(data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """Position after a varint of a record that was walked before."""
    while data[at] > 127:
        at += 1
    return at + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def headers_of(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    key_size: cython.longlong,
) -> cython.Py_ssize_t:
    """Position of the header count of a record that was walked before; `at` is its key's."""
    at = after_number(data, at) + max(0, key_size)
    return after_field(data, at, end, -1)


def damaged(index: int, fault: int) -> InvalidRecords:
    """Build the refusal of one record."""
    return InvalidRecords(f"record {index}: {_FAULTS[fault]}")


def left_over(count: int, size: int) -> InvalidRecords:
    """Build the refusal of a payload that does not end with its last record."""
    return InvalidRecords(f"the batch counts {count} records, and {size} bytes follow them")
