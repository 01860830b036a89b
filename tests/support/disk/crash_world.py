"""A data directory that loses its power at every call, and what must be true afterwards.

`CrashWorld` runs a scenario once; before each mutating call of it, it looks at what a power cut at
that moment would leave, by several rolls of the dice, starts a log manager on each, and compares
with the ledger of what was promised until then. The ledger lives outside of what is tested.
"""

import random
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import LogOffline
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import NO_BOUNDS, make_durable, records_of
from tests.support.records.proved_zones import judge_zones

LOG_DIR = "/data"
TOPIC_ID = UUID(int=7)
NOW = 1_700_000_000_000
PRODUCER = 77
"""The producer of all batches that name no other."""
SETTINGS = {
    **NO_BOUNDS,
    "segment_bytes": 700,
    "index_interval_bytes": 150,
    "horolog_zone_bytes": 200,
    "file_delete_delay_ms": 0,
}


@dataclass(slots=True)
class Ledger:
    """Writes of a life, and what was promised."""

    values: dict[int, set[bytes]] = field(default_factory=dict)
    """Every value that was ever written at an offset, acknowledged or not."""
    durable: dict[int, bytes] = field(default_factory=dict)
    """Records acknowledged as durable."""
    sequences: dict[int, int] = field(default_factory=dict)
    """Of each batch of `PRODUCER`, by its last offset: the sequence number of its last record."""
    start_offset: int = 0
    """The log start offset that was acknowledged."""
    exists: bool = False
    """The log was acknowledged as made, and not yet asked to go."""
    deleted: bool = False
    """The log was acknowledged as deleted."""


class CrashWorld:
    """One data directory with one partition, its ledger, and the eye on every call."""

    def __init__(self, seed: int, survivals: int, *, nested: bool = False, **settings: Any) -> None:
        self.dice = random.Random(seed)
        self.clock = SimClock(NOW)
        self.fs = SimFileSystem(clock=self.clock)
        self.ledger = Ledger()
        self.config = TopicConfig(**{**SETTINGS, **settings})
        self.points = 0
        self.damaged = 0
        self.believed = 0
        self._survivals = survivals
        self._nested = nested
        self._unsynced: list[tuple[int, bytes]] = []
        self._counter = 0
        self.manager = self.started(self.fs)
        self.fs.on_call = self._look

    @property
    def log(self) -> Log:
        return self.manager.logs["t", 0]

    def started(self, fs: SimFileSystem) -> LogManager:
        """A log manager on that disk."""
        manager = LogManager(Env(self.clock, fs, SeededRng(1)), LOG_DIR, lambda topic: self.config)
        manager.open_directory("cluster", 1)
        manager.load()
        return manager

    # --- what scenarios do ---

    def create(self) -> None:
        self.manager.create_log("t", 0, TOPIC_ID, self.config)
        self.ledger.exists = True

    def append(self, *, acks_all: bool = True, records: int = 1, **batch: Any) -> None:
        """A batch of values that occur once; durable only after `sync`."""
        log = self.log
        base = log.snapshot.log_end_offset
        values = []
        for index in range(records):
            self._counter += 1
            values.append(b"%d:" % self._counter + bytes(self.dice.randrange(60)))
            self.ledger.values.setdefault(base + index, set()).add(values[-1])
        if "producer_id" not in batch:
            batch |= self._next_of_producer(base + records - 1, records)
        data = build_batch([(NOW + self._counter, b"k", value) for value in values], **batch)
        result = log.append(memoryview(data), acks_all=acks_all, leader_epoch=log.leader_epoch)
        assert result.base_offset == base
        self._unsynced += [(base + index, value) for index, value in enumerate(values)]

    def _next_of_producer(self, last_offset: int, records: int) -> dict[str, int]:
        """Its next batch, which ends there."""
        sequences = self.ledger.sequences
        base = sequences[max(sequences)] + 1 if sequences else 0
        sequences[last_offset] = base + records - 1
        return {"producer_id": PRODUCER, "producer_epoch": 0, "base_sequence": base}

    def sync(self) -> None:
        """The fsync thread's round; afterwards all that was appended is promised."""
        make_durable(self.log)
        self.ledger.durable.update(self._unsynced)
        self._unsynced.clear()

    def restart(self) -> None:
        """A clean stop and a start."""
        unsynced = list(self._unsynced)
        assert self.manager.close()
        self.ledger.durable.update(unsynced)
        self._unsynced.clear()
        self.manager = self.started(self.fs)

    def kill(self) -> None:
        """A kill -9 and a start: the page cache stays."""
        self.fs.on_call = None
        self.fs = self.fs.after_kill()
        self.fs.on_call = self._look
        self.manager = self.started(self.fs)
        self.ledger.durable.update(self._unsynced)
        self._unsynced.clear()

    def delete_records(self, before: int) -> None:
        self.ledger.start_offset = self.log.delete_records(before)

    def cut(self, end_offset: int) -> None:
        """Takes off the end, which nobody has committed; others will have its offsets."""
        ledger = self.ledger
        ledger.durable = {at: each for at, each in ledger.durable.items() if at < end_offset}
        self._unsynced = [each for each in self._unsynced if each[0] < end_offset]
        self.manager.cut(self.log, end_offset)
        assert self.log.snapshot.log_end_offset == end_offset
        ledger.values = {at: each for at, each in ledger.values.items() if at < end_offset}
        ledger.sequences = {at: each for at, each in ledger.sequences.items() if at < end_offset}

    def delete(self) -> None:
        self.ledger.exists = False
        self.manager.delete_log("t", 0)
        self.ledger.deleted = True

    # --- what is looked at ---

    def _look(self, call: int) -> None:
        for survival in range(self._survivals):
            self.points += 1
            disk = self.fs.after_crash(call * 1009 + survival)
            if self._nested:
                disk = self._crashed_again(disk, call * 31 + survival)
            self.judge(disk)

    def _crashed_again(self, disk: SimFileSystem, seed: int) -> SimFileSystem:
        """Recovery itself loses its power, at some call."""
        disk.crash_at = random.Random(seed).randint(1, 12)
        try:
            self.started(disk)
        except SimulatedCrash:
            return disk.after_crash(seed)
        return disk.after_crash(seed)

    def judge(self, disk: SimFileSystem) -> None:
        """A start on that disk keeps every promise; who reads its files before is not misled."""
        self.believed += judge_zones(disk, f"{LOG_DIR}/t-0")
        ledger = self.ledger
        manager = self.started(disk)
        log = manager.logs.get(("t", 0))
        if ledger.deleted:
            assert log is None, "a deleted log came back"
        if log is None:
            assert not ledger.exists, "a log is gone"
            return
        if not ledger.exists:
            return
        found = {record.offset: record.value for record in records_of(log)}
        start, end = log.snapshot.log_start_offset, log.snapshot.log_end_offset
        assert start >= ledger.start_offset, "the start offset moved backwards"
        assert list(found) == list(range(start, end)), "a hole"
        for offset, value in ledger.durable.items():
            assert offset < start or found.get(offset) == value, f"offset {offset} is lost"
        for offset, stored in found.items():
            assert stored in ledger.values[offset], f"offset {offset} was never written like that"
        self._judge_producer(log, start)
        self._judge_life(disk, log, start, end)

    def _judge_producer(self, log: Log, start: int) -> None:
        """A batch that is durable, and still there, would not be taken once more."""
        ledger = self.ledger
        durable = [at for at in ledger.sequences if at in ledger.durable and at >= start]
        if durable:
            known = {number: entry.last_sequence for number, entry in log.producers}
            assert known.get(PRODUCER, -1) >= ledger.sequences[max(durable)], "a resend would count"

    def _judge_life(self, disk: SimFileSystem, log: Log, start: int, end: int) -> None:
        """The log goes on where it ends, and a second recovery finds the same."""
        again = self.started(disk.after_kill()).logs["t", 0].snapshot
        assert (again.log_start_offset, again.log_end_offset) == (
            log.snapshot.log_start_offset,
            end,
        ), "a second recovery differs"
        promised = max(self.ledger.durable, default=-1) + 1
        assert end >= promised or start > promised, "an offset would be used twice"
        data = memoryview(build_batch([(NOW, b"k", b"after")]))
        try:
            result = log.append(data, acks_all=True, leader_epoch=log.leader_epoch)
        except LogOffline:
            assert log.corruption is not None
            self.damaged += 1
            return
        assert result.base_offset == end
        make_durable(log)
        final = self.started(disk.after_crash(end)).logs["t", 0]
        assert records_of(final, end)[0].value == b"after"
