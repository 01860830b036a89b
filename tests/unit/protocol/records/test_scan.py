"""Chunks of a log: scanned with every check, searched after damage, skipped through by header."""

import struct
from types import ModuleType

import pytest

from protocol.records.batch import CorruptBatch, read_header, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec

SIZES = (1, 3, 2, 1, 10)


def log_of(*counts: int, base_offset: int = 0) -> bytearray:
    data = bytearray()
    offset = base_offset
    for count in counts:
        data += build_batch(
            [(1000 + offset + at, b"k", b"v" * (at + 1)) for at in range(count)],
            base_offset=offset, leader_epoch=2, producer_id=7, producer_epoch=1,
            base_sequence=offset, codec=Codec.ZSTD if count == 10 else Codec.NONE,
        )  # fmt: skip
        offset += count
    return data


def begins(data: bytes | bytearray) -> list[int]:
    found, at = [], 0
    while at < len(data):
        found.append(at)
        at += read_header(data, at).size_bytes
    return found


def test_a_row_tells_what_the_header_does(scan: ModuleType) -> None:
    data = log_of(*SIZES)

    result = scan.scan_batches(data, 0)

    assert (result.stop, result.position, result.needed, result.fault) == ("end", len(data), 0, "")
    for at, row in zip(begins(data), result.batches, strict=True):
        header = read_header(data, at)
        assert row == (
            at, header.base_offset, header.last_offset, header.base_timestamp,
            header.max_timestamp, header.size_bytes, header.record_count, header.attributes,
            header.producer_id, header.producer_epoch, header.base_sequence, header.leader_epoch,
        )  # fmt: skip


def test_extreme_numbers_keep_their_signs(scan: ModuleType) -> None:
    batch = build_batch([(-(2**63), None, b"")], base_offset=2**63 - 1)
    struct.pack_into(">i", batch, 12, -(2**31))
    struct.pack_into(">qqhi", batch, 35, 2**63 - 1, -(2**63), -(2**15), -(2**31))
    seal(batch, 0, len(batch))

    (row,) = scan.scan_batches(batch, 0).batches

    top = 2**63 - 1
    assert row == (
        0, top, top, -(2**63), top, len(batch), 1, 0, -(2**63), -(2**15), -(2**31), -(2**31)
    )  # fmt: skip


def test_a_scan_may_begin_anywhere_a_batch_does(scan: ModuleType) -> None:
    data = memoryview(log_of(*SIZES))
    third = begins(data)[2]

    result = scan.scan_batches(data, third)

    assert [row[0] for row in result.batches] == begins(data)[2:]
    assert scan.scan_batches(data, len(data)).stop == "end"


def test_every_cut_is_partial_and_says_how_much_is_needed(scan: ModuleType) -> None:
    data = bytes(log_of(1, 2))
    first, second = begins(data)
    for size in range(1, len(data)):
        result = scan.scan_batches(data[:size], 0)
        if size == second:
            assert result.stop == "end"
            continue
        last = second if size > second else first
        whole = (len(data) if last == second else second) - last
        assert (result.stop, result.position) == ("partial", last)
        assert result.needed == (whole if size - last >= 61 else 61)


@pytest.mark.parametrize(
    ("at", "field", "number", "fault"),
    [
        (8, ">i", 0, "length"), (8, ">i", 48, "length"), (8, ">i", -1, "length"),
        (8, ">i", -(2**31), "length"), (16, ">b", 1, "magic"), (16, ">b", 0, "magic"),
        (0, ">q", -1, "offset"), (23, ">i", -1, "offset"), (17, ">I", 1, "crc"),
        (21, ">h", 64, "crc"), (61, ">b", 1, "crc"),
    ],
)  # fmt: skip
def test_damage_is_named_and_what_came_before_is_kept(
    scan: ModuleType, at: int, field: str, number: int, fault: str
) -> None:
    data = log_of(1, 3, 2)
    second = begins(data)[1]
    struct.pack_into(field, data, second + at, number)

    result = scan.scan_batches(data, 0)

    assert (result.stop, result.position, result.fault) == ("corrupt", second, fault)
    assert [row[0] for row in result.batches] == [0]


def test_a_length_past_the_data_is_no_crc_fault(scan: ModuleType) -> None:
    data = log_of(1, 3)
    second = begins(data)[1]
    struct.pack_into(">i", data, second + 8, 2**31 - 1)

    result = scan.scan_batches(data, 0)

    assert (result.stop, result.needed) == ("partial", 2**31 - 1 + 12)


def test_an_offset_that_leaves_64_bits_is_damage(scan: ModuleType) -> None:
    data = build_batch([(1, None, b"")] * 2, base_offset=2**63 - 1)

    assert scan.scan_batches(data, 0).fault == "offset"


def test_zeros_after_a_torn_write_are_damage_not_a_batch(scan: ModuleType) -> None:
    data = log_of(1) + bytes(4096)

    result = scan.scan_batches(data, 0)

    assert (result.stop, result.fault, len(result.batches)) == ("corrupt", "length", 1)
    assert scan.find_next_batch(data, result.position) == -1


@pytest.mark.parametrize("junk", [1, 7, 60, 61, 500])
def test_the_next_good_batch_is_found_behind_damage(scan: ModuleType, junk: int) -> None:
    data = b"\x02" * junk + log_of(3, base_offset=50)

    assert scan.find_next_batch(data, 0) == junk
    assert scan.find_next_batch(memoryview(data), junk) == junk
    assert scan.find_next_batch(data, junk + 1) == -1


def test_a_bad_batch_is_passed_over(scan: ModuleType) -> None:
    data = log_of(1, 3, 2)
    second, third = begins(data)[1:]
    data[second + 70] ^= 1

    assert scan.find_next_batch(data, second) == third


def test_the_search_behind_damage_is_bounded(scan: ModuleType) -> None:
    # Every position claims a batch that reaches far, each of which would need its CRC.
    head = struct.pack(">qiib", 1, 60_000, 0, 2)
    data = (head + bytes(15)) * 4096 + log_of(1)

    assert scan.find_next_batch(data, 0) == -1


def test_skipping_to_an_offset(scan: ModuleType) -> None:
    data = log_of(*SIZES, base_offset=100)
    places = begins(data)
    lasts = [read_header(data, at).last_offset for at in places]

    for offset in range(95, 120):
        wanted = [at for at, last in zip(places, lasts, strict=True) if last >= offset]
        assert scan.skip_to_offset(data, 0, offset) == (wanted[0] if wanted else -1)


def test_skipping_to_a_timestamp(scan: ModuleType) -> None:
    data = log_of(*SIZES)
    places = begins(data)
    largest = [read_header(data, at).max_timestamp for at in places]

    for time in range(998, 1020):
        wanted = [at for at, top in zip(places, largest, strict=True) if top >= time]
        assert scan.skip_to_timestamp(data, 0, time) == (wanted[0] if wanted else -1)


def test_a_skip_needs_headers_only_and_tells_where_to_go_on(scan: ModuleType) -> None:
    data = bytes(log_of(3, 3, 3))
    second, third = begins(data)[1:]

    assert scan.skip_to_offset(data[: second + 61], 0, 4) == second
    assert scan.skip_to_offset(data[: second + 60], 0, 4) == -1
    assert scan.resume_position(data[: second + 60], 0) == second
    assert scan.resume_position(data[: second + 61], 0) == third
    assert scan.resume_position(data, second) == len(data)


def test_a_skip_refuses_what_no_batch_can_be(scan: ModuleType) -> None:
    data = log_of(1) + bytes(100)

    for skip in (scan.skip_to_offset, scan.skip_to_timestamp):
        with pytest.raises(CorruptBatch, match="length"):
            skip(data, 0, 2**62)
    with pytest.raises(CorruptBatch, match="length"):
        scan.resume_position(data, 0)


def test_a_position_before_the_data_is_the_callers_mistake(scan: ModuleType) -> None:
    data = log_of(1)

    for walk in (scan.scan_batches, scan.find_next_batch, scan.resume_position):
        with pytest.raises(ValueError, match="-1"):
            walk(data, -1)
    for skip in (scan.skip_to_offset, scan.skip_to_timestamp):
        with pytest.raises(ValueError, match="-1"):
            skip(data, -1, 0)
