"""Compaction of generated logs against a model of ten lines, over restarts and power cuts.

Keys, tombstones, transactions, dirty times, codecs, full maps: after each run the log holds what
the model holds, at the same offsets, whatever happened on the way. HOROLOG_CLEANING_LOGS (2000) is
the number of logs.
"""

import os
import random

import pytest

from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.env import Env
from storage.index.txn_index import AbortedTxn
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.records.cleaning import COMPACT, verdict
from tests.support.records.keyed_logs import NOW, KeyedLog, Row, keyed_log
from tests.support.records.logs import LOG_PATH, UNCLEAN, open_log, records_of, reopened

LOGS = int(os.environ.get("HOROLOG_CLEANING_LOGS", "2000"))
BLOCKS = 8
KEEP = 1000


class Model:
    """What a compacted log holds."""

    def __init__(self, made: KeyedLog) -> None:
        self.rows = list(made.rows)
        self.horizons: dict[int, int] = {}  # by batch
        self.ends = {row.batch: row.offset for row in sorted(made.rows, key=lambda row: row.offset)}

    def clean(self, first_dirty: int, mapped_before: int, now_ms: int) -> None:
        """One run that mapped the keys from `first_dirty` to before `mapped_before`."""
        last = {
            row.key: row.offset
            for row in self.rows
            if first_dirty <= row.offset < mapped_before and not row.is_aborted
        }

        def stays(row: Row) -> bool:
            if row.is_aborted or row.offset >= mapped_before:
                return not (row.is_aborted and row.segment < mapped_before)
            is_due = row.value is None and self.horizons.get(row.batch, now_ms + 1) <= now_ms
            return row.key is not None and last.get(row.key, -1) <= row.offset and not is_due

        self.rows = [row for row in self.rows if stays(row)]
        for row in self.rows:
            if row.value is None and self.ends[row.batch] < mapped_before:
                self.horizons.setdefault(row.batch, now_ms + KEEP)


class Life:
    """One log, from its making through some runs."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = random.Random(seed)
        self.clock = SimClock(NOW)
        self.env = sim_env(seed, clock=self.clock)
        self.made = keyed_log(seed, self.env, LOG_PATH)
        self.model = Model(self.made)
        self.settings = {
            "cleanup_policy": COMPACT,
            "delete_retention_ms": KEEP,
            "segment_bytes": self.dice.choice((1, 700, 1 << 20)),
            "index_interval_bytes": 100,
        }
        self.log = open_log(self.env, UNCLEAN, **self.settings)
        self.offsets = CleanerOffsets(self.env.fs, "/data")

    def run(self) -> None:
        self.log.roll()
        self.log.mark_durable(self.log.sync())
        for _ in range(self.dice.randint(1, 3)):
            self.clean()
            self.compare()
            self.clock.advance(self.dice.choice((0, KEEP - 1, KEEP)))
            if self.dice.random() < 0.3:
                self.log = reopened(self.log, self.env)
                self.compare()

    def clean(self) -> None:
        """A run; perhaps the power goes on the way, and it is done again."""
        if self.dice.random() < 0.3:
            self.crash()
        found = verdict(self.log, self.env, self.offsets)
        run = self.begin()
        for part in run.slices():
            if part.in_turn is not None:
                part.in_turn()
        self.offsets.cleaned(self.log, run.first_dirty, run.stats.next_horizon_ms)
        self.model.clean(found.first_dirty, run.first_dirty, self.clock.now_ms())

    def begin(self) -> Cleaning:
        memory = CleaningMemory(
            24 * self.dice.choice((3, 64, 64, 64)), 0.9, self.dice.choice((80, 300, 1 << 16))
        )
        return Cleaning(self.log, verdict(self.log, self.env, self.offsets), memory, self.env)

    def crash(self) -> None:
        """The power goes at some call of a run; everything that counts is there afterwards."""
        disk = self.env.fs
        assert isinstance(disk, SimFileSystem)
        before = {record.offset for record in data_of(self.log)}
        found = verdict(self.log, self.env, self.offsets)
        disk.crash_at = disk.calls + self.dice.randint(1, 40)
        run = self.begin()
        try:
            for part in run.slices():
                if part.in_turn is not None:
                    part.in_turn()
        except SimulatedCrash:
            pass
        disk.crash_at = None
        self.env = Env(self.clock, disk.after_crash(self.dice.getrandbits(30)), SeededRng(1))
        self.log = open_log(self.env, UNCLEAN, **self.settings)
        self.offsets = CleanerOffsets(self.env.fs, "/data")
        self.offsets.first_dirty = {("t", 0): found.first_dirty}
        held = {record.offset for record in data_of(self.log)}
        after = Model(self.made)
        after.rows, after.horizons = list(self.model.rows), dict(self.model.horizons)
        after.clean(found.first_dirty, run.first_dirty, self.clock.now_ms())
        assert {row.offset for row in after.rows} <= held <= before, self.seed
        self.settle(held)

    def settle(self, held: set[int]) -> None:
        """Groups that had been replaced stay so: the model follows the disk within its bounds."""
        for row in self.model.rows:
            if row.value is None and row.offset in held:
                batch = _batch_of(self.log, row.batch)
                if batch is not None and batch >= 0:
                    self.model.horizons.setdefault(row.batch, batch)
        self.model.rows = [row for row in self.model.rows if row.offset in held]

    def compare(self) -> None:
        found = [(r.offset, r.key, r.value, r.timestamp) for r in data_of(self.log)]
        want = [(r.offset, r.key, r.value, r.timestamp) for r in self.model.rows]
        assert found == want, self.seed
        self.check_transactions({row.offset for row in self.model.rows})

    def check_transactions(self, held: set[int]) -> None:
        """A marker is there while data of its transaction is; what it aborts is in the index."""
        markers = {record.offset for record in records_of(self.log)} - held
        end = self.log.snapshot.log_end_offset
        aborted = self.log.search.aborted(0, end)
        for offset, (producer, first) in self.made.markers.items():
            rows = [
                r for r in self.made.rows if r.producer == producer and first <= r.offset < offset
            ]
            if any(row.offset in held for row in rows):
                assert offset in markers, self.seed
                if rows[0].is_aborted:
                    assert any(_covers(each, producer, offset) for each in aborted), self.seed


def _covers(aborted: AbortedTxn, producer: int, marker: int) -> bool:
    return aborted.producer_id == producer and aborted.last_offset == marker


def data_of(log: Log):  # type: ignore[no-untyped-def]
    """Records of producers, without markers."""
    return [record for record in records_of(log) if not _is_marker(record)]


def _is_marker(record) -> bool:  # type: ignore[no-untyped-def]
    return record.key is not None and record.key[:2] == b"\0\0"


def _batch_of(log: Log, base: int) -> int | None:
    """The delete horizon of a batch, -1 without one; None if it is gone."""
    from protocol.records.batch import iter_headers

    for segment in log.snapshot.segments:
        data = segment.file().read_at(0, segment.size_bytes)
        for _, header in iter_headers(data):
            if header.base_offset == base:
                return header.base_timestamp if header.has_delete_horizon else -1
    return None


@pytest.mark.parametrize("block", range(BLOCKS))
def test_the_cleaned_log_is_what_the_model_says(block: int) -> None:
    for seed in range(block, LOGS, BLOCKS):
        Life(seed).run()
