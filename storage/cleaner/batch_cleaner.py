"""Compaction of one batch: all of it stays, byte for byte; a part, built again; or nothing.

Offsets, sequences, producer, leader epoch, codec and the times of records never change; of a batch
of which a part stays, base and last offset stay too. A batch may lose all its records and stay
for its header: the last one of each producer, so that its sequence survives.

A tombstone, or a marker whose transaction has no data left, goes in two steps: the batch gets a
delete horizon, now + `delete.retention.ms`, and at a pass after the horizon the record goes. The
horizon takes the place of the base time in the header, so time deltas are rewritten; it never
moves. A batch that the map of keys does not cover whole gets it at a later pass: the values that
its tombstones delete may still be there. Rules: semantics.md 8.3, 8.4.
"""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from protocol.records.batch import (
    CODEC_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS,
    LOG_APPEND_TIME,
    NO_TIMESTAMP,
    seal,
)
from protocol.records.compact import Buffer, KeyMap, keep_records
from protocol.records.compression import Codec, codec_of, deflate, inflate
from protocol.records.kept import Kept
from protocol.records.rewrite import ALL, NO_TIMES, Rewriting, rewrite_records, room_for
from protocol.records.scan import BatchRow
from protocol.records.walk import Outline, check_records, outline_records
from storage.cleaner.cleaned_transactions import CleanedTransactions
from storage.timestamps import INT64_MAX, INT64_MIN

NO_HORIZON = -1
RECORDS_AT_A_TIME = 1024

_NO_MARKS = array("q", [0, 0])
_NOTHING = Kept(0, 0, -1, -1, 0, 0, 0)


class LastOfProducer(NamedTuple):
    """Last batch of a producer, which keeps its sequence, or a marker of its epoch."""

    last_offset: int
    epoch: int


@dataclass(slots=True)
class CleaningStats:
    """Statistics of one cleaning. Bytes are those of `.log` files."""

    records_read: int = 0
    records_kept: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    keyless_records: int = 0
    """Records without a key, from before the topic was compacted: they are dropped."""
    next_horizon_ms: int = NO_HORIZON
    """Time when the first tombstone or marker that stayed may go (ms); -1 if none stayed."""


class CleanedBatch(NamedTuple):
    """Result of cleaning a batch. `data` None: the batch as stored."""

    data: Buffer | None
    attributes: int
    base_timestamp: int
    max_timestamp: int
    kept: Kept


class BatchCleaner:
    """Judges the batches of a log in offset order."""

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        keys: KeyMap,
        mapped_before: int,
        transactions: CleanedTransactions,
        producers: Mapping[int, LastOfProducer],
        now_ms: int,
        delete_retention_ms: int,
        inflate_limit: int,
    ) -> None:
        """`keys` knows the last offset of every key from the first dirty record to before
        `mapped_before`.
        """
        self.stats = CleaningStats()
        self._keys = keys
        self._mapped_before = mapped_before
        self.transactions = transactions
        self._producers = producers
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, INT64_MAX)
        self._inflate_limit = inflate_limit
        self._room = bytearray()

    @property
    def room_bytes(self) -> int:
        """For what the largest batch unpacks to, and for what stays of it; from any thread."""
        return 2 * len(self._room)

    def clean(self, data: memoryview, row: BatchRow) -> CleanedBatch | None:
        """Cleans the batch at `row`; None if nothing of it stays. DecodeError if it is damaged."""
        begin, _, _, base_timestamp, max_timestamp, size, count, attributes = row[:8]
        batch = data[begin : begin + size]
        may_go = self.transactions.may_go(row, batch)
        horizon = base_timestamp if attributes & DELETE_HORIZON else NO_HORIZON
        is_due = horizon != NO_HORIZON and horizon <= self._now_ms
        records: Buffer = b""
        if not count or (may_go and (is_due or not attributes & CONTROL)):
            kept = _NOTHING
        elif attributes & CONTROL:
            records = batch[HEADER_BYTES:]
            kept = _all_of(records, row)
        else:
            records, kept = self._keep(batch, row, is_due)
        self._count(kept, count)
        if not kept.count:
            return empty_batch(row, max_timestamp) if self._is_last_of_producer(row) else None
        waits = bool(kept.tombstones) or (may_go and bool(attributes & CONTROL))
        if waits and horizon == NO_HORIZON and row[2] < self._mapped_before:
            rebased = self._with_horizon(row, records, kept)
            if rebased is not None:
                return rebased
        elif waits and horizon != NO_HORIZON:
            self._wait_for(horizon)
        if kept.count == count:
            return CleanedBatch(None, attributes, base_timestamp, max_timestamp, kept)
        return _rebuilt(row, records, kept, base_timestamp, attributes)

    def _keep(self, batch: memoryview, row: BatchRow, is_due: bool) -> tuple[Buffer, Kept]:
        codec = codec_of(row[7] & CODEC_MASK)
        payload = inflate(codec, batch[HEADER_BYTES:], limit_bytes=self._inflate_limit)
        if len(self._room) < len(payload):
            self._room = bytearray(len(payload))
        kept = keep_records(
            self._keys, payload, row[6], row[1], row[3], self._mapped_before, is_due, self._room
        )
        return memoryview(self._room)[: kept.size_bytes], kept

    def _with_horizon(self, row: BatchRow, records: Buffer, kept: Kept) -> CleanedBatch | None:
        """The batch with its delete horizon; None if a time in it is too far from that."""
        if kept.min_timestamp - self._horizon_ms < INT64_MIN:
            return None
        self._wait_for(self._horizon_ms)
        moved = with_base_time(records, kept.count, row[3], self._horizon_ms)
        return _rebuilt(row, moved, kept, self._horizon_ms, row[7] | DELETE_HORIZON)

    def _wait_for(self, horizon_ms: int) -> None:
        known = self.stats.next_horizon_ms
        self.stats.next_horizon_ms = horizon_ms if known < 0 else min(known, horizon_ms)

    def _is_last_of_producer(self, row: BatchRow) -> bool:
        last = self._producers.get(row[8])
        if last is None:
            return False
        if last.last_offset >= 0:
            return row[2] == last.last_offset
        return bool(row[7] & CONTROL) and row[9] == last.epoch

    def _count(self, kept: Kept, count: int) -> None:
        stats = self.stats
        stats.records_read += count
        stats.records_kept += kept.count
        stats.keyless_records += kept.keyless


def with_base_time(records: Buffer, count: int, base_timestamp: int, new_base: int) -> bytearray:
    """The records with their times counted from another base; sound records only."""
    outline = array("q", bytes(8 * len(Outline._fields) * min(count, RECORDS_AT_A_TIME)))
    verdicts = bytes(min(count, RECORDS_AT_A_TIME))
    times = array("q", NO_TIMES)
    rewriting = Rewriting(
        ALL, new_base, INT64_MIN, INT64_MAX, b"", _NO_MARKS, 0, b"", b"", 0, renumbers=False
    )
    moved, at, to, written = bytearray(), 0, 0, 0
    while written < count:
        first, size = written, min(count - written, RECORDS_AT_A_TIME)
        at = outline_records(records, at, first, size, base_timestamp, outline)
        del moved[to:]
        moved += bytes(room_for(outline, size, verdicts, rewriting))
        to, written = rewrite_records(
            records, outline, first, size, verdicts, rewriting, written, moved, to, times
        )
    del moved[to:]
    return moved


def empty_batch(row: BatchRow, max_timestamp: int = NO_TIMESTAMP) -> CleanedBatch:
    """The header of a batch that lost all its records: its offsets and its producer's place."""
    attributes = row[7] & ~(CODEC_MASK | DELETE_HORIZON)
    return _packed(row, b"", 0, NO_TIMESTAMP, max_timestamp, attributes, _NOTHING)


def _all_of(records: Buffer, row: BatchRow) -> Kept:
    facts = check_records(records, row[6], row[3], INT64_MIN, INT64_MAX)
    return Kept(row[6], len(records), facts.min_timestamp, facts.max_timestamp, facts.untimed, 0, 0)


def _rebuilt(
    row: BatchRow, records: Buffer, kept: Kept, base_timestamp: int, attributes: int
) -> CleanedBatch:
    """A batch of these records, packed as the old one; its largest time is theirs."""
    codec = codec_of(attributes & CODEC_MASK)
    body = records if codec is Codec.NONE else deflate(codec, records)
    largest = row[4] if attributes & LOG_APPEND_TIME else kept.max_timestamp
    return _packed(row, body, kept.count, base_timestamp, largest, attributes, kept)


def _packed(  # noqa: PLR0917 - private, called by position
    row: BatchRow,
    body: Buffer,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    kept: Kept,
) -> CleanedBatch:
    size = HEADER_BYTES + len(body)
    batch = bytearray(size)
    HEADER.pack_into(
        batch, 0, row[1], size - LENGTH_ENDS, row[11], 2, 0, attributes, row[2] - row[1],
        base_timestamp, max_timestamp, row[8], row[9], row[10], count,
    )  # fmt: skip
    batch[HEADER_BYTES:] = body
    seal(batch, 0, size)
    return CleanedBatch(batch, attributes, base_timestamp, max_timestamp, kept)
