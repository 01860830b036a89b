# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""A number in a header of each record, found by the header's name.

Like `walk`, written once and run compiled or as it stands. Where the records are, `columns` has
said; what it gave is judged once more before the first byte is read. A value is a number as decimal
digits, or eight bytes, big-endian, when these are not all digits. Of several headers of the name
the last one counts, as for Kafka's clients. Rules: semantics.md 7.2.
"""

from __future__ import annotations

import cython

from protocol.records.batch import InvalidRecords

if cython.compiled:
    from cython.cimports.protocol.records.numbers import int64_at, sized, zigzag
else:
    from protocol.records.numbers import int64_at, sized, zigzag

ABSENT = -(2**63)
"""The number of a record without such a header, or with one that is no number."""
MOST_DIGITS = cython.declare(cython.Py_ssize_t, 18)  # as many as always fit
NOTHING = cython.declare(cython.longlong, -0x7FFF_FFFF_FFFF_FFFF - 1)

Buffer = bytes | bytearray | memoryview


def take_numbers(
    payloads: Buffer,
    places: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    name: bytes,
    numbers: cython.longlong[::1],
) -> int:
    """Write the number of each record; how many have such a header that is no number.

    `places` are where the size of each record's key stands. InvalidRecords for damage: `position`
    is the record's number. ValueError when a record is not within the payloads, or without room.
    """
    data: cython.const[cython.uchar][::1] = payloads
    wanted: cython.const[cython.uchar][::1] = name
    record: cython.Py_ssize_t
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    size: cython.longlong
    count: cython.longlong
    is_it: cython.bint
    bad: cython.Py_ssize_t = 0
    check(len(data), places, ends, len(numbers))
    for record in range(len(places)):
        at, end = places[record], ends[record]
        numbers[record] = NOTHING
        for _ in range(2):  # the key, the value
            size, at = sized(data, at, end)
            if at < 0:
                raise InvalidRecords("its key or value runs past the record", record)
            at += max(0, size)
        count, at = zigzag(data, at, end, 32)
        if at < 0 or count < 0 or count > (end - at) // 2:
            raise InvalidRecords("its headers are damaged", record)
        while count > 0:
            size, at = sized(data, at, end)
            if at < 0 or size < 0:
                raise InvalidRecords("its headers are damaged", record)
            is_it = is_same(data, at, size, wanted)
            at += size
            size, at = sized(data, at, end)
            if at < 0:
                raise InvalidRecords("its headers are damaged", record)
            if is_it:
                numbers[record] = number_at(data, at, size)
                bad += numbers[record] == NOTHING
            at += max(0, size)
            count -= 1
        if at != end:
            raise InvalidRecords("its headers are damaged", record)
    return bad


@cython.cfunc
@cython.inline
def is_same(
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    size: cython.longlong,
    wanted: cython.const[cython.uchar][::1],
) -> cython.bint:
    """True when the bytes are the wanted ones."""
    index: cython.Py_ssize_t
    if size != len(wanted):
        return False
    for index in range(len(wanted)):  # noqa: SIM110 - compiled, and inlined
        if data[at + index] != wanted[index]:
            return False
    return True


@cython.cfunc
@cython.inline
def number_at(
    data: cython.const[cython.uchar][::1], at: cython.Py_ssize_t, size: cython.longlong
) -> cython.longlong:
    """Give the number that a value says; NOTHING when it is none."""
    number: cython.longlong = 0
    index: cython.Py_ssize_t
    are_digits: cython.bint = 0 < size <= MOST_DIGITS
    if are_digits:
        for index in range(at, at + size):
            if data[index] < 48 or data[index] > 57:
                are_digits = False
                break
            number = number * 10 + data[index] - 48
    if are_digits:
        return number
    if size == 8:
        return int64_at(data, at)
    return NOTHING


@cython.cfunc
def check(
    size: cython.Py_ssize_t,
    places: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    room: cython.Py_ssize_t,
) -> cython.int:
    """ValueError when a record is not within the payloads, or there is no room for its number."""
    record: cython.Py_ssize_t
    if len(places) != len(ends) or room < len(places):
        raise ValueError("places, ends and room are not of the same records")
    for record in range(len(places)):
        if not 0 <= places[record] <= ends[record] <= size:
            raise ValueError(f"record {record} is not within the payloads")
    return 0
