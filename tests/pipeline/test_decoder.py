"""Both decoders give what reading record by record gives, for every codec, time type and bound."""

from types import ModuleType

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.decode import compiled
from pipeline.decode import numpy_decoder as lockstep
from pipeline.decode.decoder import EVERYTHING, BatchOrigin, Selection, decode
from pipeline.decode.schemas import ALL_COLUMNS, RECORDS, records_schema
from pipeline.errors import DamagedLog
from protocol.records.batch import iter_headers, stamp_log_append_time
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.record import read_records
from storage.index.txn_index import AbortedTxn

ENGINES = (compiled, lockstep)
ORIGIN = BatchOrigin("topic", 3, 0, 100)
TIMES = st.integers(-2, 60) | st.integers(-(2**60), 2**60)
FIELDS = st.none() | st.binary(max_size=80)
NAMES = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
HEADERS = st.lists(st.tuples(NAMES, FIELDS), max_size=3)
ROWS = st.lists(st.tuples(TIMES, FIELDS, FIELDS, HEADERS), min_size=1, max_size=6)


@st.composite
def logs(draw: st.DrawFn) -> bytes:
    """Batches in a row, as a partition has them: with holes, stamped or not, some of markers."""
    data, offset = bytearray(), draw(st.integers(0, 2**62))
    for _ in range(draw(st.integers(0, 5))):
        rows = draw(ROWS)
        deltas = sorted(draw(st.sets(st.integers(0, 300), min_size=len(rows), max_size=len(rows))))
        batch = build_batch(
            rows,
            base_offset=offset,
            codec=draw(st.sampled_from(Codec)),
            producer_id=draw(st.integers(-1, 2)),
            producer_epoch=draw(st.integers(-1, 3)),
            base_sequence=draw(st.sampled_from([-1, 0, 2**31 - 2])),
            transactional=draw(st.booleans()),
            control=draw(st.integers(0, 4)) == 0,
            offset_deltas=deltas,
        )
        if draw(st.booleans()):
            stamp_log_append_time(batch, 0, len(batch), draw(TIMES))
        data += batch
        offset += 301 + draw(st.integers(0, 5))
    return bytes(data)


def selections() -> st.SearchStrategy[Selection]:
    offsets = st.integers(-1, 600) | st.integers(0, 2**62)
    return st.just(EVERYTHING) | st.builds(
        Selection, offsets, offsets, TIMES, TIMES, st.sampled_from([(), (ABORTED,)])
    )


ABORTED = AbortedTxn(1, 0, 2**62, 2**62)


def wanted(data: bytes, selection: Selection) -> list[dict[str, object]]:
    """What the reference reader finds, and the plain meaning of a selection."""
    rows: list[dict[str, object]] = []
    for position, header in iter_headers(memoryview(data)):
        is_aborted = any(
            header.is_transactional
            and header.producer_id == each.producer_id
            and each.first_offset <= header.base_offset
            and header.last_offset <= each.last_offset
            for each in selection.aborted
        )
        if header.is_control or is_aborted:
            continue
        rows += (
            {
                "key": record.key,
                "value": record.value,
                "offset": record.offset,
                "timestampMs": record.timestamp,
                "timestampType": int(header.is_log_append_time),
                "headers": [{"key": k, "value": v} for k, v in record.headers] or None,
                "producerId": header.producer_id,
                "batchBaseOffset": header.base_offset,
                "codec": header.codec.name.lower(),
                "position": 100 + position,
            }
            for record in read_records(memoryview(data)[position:])
            if selection.first_offset <= record.offset <= selection.last_offset
            and selection.low_ms <= record.timestamp <= selection.high_ms
        )
    return rows


def decoded(engine: ModuleType, data: bytes, schema: pa.Schema, selection: Selection) -> pa.Table:
    batches = list(decode(data, ORIGIN, schema, selection, engine=engine))
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema)


@given(logs(), selections())
def test_both_decoders_give_what_reading_one_by_one_gives(data: bytes, which: Selection) -> None:
    expected = wanted(data, which)
    for engine in ENGINES:
        table = decoded(engine, data, ALL_COLUMNS, which).drop_columns(["timestamp", "createTime"])
        found = table.drop_columns(["appendTime"]).to_pylist()
        assert [{name: row[name] for name in expected[0]} for row in found] == expected or (
            not expected and not found
        )


@given(logs(), selections())
def test_both_decoders_agree_in_every_column(data: bytes, selection: Selection) -> None:
    one, other = (decoded(engine, data, ALL_COLUMNS, selection) for engine in ENGINES)

    assert one.equals(other)


@given(logs(), st.sets(st.sampled_from(ALL_COLUMNS.names), min_size=1))
def test_fewer_columns_are_the_same_columns(data: bytes, names: set[str]) -> None:
    narrow = pa.schema([field for field in ALL_COLUMNS if field.name in names])
    for engine in ENGINES:
        whole = decoded(engine, data, ALL_COLUMNS, EVERYTHING)
        assert decoded(engine, data, narrow, EVERYTHING).equals(whole.select(narrow.names))


@given(logs(), st.data())
def test_damage_is_told_and_nothing_else_happens(data: bytes, draw: st.DataObject) -> None:
    octets = bytearray(data)
    if octets:
        octets[draw.draw(st.integers(0, len(octets) - 1))] ^= draw.draw(st.integers(1, 255))
    cut = bytes(octets[: draw.draw(st.integers(0, len(octets)))])
    told = [refusal(engine, cut) for engine in ENGINES]

    assert all(text.startswith("topic-3, segment 0") for text in told if text)
    assert bool(told[0]) == bool(told[1])


def refusal(engine: ModuleType, data: bytes) -> str:
    """The text of the only error that may come, or nothing."""
    try:
        list(decode(data, ORIGIN, ALL_COLUMNS, engine=engine))
    except DamagedLog as error:
        return str(error)
    return ""


def test_a_stamped_batch_gives_both_times() -> None:
    batch = build_batch([(1000, b"k", b"v"), (1007, None, None)], log_append_time=5000)
    for engine in ENGINES:
        table = decoded(engine, bytes(batch), records_schema(metadata=True), EVERYTHING)
        assert table["timestampMs"].to_pylist() == [5000, 5000]
        assert table["timestampType"].to_pylist() == [1, 1]
        assert table["createTimeMs"].to_pylist() == [1000, 1007]
        assert table["appendTimeBound"].to_pylist() == ["exact", "exact"]
        assert [each.timestamp() for each in table["appendTime"].to_pylist()] == [5.0, 5.0]


def test_times_beyond_microseconds_become_the_nearest_and_stay_exact_in_milliseconds() -> None:
    batch = build_batch([(2**63 - 1, b"k", b"v")])
    table = decoded(compiled, bytes(batch), records_schema(metadata=True), EVERYTHING)

    assert table["timestampMs"].to_pylist() == [2**63 - 1]
    assert table["timestamp"].cast(pa.int64()).to_pylist() == [(2**63 - 1) // 1000 * 1000]


def test_what_unpacks_to_more_than_the_limit_is_refused_by_name() -> None:
    batch = build_batch([(1, b"k", bytes(100_000))], codec=Codec.ZSTD, base_offset=7)

    with pytest.raises(DamagedLog, match=r"batch at offset 7, byte 100: .* more than 5000 bytes"):
        list(decode(bytes(batch), ORIGIN, RECORDS, limit_bytes=5000))
