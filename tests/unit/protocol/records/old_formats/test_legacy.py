"""Sets of formats 0 and 1 as old clients send them: read message by message, faults by name."""

import zlib

import pytest

from protocol.records.batch import LOG_APPEND_TIME, CorruptBatch, InvalidRecords
from protocol.records.builder import build_batch
from protocol.records.compression import (
    Codec,
    CorruptCompression,
    InflateLimit,
    UnknownCodec,
)
from protocol.records.old_formats.legacy import read_facts, read_messages
from protocol.records.old_formats.legacy_builder import Row, build_message, build_set, wrap

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
PACKED = OLD_CODECS[1:]
ROWS: list[Row] = [(0, 1000, b"k", b"first"), (1, 900, None, b""), (2, 1100, b"", None)]
both = pytest.mark.parametrize("magic", [0, 1])


def read(data: bytes, **how: int) -> list[tuple[int, int, bytes | None, bytes | None]]:
    return [
        (m.offset, m.timestamp, None if m.key is None else bytes(m.key),
         None if m.value is None else bytes(m.value))
        for m in read_messages(memoryview(data), **how)
    ]  # fmt: skip


def as_read(rows: list[Row], magic: int) -> list[Row]:
    return [(offset, time if magic else -1, key, value) for offset, time, key, value in rows]


def resealed(message: bytes, at: int, octet: int) -> bytes:
    changed = bytearray(message)
    changed[at] = octet
    changed[12:16] = zlib.crc32(changed[16:]).to_bytes(4, "big")
    return bytes(changed)


@both
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_set_reads_back_as_it_was_built(magic: int, codec: Codec) -> None:
    data = build_set(ROWS, magic, codec=codec)

    assert read_facts(memoryview(data)) == (magic, codec)
    assert read(data) == as_read(ROWS, magic)


@both
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_offsets_survive_with_their_gaps(magic: int, codec: Codec) -> None:
    rows: list[Row] = [(70, 5, None, b"a"), (75, 6, None, b"b"), (76, 4, None, b"c")]

    assert read(build_set(rows, magic, codec=codec)) == as_read(rows, magic)


def test_inner_offsets_of_format_1_count_from_the_wrappers_end() -> None:
    inner = build_set([(n, 10 + n, None, b"v") for n in range(3)], 1)

    at_9 = wrap(inner, 1, Codec.GZIP, last_offset=9, timestamp=12)

    assert [offset for offset, *_ in read(at_9)] == [7, 8, 9]


def test_a_wrapper_at_offset_0_counts_from_0_an_old_habit_of_librdkafka() -> None:
    inner = build_set([(n, 10 + n, None, b"v") for n in range(3)], 1)

    at_0 = wrap(inner, 1, Codec.GZIP, last_offset=0, timestamp=12)

    assert [offset for offset, *_ in read(at_0)] == [0, 1, 2]


def test_a_wrapper_below_its_last_message_is_invalid() -> None:
    inner = build_set([(n, 10 + n, None, b"v") for n in range(3)], 1)

    with pytest.raises(InvalidRecords, match="a wrapper at 1 holds a message at 2"):
        read(wrap(inner, 1, Codec.GZIP, last_offset=1, timestamp=12))


def test_a_stamped_wrapper_gives_its_time_to_all() -> None:
    inner = build_set(ROWS, 1)
    stamped = wrap(inner, 1, Codec.GZIP, last_offset=2, timestamp=7777, attributes=LOG_APPEND_TIME)

    assert [time for _, time, *_ in read(stamped)] == [7777, 7777, 7777]


def test_whose_time_counts_is_the_wrappers_to_say() -> None:
    inner = build_set(ROWS, 1, log_append_time=5)
    plain = wrap(inner, 1, Codec.GZIP, last_offset=2, timestamp=5)

    assert not [m for m in read_messages(memoryview(plain)) if m.attributes & LOG_APPEND_TIME]


@both
def test_lz4_header_checksums_are_wrong_in_format_0_and_right_in_1(magic: int) -> None:
    data = build_set(ROWS, magic, codec=Codec.LZ4)
    start = data.index(bytes.fromhex("04224d18"))

    assert data[start : start + 7].hex() == "04224d186040" + ("82" if magic else "1a")


def test_format_0_does_not_care_what_the_lz4_header_checksum_is() -> None:
    data = build_set(ROWS, 0, codec=Codec.LZ4)
    at = data.index(bytes.fromhex("04224d18")) + 6

    for octet in (0x82, 0x1A, 0x00):
        assert read(resealed(data, at, octet)) == as_read(ROWS, 0)


def test_format_1_does() -> None:
    data = build_set(ROWS, 1, codec=Codec.LZ4)
    at = data.index(bytes.fromhex("04224d18")) + 6

    with pytest.raises(CorruptCompression):
        read(resealed(data, at, 0x1A))


@pytest.mark.parametrize("content_size", [False, True])
def test_format_0_takes_lz4_frames_that_state_their_size(content_size: bool) -> None:
    import lz4.frame

    frame = bytearray(lz4.frame.compress(build_set(ROWS, 0), store_size=content_size))
    frame[14 if content_size else 6] ^= 0xFF
    wrapper = build_message(2, 0, -1, None, bytes(frame), attributes=Codec.LZ4)

    assert read(wrapper) == as_read(ROWS, 0)


@both
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_a_flipped_bit_anywhere_is_noticed(magic: int, codec: Codec) -> None:
    data = build_set(ROWS[:1], magic, codec=codec)

    for at in range(8, len(data)):
        for bit in (0, 7):
            damaged = bytearray(data)
            damaged[at] ^= 1 << bit
            with pytest.raises((CorruptBatch, InvalidRecords, UnknownCodec)):
                read(bytes(damaged))


@both
def test_every_cut_but_those_between_messages_is_refused(magic: int) -> None:
    data = build_set(ROWS, magic)
    whole = {len(build_set(ROWS[:n], magic)) for n in range(1, 4)}

    for size in range(1, len(data)):
        if size not in whole:
            with pytest.raises(CorruptBatch):
                read(data[:size])


@both
def test_an_inner_crc_counts(magic: int) -> None:
    inner = bytearray(build_set(ROWS, magic))
    inner[-1] ^= 1

    with pytest.raises(CorruptBatch, match="CRC"):
        read(wrap(inner, magic, Codec.GZIP, last_offset=2, timestamp=0))


@both
def test_an_inner_set_that_is_cut_off_is_refused(magic: int) -> None:
    inner = build_set(ROWS, magic)

    with pytest.raises(CorruptBatch, match="a compressed set"):
        read(wrap(inner[:-1], magic, Codec.GZIP, last_offset=2, timestamp=0))


@both
def test_wrappers_in_wrappers_are_refused(magic: int) -> None:
    once = build_set(ROWS, magic, codec=Codec.GZIP)

    with pytest.raises(InvalidRecords, match="a compressed message in a compressed set"):
        read(wrap(once, magic, Codec.GZIP, last_offset=2, timestamp=0))


@both
def test_a_wrapper_stands_alone(magic: int) -> None:
    wrapper = build_set(ROWS, magic, codec=Codec.GZIP)
    plain = build_set(ROWS, magic)

    with pytest.raises(InvalidRecords, match="more than its one wrapper"):
        read(wrapper + plain)
    with pytest.raises(InvalidRecords, match="more than its one wrapper"):
        read(wrapper + wrapper)
    with pytest.raises(InvalidRecords, match="a compressed message in the set"):
        read(plain + wrapper)


@both
def test_the_inner_format_is_the_wrappers(magic: int) -> None:
    inner = build_set(ROWS, 1 - magic)

    with pytest.raises(InvalidRecords, match="formats"):
        read(wrap(inner, magic, Codec.GZIP, last_offset=2, timestamp=0))


def test_formats_do_not_mix_in_a_set() -> None:
    with pytest.raises(InvalidRecords, match="formats 0 and 1 in one set"):
        read(build_set(ROWS, 0) + build_set(ROWS, 1))
    with pytest.raises(InvalidRecords, match="formats 1 and 2 in one set"):
        read(build_set(ROWS, 1) + build_batch([(1, None, b"v")]))


def test_formats_nobody_knows_are_damage() -> None:
    for octet in (3, 0x7F, 0xFF):
        with pytest.raises(CorruptBatch, match="format"):
            read(resealed(build_set(ROWS[:1], 0), 16, octet))
        with pytest.raises(CorruptBatch, match="format"):
            read(build_set(ROWS, 0) + resealed(build_set(ROWS[:1], 0), 16, octet))


@both
@pytest.mark.parametrize("codec", PACKED)
def test_an_empty_wrapper_is_invalid(magic: int, codec: Codec) -> None:
    with pytest.raises(InvalidRecords, match="without messages in it"):
        read(wrap(b"", magic, codec, last_offset=0, timestamp=0))


@both
def test_a_wrapper_without_a_value_is_invalid(magic: int) -> None:
    with pytest.raises(InvalidRecords, match="without a value"):
        read(build_message(0, magic, 5, None, None, attributes=Codec.GZIP))


@both
@pytest.mark.parametrize("bits", [4, 5, 6, 7])
def test_codecs_that_these_formats_lack_have_a_name_of_their_own(magic: int, bits: int) -> None:
    with pytest.raises(UnknownCodec):
        read(build_message(0, magic, 5, None, b"x", attributes=bits))


@both
@pytest.mark.parametrize("codec", PACKED)
def test_packed_bytes_that_do_not_unpack(magic: int, codec: Codec) -> None:
    data = build_set(ROWS, magic, codec=codec)
    half = build_message(2, magic, 5, None, data[-30:-10], attributes=codec)

    with pytest.raises((CorruptCompression, InvalidRecords, InflateLimit)):
        read(half)


@both
@pytest.mark.parametrize("codec", PACKED)
def test_unpacking_stops_at_the_limit(magic: int, codec: Codec) -> None:
    data = build_set([(0, 5, None, bytes(2_000_000))], magic, codec=codec)

    with pytest.raises(InflateLimit):
        read(data, limit_bytes=1_000_000)
    assert len(read(data, limit_bytes=3_000_000)) == 1


@both
@pytest.mark.parametrize("sizes", [(-2, 1), (100, 1), (1, -2), (1, 0), (1, 2), (0x7FFFFFFF, 1)])
def test_sizes_of_key_and_value_must_add_up(magic: int, sizes: tuple[int, int]) -> None:
    message = bytearray(build_message(0, magic, 5, b"k", b"v"))
    at = 26 if magic else 18
    message[at : at + 4] = sizes[0].to_bytes(4, "big", signed=True)
    message[at + 5 : at + 9] = sizes[1].to_bytes(4, "big", signed=True)

    with pytest.raises(InvalidRecords):
        read(resealed(bytes(message), at + 9, message[at + 9]))
