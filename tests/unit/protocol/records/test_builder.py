"""Batches made and read back, by us and by two independent implementations."""

import datetime as dt
import io
import warnings
from collections.abc import Iterable

import pytest
from kio.records import schema as kio_schema
from kio.records.readers import read_batch
from kio.records.writers import write_batch
from kio.static.primitive import TZAwareMicros, i8, i16, i32, i64

from protocol.errors import DecodeError
from protocol.records.batch import CorruptBatch, InvalidRecords, crc_matches, read_header
from protocol.records.builder import build_batch, recompress
from protocol.records.compression import Codec, InflateLimit
from protocol.records.record import Record, read_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # its own, while it is imported
    from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

ROWS = [
    (1_700_000_000_000, b"key", b"value" * 100, (("a", b"1"), ("ключ", None), ("", b""))),
    (1_700_000_001_000, None, b"", ()),
    (1_700_000_000_500, b"", None, ()),
    (1_700_000_009_000, b"k" * 300, b"v" * 70_000, ()),
]
RECORDS = [
    Record(100 + at, time, key, value, headers)
    for at, (time, key, value, headers) in enumerate(ROWS)
]


@pytest.mark.parametrize("codec", Codec)
def test_what_is_built_reads_back(codec: Codec) -> None:
    batch = memoryview(build_batch(ROWS, base_offset=100, codec=codec))

    assert crc_matches(batch, 0, read_header(batch))
    assert read_records(batch) == RECORDS


@pytest.mark.parametrize("codec", Codec)
def test_kafka_python_reads_what_we_build(codec: Codec) -> None:
    theirs = DefaultRecordBatch(bytes(build_batch(ROWS, base_offset=100, codec=codec)))

    assert theirs.validate_crc()
    read = [
        Record(r.offset, r.timestamp, r.key, r.value, tuple((k, v) for k, v in r.headers))
        for r in theirs
    ]
    assert read == RECORDS


@pytest.mark.parametrize("codec", Codec)
def test_we_read_what_kafka_python_builds(codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(2, int(codec), 0, 5, 6, 7, 1 << 20)
    for at, (time, key, value, headers) in enumerate(ROWS):
        builder.append(at, time, key, value, list(headers))
    batch = memoryview(bytearray(builder.build()))

    header = read_header(batch)
    assert header.codec is codec
    assert crc_matches(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, 7)
    assert [r[1:] for r in read_records(batch)] == [r[1:] for r in RECORDS]


def test_kio_reads_what_we_build() -> None:
    batch = build_batch(ROWS, base_offset=100, leader_epoch=3, producer_id=9)

    theirs, size = read_batch(bytes(batch), 0)

    assert size == len(batch)
    assert (theirs.base_offset, theirs.partition_leader_epoch, theirs.producer_id) == (100, 3, 9)
    assert [r.value for r in theirs.records] == [row[2] for row in ROWS]
    assert [h.key for h in theirs.records[0].headers] == [b"a", "ключ".encode(), b""]


def test_we_read_what_kio_builds() -> None:
    time = TZAwareMicros.parse(dt.datetime.fromtimestamp(1_700_000_000, dt.UTC))
    records = tuple(
        kio_schema.Record(
            attributes=i8(0), timestamp=time, offset=i64(at), key=b"k", value=b"v%d" % at,
            headers=(kio_schema.RecordHeader(key=b"h", value=None),),
        )
        for at in range(3)
    )  # fmt: skip
    out = io.BytesIO()
    write_batch(
        out,
        kio_schema.NewRecordBatch(
            producer_id=i64(-1), producer_epoch=i16(-1), partition_leader_epoch=i32(-1),
            base_sequence=i32(-1), attributes=i16(0), records=records,
        ),
    )  # fmt: skip
    batch = memoryview(out.getvalue())

    assert crc_matches(batch, 0, read_header(batch))
    assert read_records(batch) == [
        Record(at, 1_700_000_000_000, b"k", b"v%d" % at, (("h", None),)) for at in range(3)
    ]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("target", Codec)
def test_packing_anew_keeps_all_but_the_codec(codec: Codec, target: Codec) -> None:
    batch = build_batch(
        ROWS, base_offset=100, codec=codec, transactional=True, producer_id=5, producer_epoch=1,
        base_sequence=8, log_append_time=99, leader_epoch=4,
    )  # fmt: skip

    packed = memoryview(recompress(memoryview(batch), target))

    before, after = read_header(batch), read_header(packed)
    assert after.codec is target
    assert after == before._replace(
        length=after.length, crc=after.crc, attributes=before.attributes & ~7 | target
    )
    assert crc_matches(packed, 0, after)
    assert read_records(packed) == read_records(memoryview(batch))


def test_packing_anew_is_bounded() -> None:
    batch = build_batch([(1, None, bytes(100_000))], codec=Codec.GZIP)

    with pytest.raises(InflateLimit, match="9999"):
        recompress(memoryview(batch), Codec.LZ4, limit_bytes=9999)


def test_a_stamped_batch_gives_every_record_the_stamp() -> None:
    batch = build_batch(ROWS, log_append_time=123)

    assert {record.timestamp for record in read_records(memoryview(batch))} == {123}


@pytest.mark.parametrize(
    ("times", "largest"),
    [([-1, -1], -1), ([-1, 5], 5), ([5, -1], 5), ([0, 2**63 - 1], 2**63 - 1), ([2**62, 0], 2**62)],
)
def test_times_survive_to_the_edges(times: list[int], largest: int) -> None:
    batch = memoryview(build_batch([(time, None, b"") for time in times]))

    assert [record.timestamp for record in read_records(batch)] == times
    assert read_header(batch).max_timestamp == largest


def test_offsets_may_have_gaps_as_after_compaction() -> None:
    rows = [(1, b"k", b"v")] * 3
    batch = memoryview(build_batch(rows, base_offset=10, offset_deltas=[0, 4, 9]))

    assert [record.offset for record in read_records(batch)] == [10, 14, 19]
    assert read_header(batch).last_offset == 19


@pytest.mark.parametrize("count", [0, 3, 5, 2**31 - 1, -1])
def test_a_count_that_lies_is_refused(count: int) -> None:
    batch = build_batch(ROWS)
    batch[57:61] = (count & 0xFFFF_FFFF).to_bytes(4, "big")

    with pytest.raises(InvalidRecords):
        read_records(memoryview(batch))


def test_every_truncation_is_refused() -> None:
    batch = memoryview(build_batch(ROWS[:3], codec=Codec.LZ4))

    for size in range(len(batch)):
        with pytest.raises(DecodeError):
            read_records(batch[:size])


def test_header_keys_that_are_not_text_survive() -> None:
    batch = build_batch([(1, None, None, (("\udcff", b"x"),))])
    packed = recompress(memoryview(batch), Codec.NONE)

    assert read_records(memoryview(packed))[0].headers == (("\udcff", b"x"),)


def test_rows_may_come_from_a_generator() -> None:
    rows: Iterable[tuple[int, bytes, bytes]] = ((at, b"k", b"v") for at in range(5))

    assert read_header(build_batch(rows)).record_count == 5


def test_a_base_offset_without_room_for_its_records_is_refused() -> None:
    batch = build_batch(ROWS, base_offset=2**63 - 2)

    with pytest.raises(CorruptBatch, match="room"):
        read_records(memoryview(batch))
