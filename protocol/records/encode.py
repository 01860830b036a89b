# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Columns of machine numbers and bytes as the records of a v2 batch: what `columns` reads, written.

Written once and run compiled or as it stands. Room for the largest possible result and the columns
themselves are judged before the first byte is written; Cython's own bounds checks are off after
that. Rules: semantics.md 7.2. The keys' hash is that of Kafka's own producers, so a key goes where
theirs goes.
"""

from __future__ import annotations

from typing import NamedTuple

import cython

from protocol.records.columns import Fields, HeaderRoom
from protocol.records.numbers import zigzag_bytes

if cython.compiled:
    from cython.cimports.protocol.records.numbers import put_bytes, put_zigzag, zigzag_size
else:
    from protocol.records.numbers import put_bytes, put_zigzag, zigzag_size

RECORD_BYTES = 40  # the most that the numbers of a record take
HEADER_BYTES = 10  # likewise, of a header

_MULTIPLIER = cython.declare(cython.uint, 0x5BD1E995)
_SEED = cython.declare(cython.uint, 0x9747B28C)
MASK = cython.declare(cython.uint, 0xFFFFFFFF)


class Columns(NamedTuple):
    """Records by column. `headers` is None when none has any."""

    times: memoryview  # int64: ms
    keys: Fields
    values: Fields
    headers: HeaderRoom | None


def room_for(columns: Columns, first: int, last: int) -> int:
    """The most bytes that the records from `first` to before `last` may take."""
    size = RECORD_BYTES * (last - first)
    for fields in (columns.keys, columns.values):
        size += fields.ends[last] - fields.ends[first]
    headers = columns.headers
    if headers is not None:
        begin, end = headers.lists.ends[first], headers.lists.ends[last]
        size += HEADER_BYTES * (end - begin)
        for fields in (headers.names, headers.values):
            size += fields.ends[end] - fields.ends[begin]
    return int(size)


def encode_records(
    columns: Columns, first: cython.Py_ssize_t, last: cython.Py_ssize_t, out: cython.uchar[::1]
) -> cython.Py_ssize_t:
    """Write the records from `first` to before `last` as those of one batch; how many bytes.

    The first one's time is the base, offset deltas count from 0. ValueError when the columns do not
    have these records, or `out` not the room.
    """
    times: cython.const[cython.longlong][::1] = columns.times
    key_ends: cython.const[cython.int][::1] = columns.keys.ends
    keys_there: cython.const[cython.uchar][::1] = columns.keys.is_there
    keys: cython.const[cython.uchar][::1] = columns.keys.data
    value_ends: cython.const[cython.int][::1] = columns.values.ends
    values_there: cython.const[cython.uchar][::1] = columns.values.is_there
    values: cython.const[cython.uchar][::1] = columns.values.data
    index: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    body: cython.Py_ssize_t
    key_size: cython.longlong
    value_size: cython.longlong
    head: cython.Py_ssize_t
    delta: cython.longlong
    tail: bytes = b"\0"
    check_columns(columns, first, last, len(out))
    for index in range(first, last):
        delta = times[index] - times[first]
        key_size = size_of(key_ends, keys_there, index)
        value_size = size_of(value_ends, values_there, index)
        if columns.headers is not None:
            tail = headers_of(columns.headers, index)
        head = 1 + zigzag_size(delta) + zigzag_size(index - first)
        body = head + zigzag_size(key_size) + max(0, key_size)
        body += zigzag_size(value_size) + max(0, value_size) + len(tail)
        at = put_zigzag(out, at, body)
        out[at] = 0
        at = put_zigzag(out, at + 1, delta)
        at = put_zigzag(out, at, index - first)
        at = put_field(out, at, keys, key_ends[index], key_size)
        at = put_field(out, at, values, value_ends[index], value_size)
        at = put_bytes(out, at, tail, 0, len(tail))
    return at


def hash_keys(keys: Fields, hashes: cython.longlong[::1]) -> None:
    """The hash by which Kafka's producers choose a partition, for each key; -1 for a null.

    ValueError without room for all of them.
    """
    ends: cython.const[cython.int][::1] = keys.ends
    is_there: cython.const[cython.uchar][::1] = keys.is_there
    data: cython.const[cython.uchar][::1] = keys.data
    index: cython.Py_ssize_t
    check_fields(keys, len(hashes))
    for index in range(len(hashes)):
        if is_there[index]:
            hashes[index] = murmur2(data, ends[index], ends[index + 1]) & 0x7FFFFFFF
        else:
            hashes[index] = -1


def check_columns(columns: Columns, first: int, last: int, size: int) -> None:
    """ValueError when the columns contradict themselves or there is no room."""
    if not 0 <= first <= last <= len(columns.times):
        raise ValueError(f"there are no records from {first} to {last}")
    check_fields(columns.keys, last)
    check_fields(columns.values, last)
    if columns.headers is not None:
        lists, names, values = columns.headers
        if len(lists.ends) <= last or lists.ends[last] > len(values.is_there):
            raise ValueError("the headers are not those of the records")
        check_fields(names, int(lists.ends[last]))
        check_fields(values, int(lists.ends[last]))
    if size < room_for(columns, first, last):
        raise ValueError("no room for the records")


@cython.cfunc
def check_fields(fields: Fields, count: cython.Py_ssize_t) -> cython.int:
    """ValueError unless there are so many fields, each within the bytes."""
    ends: cython.const[cython.int][::1] = fields.ends
    index: cython.Py_ssize_t
    if len(ends) <= count or len(fields.is_there) < count or ends[0] < 0:
        raise ValueError(f"there are fewer than {count} fields")
    for index in range(count):
        if ends[index + 1] < ends[index]:
            raise ValueError(f"field {index} ends before it begins")
    if ends[count] > len(fields.data):
        raise ValueError("the fields run past their bytes")
    return 0


def headers_of(headers: HeaderRoom, record: int) -> bytes:
    """The headers of one record, with their count, as it holds them."""
    lists, names, values = headers
    begin, end = lists.ends[record], lists.ends[record + 1]
    parts = [zigzag_bytes(int(end - begin))]
    for index in range(begin, end):
        for fields in (names, values):
            start, stop = int(fields.ends[index]), int(fields.ends[index + 1])
            if fields.is_there[index]:
                parts += (zigzag_bytes(stop - start), bytes(fields.data[start:stop]))
            else:
                parts.append(zigzag_bytes(-1))
    return b"".join(parts)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def size_of(
    ends: cython.const[cython.int][::1],
    is_there: cython.const[cython.uchar][::1],
    index: cython.Py_ssize_t,
) -> cython.longlong:
    """Size of a field in bytes; -1 for a null."""
    return ends[index + 1] - ends[index] if is_there[index] else -1


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_field(
    out: cython.uchar[::1],
    at: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    begin: cython.Py_ssize_t,
    size: cython.longlong,
) -> cython.Py_ssize_t:
    """Write a field and its size; where it ends."""
    at = put_zigzag(out, at, size)
    return put_bytes(out, at, data, begin, begin + max(0, size))


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def murmur2(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, end: cython.Py_ssize_t
) -> cython.uint:
    """MurmurHash2 with the seed of Kafka's producers."""
    found: cython.uint = _SEED ^ cython.cast(cython.uint, end - at)
    part: cython.uint
    while end - at >= 4:
        part = data[at] | data[at + 1] << 8 | data[at + 2] << 16
        part |= cython.cast(cython.uint, data[at + 3]) << 24
        part = part * _MULTIPLIER & MASK
        part ^= part >> 24
        found = (found * _MULTIPLIER & MASK) ^ (part * _MULTIPLIER & MASK)
        at += 4
    if end - at == 3:
        found ^= cython.cast(cython.uint, data[at + 2]) << 16
    if end - at >= 2:
        found ^= cython.cast(cython.uint, data[at + 1]) << 8
    if end - at >= 1:
        found = (found ^ data[at]) * _MULTIPLIER & MASK
    found ^= found >> 13
    found = found * _MULTIPLIER & MASK
    return found ^ (found >> 15)
