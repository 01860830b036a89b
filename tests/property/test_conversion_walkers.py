"""Compiled and as source, the conversions answer alike; they never fail otherwise, and agree with
the readers that make an object of each message.
"""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import DecodeError
from protocol.records.batch import HEADER_BYTES, MAX_INT64, MIN_INT64, read_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.old_formats import convert_down, convert_up
from protocol.records.old_formats.legacy import plain_messages
from protocol.records.old_formats.legacy_builder import build_set
from protocol.records.record import Record, read_records
from tests.support.records.record_walkers import from_source

SOURCE_UP, SOURCE_DOWN = (
    from_source("old_formats/convert_up"),
    from_source("old_formats/convert_down"),
)
INT64 = st.integers(MIN_INT64, MAX_INT64)
TIMES = INT64 | st.integers(-3, 3) | st.integers(-(2**61), 2**61)
FIELDS = st.none() | st.binary(max_size=80) | st.integers(60, 200).map(bytes)
OFFSETS = st.integers(-2, 9) | INT64
MAGIC = st.integers(0, 1)


@st.composite
def sets(draw: st.DrawFn) -> tuple[bytes, int]:
    """A set of messages and its format; perhaps bytes changed, the end cut off, a tail added."""
    magic = draw(MAGIC)
    rows = draw(st.lists(st.tuples(OFFSETS, TIMES, FIELDS, FIELDS), max_size=6))
    octets = bytearray(build_set(rows, magic))
    for at in draw(st.lists(st.integers(0, len(octets) - 1), max_size=2)) if octets else ():
        octets[at] = draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 127, 128, 255]))
    cut = draw(st.just(len(octets)) | st.integers(0, len(octets)))
    return bytes(octets[:cut]) + draw(st.just(b"") | st.binary(max_size=40)), magic


def outcome(function: Callable[..., object], *arguments: object) -> object:
    """What a call gives or, by kind and text, the decode error that it raises."""
    try:
        return function(*arguments)
    except DecodeError as error:
        return type(error), str(error)


@given(sets(), st.booleans(), st.booleans(), TIMES)
def test_up_agrees(case: tuple[bytes, int], keep: bool, stamped: bool, stamp: int) -> None:
    arguments = (*case, keep, stamped, stamp, "the set")

    assert outcome(convert_up.records_of, *arguments) == outcome(SOURCE_UP.records_of, *arguments)


@given(sets())
def test_up_refuses_what_the_reader_of_messages_refuses(case: tuple[bytes, int]) -> None:
    data, magic = case
    made = outcome(convert_up.records_of, data, magic, False, False, 0, "the set")
    read = outcome(lambda: list(plain_messages(data, magic)))

    if isinstance(read, list):
        times = [message.timestamp for message in read]
        if all(MIN_INT64 <= time - times[0] <= MAX_INT64 for time in times):
            assert isinstance(made, convert_up.BatchRecords)
            assert (made.count, made.max_timestamp) == (len(read), max([-1, *times]))
            return
    assert not isinstance(made, convert_up.BatchRecords)


@given(
    st.lists(st.tuples(st.integers(-(2**61), 2**61), FIELDS, FIELDS), max_size=8),
    st.integers(0, 2**61), st.booleans(), TIMES, MAGIC, st.integers(-1, 12), st.booleans(),
    st.integers(0, 500),
)  # fmt: skip
def test_down_agrees(  # noqa: PLR0917 - as many as the conversion has
    rows: list[NewRecord], base: int, stamped: bool, stamp: int, magic: int, skip: int,
    relative: bool, room: int,
) -> None:  # fmt: skip
    batch = build_batch(rows, base_offset=base)
    header = read_header(batch)
    arguments = (
        bytes(batch[HEADER_BYTES:]), header.record_count, base, header.base_timestamp, stamped,
        stamp, magic, base + skip, relative, room,
    )  # fmt: skip

    made = convert_down.messages_of(*arguments)

    assert made == SOURCE_DOWN.messages_of(*arguments)
    _compare(made, read_records(memoryview(batch))[max(skip, 0) :], stamped, stamp, magic)


def _compare(
    made: convert_down.Messages, wanted: list[Record], stamped: bool, stamp: int, magic: int
) -> None:
    """The messages are the first of `wanted`, all of them unless told."""
    read = list(plain_messages(bytes(made.messages), magic))
    assert len(read) == made.count
    assert made.is_whole == (made.count == len(wanted))
    for message, record in zip(read, wanted, strict=False):
        time = stamp if stamped else record.timestamp
        assert message.timestamp == (time if magic else -1)
        assert (message.key, message.value) == (record.key, record.value)
    if read:
        assert made.last_offset == wanted[len(read) - 1].offset
