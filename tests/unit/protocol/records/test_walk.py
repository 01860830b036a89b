"""Every record of a batch is looked at: what is counted, what is refused, what is found."""

from array import array
from types import ModuleType
from typing import Any

import pytest

from protocol.records.batch import HEADER_BYTES, InvalidRecords
from protocol.records.builder import NewRecord, build_batch
from protocol.records.numbers import zigzag_bytes
from protocol.records.walk import Outline

LOW, HIGH = -(2**63), 2**63 - 1
INT64_MAX = 2**63 - 1


def payload_of(*rows: NewRecord, deltas: list[int] | None = None) -> bytes:
    return bytes(build_batch(rows, offset_deltas=deltas)[HEADER_BYTES:])


def record(body: bytes) -> bytes:
    return zigzag_bytes(len(body)) + body


def timed(*times: int) -> bytes:
    return payload_of(*((time, b"k", b"v") for time in times))


def outlined(walk: ModuleType, payload: Any, count: int, base: int) -> list[Outline]:
    """The outline of each record, taken one at a time."""
    rows, at, found = array("q", bytes(64)), 0, []
    for index in range(count):
        at = walk.outline_records(payload, at, index, 1, base, rows)
        found.append(Outline(*rows))
    assert at == len(payload)
    return found


def test_facts_of_ordinary_records(walk: ModuleType) -> None:
    payload = payload_of(
        (1000, b"k", b"v"), (3000, None, b"v"), (-1, None, None), (2000, b"", b""), (3000, b"", b"")
    )  # fmt: skip

    facts = walk.check_records(payload, 5, 1000, 1500, 2500)

    assert facts._asdict() == {
        "count": 5, "min_timestamp": 1000, "max_timestamp": 3000, "max_timestamp_index": 1,
        "untimed": 1, "out_of_bounds": 3, "keyless": 2, "first_misplaced": -1,
    }  # fmt: skip


def test_bounds_themselves_are_inside(walk: ModuleType) -> None:
    payload = timed(999, 1000, 2000, 2001)

    assert walk.check_records(payload, 4, 999, 1000, 2000).out_of_bounds == 2


def test_records_without_time_have_no_extremes(walk: ModuleType) -> None:
    facts = walk.check_records(timed(-1, -1), 2, -1, 0, 10)

    assert (facts.min_timestamp, facts.max_timestamp, facts.max_timestamp_index) == (-1, -1, -1)
    assert (facts.untimed, facts.out_of_bounds) == (2, 0)


def test_times_below_minus_one_never_become_the_maximum(walk: ModuleType) -> None:
    facts = walk.check_records(timed(-7, -5), 2, -7, 0, 10)

    assert (facts.min_timestamp, facts.max_timestamp, facts.max_timestamp_index) == (-7, -1, -1)
    assert facts.out_of_bounds == 2


@pytest.mark.parametrize(
    ("deltas", "misplaced"),
    [([0, 1, 2], -1), ([0, 2, 2], 1), ([1, 2, 3], 0), ([0, 0, 0], 1), ([0, 1, 5_000_000], 2)],
)
def test_offset_deltas_are_compared(walk: ModuleType, deltas: list[int], misplaced: int) -> None:
    payload = payload_of(*[(1, b"k", b"v")] * 3, deltas=deltas)

    assert walk.check_records(payload, 3, 1, LOW, HIGH).first_misplaced == misplaced


def test_an_empty_payload_has_no_facts(walk: ModuleType) -> None:
    assert walk.check_records(b"", 0, 5, LOW, HIGH) == (0, -1, -1, -1, 0, 0, 0, -1)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_will_do(walk: ModuleType, kind: type) -> None:
    payload = timed(5)

    assert walk.check_records(kind(payload), 1, 5, LOW, HIGH).count == 1
    assert outlined(walk, kind(payload), 1, 5)[0].timestamp == 5
    assert walk.find_timestamp(kind(payload), 1, 0, 5, 5, 0) == (0, 5)


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_lies_is_refused(walk: ModuleType, count: int) -> None:
    with pytest.raises(InvalidRecords):
        walk.check_records(timed(1, 2), count, 1, LOW, HIGH)


def test_bytes_after_the_last_record_are_refused(walk: ModuleType) -> None:
    with pytest.raises(InvalidRecords, match="1 bytes follow"):
        walk.check_records(timed(1) + b"\0", 1, 1, LOW, HIGH)


def test_every_truncation_is_refused(walk: ModuleType) -> None:
    payload = payload_of(
        (1, b"k" * 100, b"v" * 200, (("h", b"x"), ("i", None))), (2**40, None, b"")
    )

    for size in range(len(payload)):
        with pytest.raises(InvalidRecords):
            walk.check_records(payload[:size], 2, 1, LOW, HIGH)


NULL, EMPTY = b"\x01", b"\x00"
BAD_RECORDS = {
    "an empty record": b"\x00",
    "a negative length": b"\x01",
    "a length past the batch": b"\x7e" + bytes(20),
    "a length of six bytes": b"\x8e\x80\x80\x80\x80\x00" + bytes(7),
    "a length over 32 bits": b"\xff\xff\xff\xff\x1f" + bytes(7),
    "a timestamp of eleven bytes": record(b"\0" + b"\x80" * 10 + b"\0" + bytes(5)),
    "a timestamp over 64 bits": record(b"\0" + b"\xff" * 9 + b"\x02" + bytes(5)),
    "an offset of six bytes": record(b"\0\0" + b"\x80" * 5 + b"\0" + bytes(4)),
    "a key past the record": record(b"\0\0\0" + b"\x20" + EMPTY + b"\0"),
    "a key size below null": record(b"\0\0\0" + b"\x03" + EMPTY + b"\0"),
    "a value past the record": record(b"\0\0\0" + NULL + b"\x20" + b"\0"),
    "a value size below null": record(b"\0\0\0" + NULL + b"\x03" + b"\0"),
    "no header count": record(b"\0\0\0" + NULL + EMPTY),
    "a negative header count": record(b"\0\0\0" + NULL + EMPTY + b"\x01"),
    "more headers than bytes": record(b"\0\0\0" + NULL + EMPTY + b"\x04" + b"\0\0"),
    "a null header key": record(b"\0\0\0" + NULL + EMPTY + b"\x02" + NULL + NULL),
    "a header key past the record": record(b"\0\0\0" + NULL + EMPTY + b"\x02" + b"\x08" + NULL),
    "a header value past the record": record(b"\0\0\0" + NULL + EMPTY + b"\x02" + b"\0\x08"),
    "bytes after the headers": record(b"\0\0\0" + NULL + EMPTY + b"\0" + b"\0"),
}


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_damaged_record_is_refused_and_numbered(walk: ModuleType, name: str) -> None:
    payload = timed(1) + BAD_RECORDS[name]

    with pytest.raises(InvalidRecords, match=r"^record 1: "):
        walk.check_records(payload, 2, 1, LOW, HIGH)
    with pytest.raises(InvalidRecords, match=r"^record 1: "):
        outlined(walk, payload, 2, 1)
    with pytest.raises(InvalidRecords, match=r"^record 1: "):
        walk.find_timestamp(payload, 2, 0, 1, 5, 0)


def test_numbers_may_be_longer_than_they_need(walk: ModuleType) -> None:
    payload = record(b"\0" + b"\x80" * 9 + b"\0" + b"\x80\x80\x80\x80\0" + NULL + EMPTY + b"\x80\0")

    assert walk.check_records(payload, 1, 7, LOW, HIGH).max_timestamp == 7


def test_record_attributes_mean_nothing(walk: ModuleType) -> None:
    payload = record(b"\xff\0\0" + NULL + EMPTY + b"\0")

    assert walk.check_records(payload, 1, 7, LOW, HIGH).count == 1


@pytest.mark.parametrize(
    ("base", "time"),
    [(INT64_MAX, INT64_MAX), (LOW, LOW), (0, INT64_MAX), (0, LOW), (LOW, -1), (-1, INT64_MAX - 1)],
)
def test_times_reach_both_ends_of_64_bits(walk: ModuleType, base: int, time: int) -> None:
    payload = record(b"\0" + zigzag_bytes(time - base) + b"\0" + NULL + EMPTY + b"\0")

    facts = walk.check_records(payload, 1, base, LOW, HIGH)

    assert facts.min_timestamp == time
    assert facts.max_timestamp == max(time, -1)
    assert walk.find_timestamp(payload, 1, 0, base, LOW, 0) == (0, time)


@pytest.mark.parametrize(("base", "delta"), [(INT64_MAX, 1), (LOW, -1), (1, INT64_MAX), (-2, LOW)])
def test_times_past_64_bits_are_refused(walk: ModuleType, base: int, delta: int) -> None:
    payload = record(b"\0" + zigzag_bytes(delta) + b"\0" + NULL + EMPTY + b"\0")

    with pytest.raises(InvalidRecords, match="64-bit"):
        walk.check_records(payload, 1, base, LOW, HIGH)


def test_an_outline_says_where_the_parts_of_each_record_lie(walk: ModuleType) -> None:
    rows = [
        (5, b"key", b"value", [("h", b"x")]),
        (-1, None, None, []),
        (2**40, b"", b"x" * 200, [("a", None)] * 3),
    ]
    payload = payload_of(*rows, deltas=[0, 70, 9000])

    for row, part in zip(rows, outlined(walk, payload, 3, 5), strict=True):
        assert part.timestamp == row[0]
        assert part.key_size == (-1 if row[1] is None else len(row[1]))
        assert zigzag_bytes(row[0] - 5) == payload[part.time : part.offset]
        assert payload[part.start : part.time - 1] == zigzag_bytes(part.end - part.time + 1)
        assert payload[part.key : part.headers] == b"".join(
            zigzag_bytes(-1 if field is None else len(field)) + (field or b"") for field in row[1:3]
        )
        assert payload[part.headers : part.end].startswith(zigzag_bytes(len(row[3])))


@pytest.mark.parametrize(
    ("target", "min_offset", "found"),
    [
        (0, 0, (100, 10)), (11, 0, (101, 30)), (30, 102, (103, 30)), (10, 102, (102, 20)),
        (31, 0, None), (0, 104, None), (-1, 0, (100, 10)), (INT64_MAX, 0, None),
    ],
)  # fmt: skip
def test_the_first_record_at_or_after_a_time_and_an_offset(
    walk: ModuleType, target: int, min_offset: int, found: tuple[int, int] | None
) -> None:
    payload = timed(10, 30, 20, 30)

    assert walk.find_timestamp(payload, 4, 100, 10, target, min_offset) == found


def test_offsets_are_found_where_compaction_left_gaps(walk: ModuleType) -> None:
    payload = payload_of((1, b"k", b""), (2, b"k", b""), deltas=[3, 9])

    assert walk.find_timestamp(payload, 2, 100, 1, 2, 0) == (109, 2)


def test_an_offset_past_64_bits_is_refused(walk: ModuleType) -> None:
    payload = payload_of((1, b"k", b""), deltas=[1])

    with pytest.raises(InvalidRecords):
        walk.find_timestamp(payload, 1, INT64_MAX, 1, 1, 0)
