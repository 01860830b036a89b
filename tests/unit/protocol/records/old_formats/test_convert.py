"""Old sets become batches and batches old sets; kafka-python's own code is the second opinion."""

import warnings
from collections.abc import Iterator

import pytest

from protocol.records.batch import (
    CorruptBatch,
    InvalidRecords,
    crc_matches,
    read_header,
)
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, InflateLimit, UnknownCodec
from protocol.records.old_formats.convert import Converted, down_convert, up_convert
from protocol.records.old_formats.legacy import read_messages
from protocol.records.old_formats.legacy_builder import Row, build_message, build_set
from protocol.records.record import Record, read_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.legacy_records import LegacyRecordBatch, LegacyRecordBatchBuilder

OLD_CODECS = [Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4]
PACKED = OLD_CODECS[1:]
ROWS: list[Row] = [
    (0, 1000, b"k", b"first" * 100),
    (1, 900, None, b""),
    (2, 1100, b"", None),
    (3, -1, b"key" * 50, bytes(range(256))),
]
both = pytest.mark.parametrize("magic", [0, 1])
with_codecs = pytest.mark.parametrize("codec", OLD_CODECS)


def up(data: bytes, **how: int) -> list[Record]:
    batch = memoryview(up_convert(memoryview(data), **how))
    assert crc_matches(batch, 0, read_header(batch))
    return read_records(batch)


def down(
    batch: bytes | bytearray, magic: int, from_offset: int = 0, room: int = 1 << 30
) -> Converted:
    view = memoryview(batch)
    return down_convert(view, read_header(view), magic, from_offset=from_offset, room=room)


def rows_of(data: bytes | bytearray) -> list[Row]:
    return [
        (m.offset, m.timestamp, None if m.key is None else bytes(m.key),
         None if m.value is None else bytes(m.value))
        for m in read_messages(memoryview(data))
    ]  # fmt: skip


def batch_of(rows: list[Row], **how: object) -> bytearray:
    base = rows[0][0]
    return build_batch(
        [row[1:] for row in rows],
        base_offset=base,
        offset_deltas=[row[0] - base for row in rows],
        **how,
    )


def kafka_pythons_set(rows: list[Row], magic: int, codec: Codec) -> bytes:
    builder = LegacyRecordBatchBuilder(magic=magic, compression_type=int(codec), batch_size=1 << 30)
    for offset, timestamp, key, value in rows:
        builder.append(offset, timestamp, key, value)
    return bytes(builder.build())


def as_kafka_python_reads(data: bytes | bytearray) -> Iterator[Row]:
    position = 0
    while position < len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        batch = LegacyRecordBatch(bytes(data[position : position + size]), data[position + 16])
        assert batch.validate_crc()
        for record in batch:
            assert record.validate_crc()
            timestamp = -1 if record.timestamp is None else record.timestamp
            yield record.offset, timestamp, record.key, record.value
        position += size


def at_version(rows: list[Row], magic: int) -> list[Row]:
    return [(offset, time if magic else -1, key, value) for offset, time, key, value in rows]


@both
@with_codecs
def test_what_kafka_python_sends_becomes_a_batch(magic: int, codec: Codec) -> None:
    data = kafka_pythons_set(ROWS, magic, codec)

    batch = up_convert(memoryview(data))

    assert read_records(memoryview(batch)) == [Record(*row) for row in at_version(ROWS, magic)]
    assert read_header(batch).codec is codec


@both
@with_codecs
def test_a_batch_becomes_what_kafka_python_reads(magic: int, codec: Codec) -> None:
    rows = [(70 + offset, *rest) for offset, *rest in ROWS]

    converted = down(batch_of(rows, codec=codec), magic)

    assert converted.is_whole
    assert list(as_kafka_python_reads(converted.messages)) == at_version(rows, magic)


@both
def test_an_uncompressed_set_is_what_kafka_python_would_write(magic: int) -> None:
    timed = [row for row in ROWS if row[1] >= 0]

    converted = down(batch_of(timed), magic)

    assert converted.messages == kafka_pythons_set(timed, magic, Codec.NONE)


@both
@with_codecs
def test_there_and_back_again(magic: int, codec: Codec) -> None:
    data = build_set(ROWS, magic, codec=codec)

    assert rows_of(down(up_convert(memoryview(data)), magic).messages) == at_version(ROWS, magic)


@with_codecs
def test_the_batch_of_an_old_set_is_like_a_producers(codec: Codec) -> None:
    sent = batch_of(ROWS, codec=codec)

    assert up_convert(memoryview(build_set(ROWS, 1, codec=codec))) == sent


def test_offsets_start_at_0_whatever_was_sent() -> None:
    odd = build_set([(17, 5, None, b"a"), (17, 6, None, b"b"), (3, 7, None, b"c")], 1)

    assert [record.offset for record in up(odd)] == [0, 1, 2]


def test_format_0_has_no_times_and_1970_is_not_invented() -> None:
    header = read_header(up_convert(memoryview(build_set(ROWS, 0))))

    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_claim_of_log_append_time_is_handed_on_for_the_checks(codec: Codec) -> None:
    header = read_header(
        up_convert(memoryview(build_set(ROWS, 1, codec=codec, log_append_time=5000)))
    )

    assert header.is_log_append_time
    assert header.max_timestamp == 5000


def test_format_0_can_make_no_such_claim() -> None:
    message = build_message(0, 0, -1, None, b"v", attributes=8)

    assert not read_header(up_convert(memoryview(message))).is_log_append_time


def test_times_at_both_ends_of_64_bits() -> None:
    low, high = -(1 << 63), (1 << 63) - 1

    assert [r.timestamp for r in up(build_set([(0, low, None, b""), (1, low, None, b"")], 1))] == [
        low,
        low,
    ]
    assert [r.timestamp for r in up(build_set([(0, high, None, b""), (1, 0, None, b"")], 1))] == [
        high,
        0,
    ]
    with pytest.raises(InvalidRecords, match="2\\^63 ms apart"):
        up(build_set([(0, low, None, b""), (1, high, None, b"")], 1))


@both
def test_unpacking_is_bounded_both_ways(magic: int) -> None:
    rows: list[Row] = [(0, 5, None, bytes(2_000_000))]
    old, batch = build_set(rows, magic, codec=Codec.GZIP), batch_of(rows, codec=Codec.GZIP)

    with pytest.raises(InflateLimit):
        up(old, limit_bytes=1_000_000)
    with pytest.raises(InflateLimit):
        down_convert(
            memoryview(batch), read_header(batch), magic, from_offset=0, room=1, limit_bytes=999
        )


@both
def test_headers_and_producers_are_left_behind(magic: int) -> None:
    rich = build_batch(
        [(1000, b"k", b"v", [("name", b"content"), ("null", None)]), (1001, None, b"w")],
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
    )

    assert down(rich, magic).messages == build_set(
        [(0, 1000, b"k", b"v"), (1, 1001, None, b"w")], magic
    )


@both
def test_markers_of_transactions_are_left_out(magic: int) -> None:
    marker = build_batch([(5, b"\0\0\0\1", b"\0\0\0\0\0\0")], control=True, transactional=True)

    assert down(marker, magic) == (b"", True, 0)


@both
def test_zstd_has_no_old_form(magic: int) -> None:
    with pytest.raises(UnknownCodec, match=f"record format {magic} has no codec zstd"):
        down(batch_of(ROWS, codec=Codec.ZSTD), magic)


@both
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_a_batch_that_compaction_emptied_gives_nothing(magic: int, codec: Codec) -> None:
    assert down(build_batch([], codec=codec), magic)[:2] == (b"", True)


@both
def test_records_before_the_wanted_offset_stay_away_when_uncompressed(magic: int) -> None:
    assert [row[0] for row in rows_of(down(batch_of(ROWS), magic, from_offset=2).messages)] == [
        2,
        3,
    ]


@both
@pytest.mark.parametrize("codec", PACKED)
def test_a_wrapper_holds_them_all_the_same(magic: int, codec: Codec) -> None:
    converted = down(batch_of(ROWS, codec=codec), magic, from_offset=2, room=1)

    assert [row[0] for row in rows_of(converted.messages)] == [0, 1, 2, 3]
    assert converted.is_whole


@both
def test_whole_messages_while_there_is_room_and_one_at_least(magic: int) -> None:
    sizes = [len(build_set(ROWS[:count], magic)) for count in range(1, 5)]

    for room in range(sizes[-1] + 2):
        converted = down(batch_of(ROWS), magic, room=room)
        fitting = max(1, sum(size <= room for size in sizes))
        assert converted[:2] == (build_set(ROWS[:fitting], magic), fitting == 4)


@both
@pytest.mark.parametrize("codec", OLD_CODECS)
def test_gaps_that_compaction_left_stay(magic: int, codec: Codec) -> None:
    rows: list[Row] = [(70, 5, None, b"a"), (75, 6, None, b"b"), (79, 4, None, b"c")]

    converted = down(batch_of(rows, codec=codec), magic)

    assert list(as_kafka_python_reads(converted.messages)) == at_version(rows, magic)


@with_codecs
def test_broker_time_is_told_by_every_message_of_format_1(codec: Codec) -> None:
    stamped = batch_of(ROWS, codec=codec, log_append_time=5000)

    messages = down(stamped, 1).messages

    assert messages == build_set(ROWS, 1, codec=codec, log_append_time=5000)
    assert {row[1] for row in as_kafka_python_reads(messages)} == {5000}


@pytest.mark.parametrize("codec", PACKED)
def test_a_wrapper_has_the_largest_time_and_the_last_offset(codec: Codec) -> None:
    messages = down(batch_of(ROWS, codec=codec), 1).messages

    assert int.from_bytes(messages[18:26], "big") == 1100
    assert int.from_bytes(messages[:8], "big") == 3


@both
def test_offsets_that_leave_64_bits_are_damage(magic: int) -> None:
    with pytest.raises(CorruptBatch, match="no room"):
        down(build_batch([(1, None, b"")], base_offset=(1 << 63) - 1), magic)
