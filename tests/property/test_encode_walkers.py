"""Columns are written as the builder writes records, byte by byte; compiled and as source."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records import columns, encode
from protocol.records.batch import HEADER_BYTES
from protocol.records.builder import build_batch
from tests.support.records.record_walkers import from_source

SOURCE = from_source("encode")
TIMES = st.integers(-1, 50) | st.integers(-(2**61), 2**61)
FIELDS = st.none() | st.binary(max_size=40)
HEADERS = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), FIELDS), max_size=3)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=6)
Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]


def fields(values: list[bytes | None]) -> columns.Fields:
    ends, data = array("i", [0]), bytearray()
    for value in values:
        data += value or b""
        ends.append(len(data))
    return columns.Fields(ends, bytearray(value is not None for value in values), data)


def columns_of(rows: list[Row]) -> encode.Columns:
    ends = array("i", [0])
    for row in rows:
        ends.append(ends[-1] + len(row[3]))
    flat = [header for row in rows for header in row[3]]
    lists = columns.Fields(ends, bytearray(len(rows)), bytearray())
    names, values = fields([name.encode() for name, _ in flat]), fields([v for _, v in flat])
    return encode.Columns(
        memoryview(array("q", [row[0] for row in rows])),
        fields([row[1] for row in rows]),
        fields([row[2] for row in rows]),
        columns.HeaderRoom(lists, names, values) if flat else None,
    )


@given(ROWS, st.data())
def test_what_is_written_is_what_the_builder_writes(rows: list[Row], data: st.DataObject) -> None:
    made = columns_of(rows)
    first = data.draw(st.integers(0, len(rows) - 1))
    last = data.draw(st.integers(first + 1, len(rows)))
    expected = bytes(build_batch(rows[first:last])[HEADER_BYTES:])
    for module in (encode, SOURCE):
        out = bytearray(module.room_for(made, first, last))
        size = module.encode_records(made, first, last, out)
        assert bytes(out[:size]) == expected


@given(ROWS, st.integers(-2, 9), st.integers(-2, 9), st.integers(0, 400))
def test_what_does_not_fit_is_refused(rows: list[Row], first: int, last: int, size: int) -> None:
    made = columns_of(rows)
    fits = 0 <= first <= last <= len(rows) and size >= encode.room_for(made, first, last)
    for module in (encode, SOURCE):
        if fits:
            module.encode_records(made, first, last, bytearray(size))
        else:
            with pytest.raises(ValueError, match=r"no room|no records"):
                module.encode_records(made, first, last, bytearray(size))


@given(st.lists(st.none() | st.binary(max_size=30), max_size=8))
def test_hashes_agree(keys: list[bytes | None]) -> None:
    found = []
    for module in (encode, SOURCE):
        hashes = array("q", bytes(8 * len(keys)))
        module.hash_keys(fields(keys), hashes)
        found.append(list(hashes))

    assert found[0] == found[1]
    assert [hash_ >= 0 for hash_ in found[0]] == [key is not None for key in keys]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_key_s_hash_is_that_of_kafka_s_producers(key: bytes, expected: int) -> None:
    """The values of Kafka's own test of its hash."""
    hashes = array("q", bytes(8))

    encode.hash_keys(fields([key]), hashes)

    assert hashes[0] == expected & 0x7FFFFFFF
