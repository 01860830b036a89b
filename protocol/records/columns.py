# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
# mypy: disable-error-code="untyped-decorator,valid-type,no-any-return"
"""Records of many batches as columns of machine numbers and bytes: what Arrow is made of.

Like `walk`, written once and run compiled or as it stands. Records that are not wanted are passed
over here, so that nobody pays for them. The caller says where the unpacked payloads lie and gives
the room; both are judged before the first byte is read, and every number of a record is checked
against the record's end. Cython's own bounds checks are off after that. Rules: semantics.md 6.5
(whose time counts) and 7.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import cython

from protocol.records.batch import InvalidRecords
from protocol.records.record_head import HEAD_FAULTS, OFFSET_FAULT

if cython.compiled:
    from cython.cimports.protocol.records.numbers import leaves_int64, put_bytes, sized, zigzag
    from cython.cimports.protocol.records.record_head import head_of
else:
    from protocol.records.numbers import leaves_int64, put_bytes, sized, zigzag
    from protocol.records.record_head import head_of

IS_COMPILED: bool = cython.compiled
BATCH_NUMBERS = 7

BAD_OFFSET = cython.declare(cython.int, OFFSET_FAULT)
SEVEN = cython.declare(cython.Py_ssize_t, BATCH_NUMBERS)

Buffer = bytes | bytearray | memoryview


class Wanted(NamedTuple):
    """Selection of records: offsets and times (ms, as readers see them), bounds included."""

    first_offset: int
    last_offset: int
    low_ms: int
    high_ms: int


class Room(NamedTuple):
    """Output columns of 64-bit numbers. An empty one is not wanted.

    `places` and `ends` come together: where the key's size stands, and the end of the record.
    """

    offsets: Any
    times: Any  # ms, as readers see them
    claimed: Any  # ms, as the producer had them
    batches: Any  # the number of the record's batch in the table
    deltas: Any  # the record's offset less the base offset
    places: Any
    ends: Any


class Fields(NamedTuple):
    """Room for a column of bytes: where each entry ends, whether there is one, the bytes.

    `ends` has one number more than there are entries and begins with 0.
    """

    ends: Any  # int32
    is_there: Any  # uint8
    data: Any  # uint8


def locate_records(
    payloads: Buffer, table: cython.const[cython.longlong][::1], wanted: Wanted, room: Room
) -> int:
    """Find the wanted records of the batches in `table`, in its order; how many they are.

    A batch takes seven numbers there: where its unpacked records begin and end in `payloads`, their
    count, base offset, base timestamp, maximum timestamp, and whether the broker stamped them.
    InvalidRecords when one is damaged: `position` is the batch's number. ValueError when the table
    does not fit the payloads, or the room the table.
    """
    data: cython.const[cython.uchar][::1] = payloads
    first_offset: cython.longlong = wanted.first_offset
    last_offset: cython.longlong = wanted.last_offset
    low: cython.longlong = wanted.low_ms
    high: cython.longlong = wanted.high_ms
    offsets: cython.longlong[::1] = room.offsets
    times: cython.longlong[::1] = room.times
    places: cython.longlong[::1] = room.places
    ends: cython.longlong[::1] = room.ends
    claims: cython.longlong[::1] = room.claimed
    batches: cython.longlong[::1] = room.batches
    deltas: cython.longlong[::1] = room.deltas
    wants_origins: cython.bint = len(batches) > 0
    wants_places: cython.bint = len(places) > 0
    row: cython.Py_ssize_t
    at: cython.Py_ssize_t
    end: cython.Py_ssize_t
    index: cython.longlong
    offset: cython.longlong
    claimed: cython.longlong
    time: cython.longlong
    fault: cython.int
    made: cython.Py_ssize_t = 0
    check_room(table, len(data), room)
    for row in range(0, len(table), SEVEN):
        end = table[row]
        for index in range(table[row + 2]):
            at, end, claimed, offset, fault = head_of(data, end, table[row + 1], table[row + 4])
            if fault or leaves_int64(table[row + 3], offset):
                raise damaged(row // SEVEN, index, fault or BAD_OFFSET)
            offset += table[row + 3]
            time = table[row + 5] if table[row + 6] else claimed
            if offset < first_offset or offset > last_offset or time < low or time > high:
                continue
            offsets[made] = offset
            times[made] = time
            if wants_places:
                places[made] = at
                ends[made] = end
            if wants_origins:
                batches[made] = row // SEVEN
                deltas[made] = offset - table[row + 3]
                claims[made] = claimed
            made += 1
        if end != table[row + 1]:
            raise InvalidRecords("bytes follow its last record", row // SEVEN)
    return made


def take_fields(
    payloads: Buffer,
    places: cython.longlong[::1],
    ends: cython.const[cython.longlong][::1],
    room: Fields,
) -> int:
    """Copy the field of sized bytes at each place; the places move behind it. The bytes taken.

    Empty room: they only move. InvalidRecords when a size runs past the record's end: `position` is
    the record's number. ValueError without room for all of them.
    """
    data: cython.const[cython.uchar][::1] = payloads
    field_ends: cython.int[::1] = room.ends
    is_there: cython.uchar[::1] = room.is_there
    out: cython.uchar[::1] = room.data
    takes: cython.bint = len(field_ends) > 0
    record: cython.Py_ssize_t
    at: cython.Py_ssize_t
    size: cython.longlong
    to: cython.Py_ssize_t = 0
    check_places(places, ends, len(data))
    if takes:
        check_fields(room, len(places), len(data))
    for record in range(len(places)):
        size, at = sized(data, places[record], ends[record])
        if at < 0:
            raise InvalidRecords("its key or value runs past the record", record)
        if takes:
            is_there[record] = size >= 0
            to = put_bytes(out, to, data, at, at + max(0, size))
            field_ends[record + 1] = cython.cast(cython.int, to)
        places[record] = at + max(0, size)
    return to


def count_headers(
    payloads: Buffer,
    places: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
) -> int:
    """Number of headers of the records whose header counts are at the places."""
    data: cython.const[cython.uchar][::1] = payloads
    record: cython.Py_ssize_t
    at: cython.Py_ssize_t
    count: cython.longlong
    total: cython.longlong = 0
    check_places(places, ends, len(data))
    for record in range(len(places)):
        count, at = zigzag(data, places[record], ends[record], 32)
        if at < 0 or count < 0 or count > (ends[record] - at) // 2:
            raise bad_headers(record)
        total += count
    return total


class HeaderRoom(NamedTuple):
    """Output of headers: a list for each record, names, and values that may be null."""

    lists: Fields  # `data` stays empty
    names: Fields
    values: Fields


def take_headers(
    payloads: Buffer,
    places: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    room: HeaderRoom,
) -> tuple[int, int]:
    """Copy the headers of records whose header counts stand at the places; name and value bytes.

    InvalidRecords when they are damaged: `position` is the record's number. ValueError without room
    for as many as `count_headers` says.
    """
    data: cython.const[cython.uchar][::1] = payloads
    list_ends: cython.int[::1] = room.lists.ends
    has_some: cython.uchar[::1] = room.lists.is_there
    record: cython.Py_ssize_t
    at: cython.Py_ssize_t
    count: cython.longlong
    capacity: cython.Py_ssize_t = len(room.names.is_there)
    made: cython.Py_ssize_t = 0
    name_at: cython.Py_ssize_t = 0
    value_at: cython.Py_ssize_t = 0
    check_places(places, ends, len(data))
    check_lists(room, len(places), len(data))
    for record in range(len(places)):
        count, at = zigzag(data, places[record], ends[record], 32)
        if at < 0 or count < 0 or count > capacity - made:
            raise bad_headers(record)
        has_some[record] = count > 0
        while count > 0 and at >= 0:
            at, name_at = taken(data, at, ends[record], room.names, made, name_at)
            if at >= 0:
                at, value_at = taken(data, at, ends[record], room.values, made, value_at)
            made += 1
            count -= 1
        if at != ends[record]:
            raise bad_headers(record)
        list_ends[record + 1] = cython.cast(cython.int, made)
    return name_at, value_at


@cython.cfunc
def taken(  # noqa: PLR0917 - called by position, a header at a time
    data: cython.const[cython.uchar][::1],
    at: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    room: Fields,
    index: cython.Py_ssize_t,
    to: cython.Py_ssize_t,
) -> tuple[cython.Py_ssize_t, cython.Py_ssize_t]:
    """Copy one field; positions after it, there and here. The first is -1 for damage."""
    ends: cython.int[::1] = room.ends
    is_there: cython.uchar[::1] = room.is_there
    size: cython.longlong
    size, at = sized(data, at, end)
    if at < 0:
        return -1, to
    is_there[index] = size >= 0
    to = put_bytes(room.data, to, data, at, at + max(0, size))
    ends[index + 1] = cython.cast(cython.int, to)
    return at + max(0, size), to


@cython.cfunc
def check_room(
    table: cython.const[cython.longlong][::1], size: cython.Py_ssize_t, room: Room
) -> cython.int:
    """Judge the table and the room for what it can bring; ValueError."""
    row: cython.Py_ssize_t
    records: cython.longlong = 0
    if len(table) % SEVEN:
        raise ValueError("the table is not whole rows")
    for row in range(0, len(table), SEVEN):
        if not 0 <= table[row] <= table[row + 1] <= size or not 0 <= table[row + 2] < 0x8000_0000:
            raise ValueError(f"batch {row // SEVEN} is not within the payloads")
        records += table[row + 2]
    wanted = [len(room.offsets), len(room.times)]
    if len(room.places) or len(room.ends):
        wanted += (len(room.places), len(room.ends))
    if len(room.batches):
        wanted += (len(room.batches), len(room.deltas), len(room.claimed))
    if min(wanted) < records:
        raise ValueError(f"no room for {records} records")
    return 0


@cython.cfunc
def check_places(
    places: cython.const[cython.longlong][::1],
    ends: cython.const[cython.longlong][::1],
    size: cython.Py_ssize_t,
) -> cython.int:
    """ValueError when a record is not within the payloads."""
    record: cython.Py_ssize_t
    if len(places) != len(ends):
        raise ValueError("places and ends are not of the same records")
    for record in range(len(places)):
        if not 0 <= places[record] <= ends[record] <= size:
            raise ValueError(f"record {record} is not within the payloads")
    return 0


def check_fields(room: Fields, entries: int, octets: int) -> None:
    """ValueError when a column of bytes has less room than it may need."""
    if octets > 0x7FFF_FFFF:
        raise ValueError(f"{octets} bytes are too many for one column")
    if len(room.ends) <= entries or len(room.is_there) < entries or len(room.data) < octets:
        raise ValueError(f"no room for {entries} fields, {octets} bytes")


def check_lists(room: HeaderRoom, records: int, octets: int) -> None:
    """Likewise, for headers."""
    entries = len(room.names.is_there)
    check_fields(room.lists, records, 0)
    check_fields(room.names, entries, octets if entries else 0)
    check_fields(room.values, entries, octets if entries else 0)


def damaged(batch: int, record: int, fault: int) -> InvalidRecords:
    """Build the refusal of one record."""
    return InvalidRecords(f"record {record}: {HEAD_FAULTS[fault]}", batch)


def bad_headers(record: int) -> InvalidRecords:
    """Build the refusal of a record for its headers."""
    return InvalidRecords("its headers are damaged", record)
