# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Rewrites records after `mistimed` has judged them: other times, more headers, some left out.

Like `walk`, written once and run compiled or as it stands. What comes in is an outline
(`walk.outline_records`) and a verdict for each record; what goes out is a payload of format v2.
Records keep their attributes, key, value and headers to the byte. Rules: semantics.md 7.2, time.md
2. An outline is checked against its payload, and room for the largest possible result is seen to,
before the first byte is written; Cython's own bounds checks are off after that.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import cython

from protocol.records.mistimed import BAD_VERDICTS
from protocol.records.numbers import zigzag_bytes

if cython.compiled:
    from cython.cimports.protocol.records.decimals import digits_of, put_digits
    from cython.cimports.protocol.records.numbers import (
        put_bytes,
        put_zigzag,
        walked_zigzag,
        zigzag_size,
    )
else:
    from protocol.records.decimals import digits_of, put_digits
    from protocol.records.numbers import put_bytes, put_zigzag, walked_zigzag, zigzag_size

ALL, GOOD, BAD = range(3)  # which records are written
GROWTH_BYTES = 24  # the numbers of a record may get so much longer
DECIMAL_BYTES = 48  # the most that the values of two headers take

HIGHEST = cython.declare(cython.longlong, 0x7FFF_FFFF_FFFF_FFFF)
EIGHT = cython.declare(cython.Py_ssize_t, 8)  # numbers of an outline's row
GROWTH = cython.declare(cython.Py_ssize_t, GROWTH_BYTES)
DECIMALS = cython.declare(cython.Py_ssize_t, DECIMAL_BYTES)
BAD_END = cython.declare(cython.int, BAD_VERDICTS)

Buffer = bytes | bytearray | memoryview


class Rewriting(NamedTuple):
    """Plan of a rewrite. Times in ms; bad ones are moved to `low` or `high`.

    A bad record gets headers: those of its verdict's entry in `marks`, the time it claimed under
    the name in `claimed_name`, and, under that in `offset_name` unless it is empty, its offset.
    """

    takes: int
    base_timestamp: int
    low: int
    high: int
    marks: bytes
    mark_ends: array[int]
    mark_headers: int
    claimed_name: bytes
    offset_name: bytes
    base_offset: int
    renumbers: bool


class Times(NamedTuple):
    """Facts about the written records; times in ms."""

    minimum: int
    maximum: int
    untimed: int
    keyless: int


NO_TIMES = Times(0x7FFF_FFFF_FFFF_FFFF, -1, 0, 0)


def header_name(name: str) -> bytes:
    """The name of a header as a record holds it."""
    data = name.encode()
    return zigzag_bytes(len(data)) + data


def header_bytes(name: str, value: str) -> bytes:
    """A whole header as a record holds it."""
    data = value.encode("utf-8", "replace")
    return header_name(name) + zigzag_bytes(len(data)) + data


def marks_of(headers: Sequence[bytes]) -> tuple[bytes, array[int]]:
    """The `marks` and `mark_ends` of a rewriting: headers by verdict, from verdict 0 on."""
    ends = array("q", [0])
    ends.extend(accumulate(map(len, headers)))
    return b"".join(headers), ends


def rewrite_records(  # noqa: PLR0917 - called by position, a chunk at a time
    payload: Buffer,
    outline: cython.const[cython.longlong][::1],
    first: cython.longlong,
    count: cython.Py_ssize_t,
    verdicts: cython.const[cython.uchar][::1],
    rewriting: Rewriting,
    written: cython.longlong,
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
    times: cython.longlong[::1],
) -> tuple[int, int]:
    """Write `count` records, the first of which has the index `first` in its batch, at `to`.

    Gives where they end, and how many records of the batch are written by now: `written` before.
    The times that are written are added to `times`, in the order of `Times`. ValueError when the
    outline is not that of the payload, or `out` has less than `room_for` them.
    """
    data: cython.const[cython.uchar][::1] = payload
    marks: cython.const[cython.uchar][::1] = rewriting.marks
    mark_ends: cython.const[cython.longlong][::1] = rewriting.mark_ends
    claimed_name: cython.const[cython.uchar][::1] = rewriting.claimed_name
    offset_name: cython.const[cython.uchar][::1] = rewriting.offset_name
    takes: cython.int = rewriting.takes
    base: cython.longlong = rewriting.base_timestamp
    low: cython.longlong = rewriting.low
    high: cython.longlong = rewriting.high
    base_offset: cython.longlong = rewriting.base_offset
    mark_headers: cython.longlong = rewriting.mark_headers + 1 + bool(rewriting.offset_name)
    renumbers: cython.bint = rewriting.renumbers
    index: cython.Py_ssize_t
    row: cython.Py_ssize_t
    extra: cython.longlong
    claimed: cython.longlong
    timestamp: cython.longlong
    digits: cython.longlong = 0
    offset_digits: cython.longlong = 0
    verdict: cython.int
    is_bad: cython.bint
    names: cython.Py_ssize_t = len(claimed_name) + len(offset_name)
    index = room(outline, count, verdicts, mark_ends, names, len(data))
    if index < 0 or to < 0 or len(out) - to < index:
        raise ValueError("no room for the records, or no outline of them")
    for index in range(count):
        verdict = verdicts[index]
        is_bad = 0 < verdict < BAD_END
        if (takes == 1 and is_bad) or (takes == 2 and not is_bad):
            continue
        row = index * EIGHT
        claimed = timestamp = outline[row + 6]
        extra = 0
        if is_bad:
            timestamp = min(max(claimed, low), high)
            extra = mark_ends[verdict + 1] - mark_ends[verdict]
            digits = digits_of(claimed)
            offset_digits = digits_of(base_offset + first + index)
            extra += decimal_width(claimed_name, digits) + decimal_width(offset_name, offset_digits)
        times[3] += outline[row + 7] < 0
        note(times, timestamp)
        to = put_record(
            out, to, data, outline, row, timestamp - base, written if renumbers else -1,
            mark_headers if is_bad else 0, extra,
        )  # fmt: skip
        if is_bad:
            to = put_bytes(out, to, marks, mark_ends[verdict], mark_ends[verdict + 1])
            to = put_decimal(out, to, claimed_name, claimed, digits)
            to = put_decimal(out, to, offset_name, base_offset + first + index, offset_digits)
        written += 1
    return to, written


def room_for(
    outline: cython.const[cython.longlong][::1],
    count: cython.Py_ssize_t,
    verdicts: cython.const[cython.uchar][::1],
    rewriting: Rewriting,
) -> int:
    """The most that `rewrite_records` may write of these, in bytes."""
    names: cython.Py_ssize_t = len(rewriting.claimed_name) + len(rewriting.offset_name)
    return room(outline, count, verdicts, rewriting.mark_ends, names, HIGHEST)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_record(  # noqa: PLR0917 - private, inlined
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
    data: cython.const[cython.uchar][::1],
    outline: cython.const[cython.longlong][::1],
    row: cython.Py_ssize_t,
    time_delta: cython.longlong,
    offset_delta: cython.longlong,
    more_headers: cython.longlong,
    extra: cython.longlong,
) -> cython.Py_ssize_t:
    """Write a record up to where its `extra` bytes of more headers go; where that is.

    With an `offset_delta` below zero it keeps its own.
    """
    at: cython.Py_ssize_t
    headers: cython.longlong
    headers_at: cython.Py_ssize_t
    size: cython.longlong
    headers, headers_at = walked_zigzag(data, outline[row + 4])
    headers += more_headers
    size = 1 + zigzag_size(time_delta) + zigzag_size(headers) + extra
    size += outline[row + 4] - outline[row + 3] + outline[row + 5] - headers_at
    size += outline[row + 3] - outline[row + 2] if offset_delta < 0 else zigzag_size(offset_delta)
    to = put_zigzag(out, to, size)
    out[to] = data[outline[row + 1] - 1]  # attributes
    to = put_zigzag(out, to + 1, time_delta)
    at = outline[row + 2]  # what stays as it is: offset delta, key and value
    if offset_delta >= 0:
        to = put_zigzag(out, to, offset_delta)
        at = outline[row + 3]
    to = put_bytes(out, to, data, at, outline[row + 4])
    to = put_zigzag(out, to, headers)
    return put_bytes(out, to, data, headers_at, outline[row + 5])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def note(times: cython.longlong[::1], timestamp: cython.longlong) -> cython.int:
    """Add a time to what is known of those that are written."""
    if timestamp == -1:
        times[2] += 1
        return 0
    times[0] = min(times[0], timestamp)
    times[1] = max(times[1], timestamp)
    return 0


@cython.cfunc
@cython.exceptval(check=False)
def room(  # noqa: PLR0917 - private, called by position
    outline: cython.const[cython.longlong][::1],
    count: cython.Py_ssize_t,
    verdicts: cython.const[cython.uchar][::1],
    mark_ends: cython.const[cython.longlong][::1],
    name_sizes: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
) -> cython.Py_ssize_t:
    """Give the most that the records may take; -1 when some are not within `limit` bytes."""
    index: cython.Py_ssize_t
    part: cython.Py_ssize_t
    row: cython.Py_ssize_t
    verdict: cython.int
    total: cython.Py_ssize_t = 0
    if count < 0 or len(outline) < count * EIGHT or len(verdicts) < count:
        return -1
    for index in range(count):
        row = index * EIGHT
        for part in range(row, row + 5):
            if not 0 <= outline[part] <= outline[part + 1] <= limit:
                return -1
        verdict = verdicts[index]
        total += outline[row + 5] - outline[row] + GROWTH
        if verdict and verdict + 1 < len(mark_ends):
            total += mark_ends[verdict + 1] - mark_ends[verdict] + name_sizes + DECIMALS
    return total


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def decimal_width(
    name: cython.const[cython.uchar][::1], digits: cython.longlong
) -> cython.longlong:
    """Give the bytes that `put_decimal` writes."""
    return len(name) + 1 + digits if len(name) else 0


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def put_decimal(
    out: cython.uchar[::1],
    to: cython.Py_ssize_t,
    name: cython.const[cython.uchar][::1],
    number: cython.longlong,
    digits: cython.longlong,
) -> cython.Py_ssize_t:
    """Write a header of a number in decimal text, `digits` long; nothing without a name."""
    if not len(name):
        return to
    to = put_bytes(out, to, name, 0, len(name))
    to = put_zigzag(out, to, digits)
    return put_digits(out, to, number, digits)
