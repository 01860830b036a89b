"""Compiled and as source, numbers in headers are alike, and damage is refused alike."""

from array import array
from types import ModuleType

from hypothesis import example, given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records import columns, named_header
from protocol.records.batch import HEADER_BYTES, MAX_INT64, MIN_INT64, read_header
from protocol.records.builder import build_batch
from tests.support.records.record_walkers import from_source

SOURCE = from_source("named_header")
NAME = b"at"
VALUES = st.none() | st.binary(max_size=9) | st.from_regex(rb"\A[0-9]{1,20}\Z")
HEADERS = st.lists(st.tuples(st.sampled_from(("at", "a", "att", "")), VALUES), max_size=4)
ROWS = st.lists(HEADERS, min_size=1, max_size=6)


def located(data: bytes, count: int) -> "tuple[array[int], array[int]]":
    table = array("q", (0, len(data), count, 0, 0, 0, 0))
    room = columns.Room(*(array("q", bytes(8 * count)) for _ in range(7)))
    wanted = columns.Wanted(MIN_INT64, MAX_INT64, MIN_INT64, MAX_INT64)
    columns.locate_records(data, table, wanted, room)
    return room.places, room.ends


def numbers(module: ModuleType, data: bytes, places: object, ends: object) -> object:
    out = array("q", bytes(8 * len(places)))  # type: ignore[arg-type]
    try:
        return module.take_numbers(data, places, ends, NAME, out), list(out)
    except (DecodeError, ValueError) as error:
        return type(error).__name__, str(error)


def said(value: bytes | None) -> int:
    """The number of a value, as the documentation has it."""
    if value is not None and 0 < len(value) <= 18 and all(48 <= each <= 57 for each in value):
        return int(value)
    if value is not None and len(value) == 8:
        return int.from_bytes(value, "big", signed=True)
    return named_header.ABSENT


@given(ROWS)
@example([[("at", b"1700000000000")], [("at", b"1" * 19)], [("at", b"12345678")], []])
def test_the_last_header_of_the_name_counts(rows: list[list[tuple[str, bytes | None]]]) -> None:
    batch = build_batch([(0, None, b"v", headers) for headers in rows])
    data = bytes(batch[HEADER_BYTES:])
    places, ends = located(data, read_header(batch).record_count)
    expected = []
    for headers in rows:
        values = [value for name, value in headers if name == "at"]
        expected.append(said(values[-1]) if values else named_header.ABSENT)
    found = numbers(named_header, data, places, ends)
    assert isinstance(found, tuple)
    assert found[1] == expected
    assert found == numbers(SOURCE, data, places, ends)


@given(ROWS, st.data())
def test_damage_is_refused_alike(
    rows: list[list[tuple[str, bytes | None]]], data: st.DataObject
) -> None:
    batch = build_batch([(0, None, b"v", headers) for headers in rows])
    payload = bytearray(batch[HEADER_BYTES:])
    places, ends = located(bytes(payload), len(rows))
    for at in data.draw(st.lists(st.integers(0, len(payload) - 1), max_size=3)):
        payload[at] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        ends[data.draw(st.integers(0, len(ends) - 1))] = data.draw(st.integers(-2, 300))
    damaged = bytes(payload)
    assert numbers(named_header, damaged, places, ends) == numbers(SOURCE, damaged, places, ends)
