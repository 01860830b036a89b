"""What compaction leaves of one batch, to the byte."""

import struct
from collections.abc import Sequence
from typing import Any

import pytest

from protocol.records.batch import BatchHeader, crc_matches, read_header
from protocol.records.builder import NewRecord, build_batch
from protocol.records.compact import ENTRY_BYTES, KeyMap
from protocol.records.compression import Codec, InflateLimit
from protocol.records.record import Record, read_records
from protocol.records.scan import scan_batches
from storage.cleaner.batch_cleaner import BatchCleaner, CleanedBatch, LastOfProducer
from storage.cleaner.cleaned_transactions import CleanedTransactions
from storage.index.txn_index import AbortedTxn

NOW, KEEP = 1_700_000_000_000, 1000
ROWS: list[NewRecord] = [
    (50, b"a", b"1"),
    (20, b"b", b"2", [("h", None)]),
    (-1, b"c", b"3"),
    (70, b"a", b"4"),
]
ABORT, COMMIT = 0, 1


def cleaner(
    later: Sequence[bytes] = (),
    *,
    now: int = NOW,
    aborted: Sequence[AbortedTxn] = (),
    producers: dict[int, LastOfProducer] | None = None,
    limit: int = 1 << 20,
    mapped_before: int = 20_000,
) -> BatchCleaner:
    """One that knows later records of these keys."""
    keys = KeyMap(bytearray(ENTRY_BYTES * 100), 0.9, bytes(16))
    for key in later:
        keys.put(key, 10_000)
    transactions = CleanedTransactions(aborted)
    return BatchCleaner(keys, mapped_before, transactions, producers or {}, now, KEEP, limit)


def clean(batch: bytearray, by: BatchCleaner) -> tuple[CleanedBatch | None, bytes]:
    """What stays, and its bytes."""
    data = memoryview(bytes(batch))
    cleaned = by.clean(data, scan_batches(data).batches[0])
    if cleaned is None:
        return None, b""
    return cleaned, bytes(data if cleaned.data is None else cleaned.data)


def parts(data: bytes) -> tuple[BatchHeader, list[Record]]:
    header = read_header(data)
    assert crc_matches(memoryview(data), 0, header)
    return header, read_records(memoryview(data))


def marker(kind: int, offset: int, **batch: Any) -> bytearray:
    row = (NOW, struct.pack(">hh", 0, kind), struct.pack(">hi", 0, 3))
    return build_batch([row], base_offset=offset, control=True, transactional=True, **batch)


def test_a_batch_of_which_all_stays_is_not_touched() -> None:
    batch = build_batch(ROWS, base_offset=100, codec=Codec.LZ4)
    cleaned, data = clean(batch, cleaner())
    assert cleaned is not None
    assert cleaned.data is None
    assert data == batch


@pytest.mark.parametrize("codec", Codec)
def test_a_part_keeps_all_but_count_largest_time_and_length(codec: Codec) -> None:
    batch = build_batch(
        ROWS, base_offset=100, codec=codec, leader_epoch=4, producer_id=9, producer_epoch=2,
        base_sequence=77, transactional=True,
    )  # fmt: skip
    before = read_header(batch)
    header, records = parts(clean(batch, cleaner([b"a"]))[1])
    assert header == before._replace(
        crc=header.crc, length=header.length, record_count=2, max_timestamp=20
    )
    assert records == read_records(memoryview(batch))[1:3]


def test_the_broker_s_time_and_the_claimed_ones_stay() -> None:
    batch = build_batch(ROWS, base_offset=100, log_append_time=NOW)
    cleaned, data = clean(batch, cleaner([b"b"]))
    header, records = parts(data)
    assert (header.max_timestamp, header.base_timestamp) == (NOW, 50)
    assert {record.timestamp for record in records} == {NOW}
    assert cleaned is not None
    assert (cleaned.kept.min_timestamp, cleaned.kept.max_timestamp) == (50, 70)


def test_a_batch_without_a_record_left_is_gone() -> None:
    assert clean(build_batch(ROWS), cleaner([b"a", b"b", b"c"]))[0] is None


def test_the_last_batch_of_a_producer_stays_empty() -> None:
    batch = build_batch(
        ROWS, base_offset=100, codec=Codec.ZSTD, producer_id=9, producer_epoch=2, base_sequence=5
    )
    for last, stays in ((103, True), (102, False)):
        by = cleaner([b"a", b"b", b"c"], producers={9: LastOfProducer(last, 2)})
        cleaned, data = clean(batch, by)
        assert (cleaned is not None) == stays
        if stays:
            header, records = parts(data)
            assert records == []
            assert header[6:] == (3, -1, 70, 9, 2, 5, 0)
            assert header.attributes == 0
            assert clean(bytearray(data), by)[1] == data, "cleaned again it stays as it is"


def test_a_tombstone_gets_a_horizon_once_and_goes_when_that_has_passed() -> None:
    rows: list[NewRecord] = [
        (50, b"a", None),
        (2**40, b"b", b"2"),
        (-1, b"c", None),
        (3, b"d", b""),
    ]
    batch = build_batch(rows, base_offset=100, codec=Codec.GZIP, leader_epoch=3)
    first = cleaner()
    data = clean(batch, first)[1]
    header, records = parts(data)
    assert header.has_delete_horizon
    assert header.base_timestamp == NOW + KEEP == first.stats.next_horizon_ms
    assert header.leader_epoch == 3
    assert records == read_records(memoryview(batch))

    again = cleaner(now=NOW + KEEP - 1)
    assert clean(bytearray(data), again)[1] == data, "the horizon does not move"
    assert again.stats.next_horizon_ms == NOW + KEEP

    last = cleaner(now=NOW + KEEP)
    header, left = parts(clean(bytearray(data), last)[1])
    assert [record.key for record in left] == [b"b", b"d"]
    assert [record.timestamp for record in left] == [2**40, 3]
    assert header.has_delete_horizon
    assert last.stats.next_horizon_ms == -1


def test_a_tombstone_waits_from_the_run_on_that_has_mapped_its_key() -> None:
    """The map was full within the batch: what the tombstone deletes is still there then."""
    batch = build_batch([(NOW, b"a", None), (NOW, b"b", None)], base_offset=100)
    early = cleaner(mapped_before=101)
    assert clean(batch, early)[1] == batch
    assert early.stats.next_horizon_ms == -1
    late = cleaner(now=NOW + 5 * KEEP, mapped_before=102)
    _, data = clean(batch, late)
    assert parts(data)[0].base_timestamp == NOW + 6 * KEEP
    assert len(parts(data)[1]) == 2


@pytest.mark.parametrize("time", [-(2**63), 2**63 - 1])
def test_a_tombstone_stays_where_a_time_is_too_far_from_any_horizon(time: int) -> None:
    batch = build_batch([(time, b"a", None)], base_offset=100)
    _, data = clean(batch, cleaner())
    header, records = parts(data)
    assert records == read_records(memoryview(batch))
    assert header.has_delete_horizon == (time > 0)


def test_many_tombstones_in_one_batch() -> None:
    rows: list[NewRecord] = [(n * 7919 % 5000, b"%d" % n, None) for n in range(3000)]
    batch = build_batch(rows, base_offset=5)
    assert parts(clean(batch, cleaner())[1])[1] == read_records(memoryview(batch))


def test_aborted_data_goes_at_once_and_its_marker_when_it_is_alone() -> None:
    aborted = AbortedTxn(9, 100, 104, 105)
    data = build_batch(ROWS, base_offset=100, producer_id=9, producer_epoch=1, transactional=True)
    abort = marker(ABORT, 104, producer_id=9, producer_epoch=1)

    first = cleaner(aborted=[aborted])
    assert clean(data, first)[0] is None
    assert clean(abort, first)[1] == abort
    assert first.transactions.kept == [aborted]

    second = cleaner(aborted=[aborted])
    _, waiting = clean(abort, second)
    assert read_header(waiting).base_timestamp == NOW + KEEP == second.stats.next_horizon_ms
    assert parts(waiting)[1] == read_records(memoryview(abort))
    assert second.transactions.kept == []

    assert clean(bytearray(waiting), cleaner(now=NOW + KEEP - 1))[1] == waiting
    assert clean(bytearray(waiting), cleaner(now=NOW + KEEP))[0] is None
    last = cleaner(now=NOW + KEEP, producers={9: LastOfProducer(-1, 1)})
    header = read_header(clean(bytearray(waiting), last)[1])
    assert (header.record_count, header.is_control, header.has_delete_horizon) == (0, True, False)


def test_a_commit_marker_stays_with_its_data() -> None:
    data = build_batch(ROWS, base_offset=100, producer_id=9, producer_epoch=1, transactional=True)
    commit = marker(COMMIT, 104, producer_id=9, producer_epoch=1)
    with_data = cleaner([b"a", b"b", b"c"])
    assert clean(data, with_data)[0] is None
    assert clean(commit, with_data)[1] == commit
    _, waiting = clean(commit, cleaner())
    assert read_header(waiting).has_delete_horizon


def test_only_the_aborted_transaction_of_a_producer_is_dropped() -> None:
    by = cleaner(aborted=[AbortedTxn(9, 200, 204, 205)])
    early = build_batch(ROWS, base_offset=100, producer_id=9, producer_epoch=1, transactional=True)
    assert clean(early, by)[1] == early
    clean(marker(COMMIT, 104, producer_id=9, producer_epoch=1), by)
    late = build_batch(ROWS, base_offset=200, producer_id=9, producer_epoch=1, transactional=True)
    assert clean(late, by)[0] is None
    other = build_batch(ROWS, base_offset=300, producer_id=8, producer_epoch=1, transactional=True)
    assert clean(other, by)[1] == other
    clean(marker(ABORT, 204, producer_id=9, producer_epoch=1), by)
    after = build_batch(ROWS, base_offset=400, producer_id=9, producer_epoch=1, transactional=True)
    assert clean(after, by)[1] == after


def test_a_control_batch_of_another_kind_stays() -> None:
    odd = build_batch([(NOW, b"", b"")], base_offset=9, control=True)
    assert clean(odd, cleaner())[1] == odd


def test_records_that_unpack_to_too_much_are_refused() -> None:
    batch = build_batch([(1, bytes(100_000), b"")], codec=Codec.GZIP)
    with pytest.raises(InflateLimit):
        clean(batch, cleaner(limit=10_000))
