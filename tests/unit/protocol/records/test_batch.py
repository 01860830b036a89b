"""The v2 header: what it says, what is refused, and what may be changed in place."""

import struct

import pytest

from protocol.records import batch as batches
from protocol.records.batch import BatchHeader, CorruptBatch
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, UnknownCodec


def three_records(**options: object) -> bytearray:
    rows = [(1000, b"k", b"one"), (3000, b"k", b"two"), (2000, b"k", b"three")]
    return build_batch(rows, **options)  # type: ignore[arg-type]


def test_every_field_is_read_from_its_place() -> None:
    batch = three_records(
        base_offset=5, leader_epoch=7, producer_id=11, producer_epoch=3, base_sequence=40
    )

    header = batches.read_header(memoryview(batch))

    assert header == BatchHeader(
        base_offset=5, length=len(batch) - 12, leader_epoch=7, magic=2,
        crc=struct.unpack_from(">I", batch, 17)[0], attributes=0, last_offset_delta=2,
        base_timestamp=1000, max_timestamp=3000, producer_id=11, producer_epoch=3,
        base_sequence=40, record_count=3,
    )  # fmt: skip
    assert header.size_bytes == len(batch)
    assert header.last_offset == 7
    assert header.last_sequence == 42


def test_a_header_is_read_in_the_middle_of_other_bytes() -> None:
    data = memoryview(b"junk" + three_records(base_offset=9))

    assert batches.read_header(data, 4).base_offset == 9


@pytest.mark.parametrize(
    ("base", "delta", "last"),
    [(0, 0, 0), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0), (2**31 - 3, 5, 2), (-1, 4, -1)],
)
def test_sequence_numbers_wrap_to_zero(base: int, delta: int, last: int) -> None:
    header = batches.read_header(build_batch([(1, None, b"")]))

    assert header._replace(base_sequence=base, last_offset_delta=delta).last_sequence == last


def test_attribute_bits_have_names() -> None:
    plain = batches.read_header(three_records())
    marked = batches.read_header(
        three_records(codec=Codec.ZSTD, transactional=True, control=True, log_append_time=9)
    )
    horizon = plain._replace(attributes=0x40)

    assert not plain.is_transactional
    assert not plain.is_control
    assert not plain.is_log_append_time
    assert not plain.has_delete_horizon
    assert marked.is_transactional
    assert marked.is_control
    assert marked.is_log_append_time
    assert marked.codec is Codec.ZSTD
    assert plain.codec is Codec.NONE
    assert horizon.has_delete_horizon


@pytest.mark.parametrize("bits", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_refused_by_name(bits: int) -> None:
    header = batches.read_header(three_records())._replace(attributes=bits)

    with pytest.raises(UnknownCodec, match=str(bits)):
        _ = header.codec


@pytest.mark.parametrize("size", range(61))
def test_a_header_that_is_cut_off_is_refused(size: int) -> None:
    with pytest.raises(CorruptBatch):
        batches.read_header(memoryview(three_records())[:size])


@pytest.mark.parametrize("length", [-1, 0, 48, -(2**31)])
def test_a_length_that_holds_no_header_is_refused(length: int) -> None:
    batch = three_records()
    struct.pack_into(">i", batch, 8, length)

    with pytest.raises(CorruptBatch, match=str(length)):
        batches.read_header(batch)


@pytest.mark.parametrize("magic", [0, 1, 3, -1])
def test_another_format_is_refused(magic: int) -> None:
    batch = three_records()
    struct.pack_into(">b", batch, 16, magic)

    with pytest.raises(CorruptBatch, match="format"):
        batches.read_header(batch)


def test_the_place_in_the_log_changes_without_the_crc() -> None:
    batch = three_records()
    before = batches.read_header(batch)

    batches.patch_offset_and_epoch(memoryview(batch), 0, 2**62, 17)

    after = batches.read_header(batch)
    assert after == before._replace(base_offset=2**62, leader_epoch=17)
    assert batches.crc_matches(memoryview(batch), 0, after)


@pytest.mark.parametrize("at", [21, 40, 61, -1])
def test_a_flipped_bit_breaks_the_crc(at: int) -> None:
    batch = three_records()
    header = batches.read_header(batch)
    assert batches.crc_matches(memoryview(batch), 0, header)

    batch[at] ^= 1

    assert not batches.crc_matches(memoryview(batch), 0, header)


def test_a_batch_that_is_cut_off_has_no_matching_crc_and_no_payload() -> None:
    batch = three_records()
    header = batches.read_header(batch)
    short = memoryview(batch)[:-1]

    assert not batches.crc_matches(short, 0, header)
    with pytest.raises(CorruptBatch, match="1 bytes after"):
        batches.payload_of(short, 0, header)


@pytest.mark.parametrize("now_ms", [0, 5000, 2**63 - 1])
def test_log_append_time_is_stamped_with_a_new_crc(now_ms: int) -> None:
    data = bytearray(b"....") + three_records(codec=Codec.GZIP, transactional=True)

    batches.stamp_log_append_time(memoryview(data), 4, len(data) - 4, now_ms)

    header = batches.read_header(data, 4)
    assert header.is_log_append_time
    assert header.is_transactional
    assert header.codec is Codec.GZIP
    assert (header.base_timestamp, header.max_timestamp) == (1000, now_ms)
    assert batches.crc_matches(memoryview(data), 4, header)


def test_a_lying_maximum_is_corrected_and_a_claimed_stamp_withdrawn() -> None:
    batch = three_records(log_append_time=77)

    batches.set_max_timestamp(batch, 0, len(batch), 3000)

    header = batches.read_header(batch)
    assert (header.max_timestamp, header.is_log_append_time) == (3000, False)
    assert batches.crc_matches(memoryview(batch), 0, header)


def test_a_corrected_maximum_can_keep_the_stamp() -> None:
    batch = three_records(log_append_time=77)

    batches.set_max_timestamp(batch, 0, len(batch), 78, create_time=False)

    header = batches.read_header(batch)
    assert (header.max_timestamp, header.is_log_append_time) == (78, True)


def test_headers_are_walked_up_to_a_batch_that_is_cut_off() -> None:
    first, second = three_records(), three_records(base_offset=3)
    data = memoryview(first + second)

    whole = [(at, header.base_offset) for at, header in batches.iter_headers(data)]
    cut = [at for at, _ in batches.iter_headers(data[:-1])]
    tail = [at for at, _ in batches.iter_headers(data, len(first))]

    assert whole == [(0, 0), (len(first), 3)]
    assert cut == [0]
    assert tail == [len(first)]


def test_a_walk_over_headers_refuses_what_no_batch_can_be() -> None:
    with pytest.raises(CorruptBatch):
        list(batches.iter_headers(memoryview(three_records() + bytes(100))))
