"""A compacted partition in both tiers that loses its power at every call of its disk and its store.

After each: a start on what the disk may have kept, and what a restore would bring out of the store
alone. Of all that either has, the last record of each key is the last one that was ever written
below its end: no key is lost, and none that was deleted comes back.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from protocol.records.builder import build_batch
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.cleaner.cleanable_logs import learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.log.lifecycle import learn_times
from storage.log.log import Log
from storage.tier.manifests.manifest import Manifest
from storage.tier.manifests.reading import read_newest
from storage.tier.names import RECORDS
from storage.tier.remote_logs import RemoteLogs
from tests.support.disk.crash_world import NOW
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.records.cleaning import COMPACT
from tests.support.records.logs import make_durable
from tests.support.tier.faulty_store import Fault, FaultyStore, always
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_crash_world import (
    KEYS,
    TierCrashWorld,
    judge_names,
    judge_objects,
    read_rows,
    sweep_twice,
)
from tests.support.tier.tier_life import EVERYTHING

FULL_MAP = 4096


class Row(NamedTuple):
    """A record as it was written."""

    key: bytes
    value: bytes | None


class CompactedCrashWorld(TierCrashWorld):
    """Keyed appends, tombstones, runs of the cleaner, copies."""

    def __init__(
        self,
        seed: int,
        survivals: int,
        *,
        is_tiered: bool,
        nested: bool = False,
        **settings: Any,
    ) -> None:
        """`is_tiered`: what was copied leaves the directory, and is cleaned in the store."""
        self._is_tiered = is_tiered
        self.cleaned_away = 0
        """Segments that a run has replaced in the store."""
        self.written: dict[int, Row] = {}
        """All records that were ever appended."""
        self.promised_end = 0
        self.runs = 0
        usual = {"cleanup_policy": COMPACT, "segment_bytes": 400, "delete_retention_ms": 500}
        super().__init__(seed, survivals, nested=nested, **usual | settings)

    # --- what a life does ---

    def put(self) -> None:
        """A batch of some records of few keys."""
        dice, log = self.dice, self.log
        rows = [
            Row(b"key-%d" % dice.randrange(6), dice.choice((b"%d" % dice.getrandbits(60), None)))
            for _ in range(dice.randint(1, 4))
        ]
        base = log.snapshot.log_end_offset
        self.written |= dict(enumerate(rows, base))
        data = build_batch([(NOW + base, *row) for row in rows])
        log.append(memoryview(data), acks_all=True, leader_epoch=log.leader_epoch)

    def sync(self) -> None:
        make_durable(self.log)
        self.promised_end = self.log.snapshot.log_end_offset

    def restart(self) -> None:
        super().restart()
        self.promised_end = self.log.snapshot.log_end_offset

    def kill(self) -> None:
        super().kill()
        self.promised_end = self.log.snapshot.log_end_offset

    def copy_next(self) -> bool:
        cleaned = self.manager.cleaner_offsets.clean_part(("t", 0))
        before = self.copies
        while self.tiered.mirror_next(lambda size: None, cleaned) is not None:
            self.copies += 1
        self.tiered.show()
        gone = self.tiered.take_replaced()
        self.tiered.forget(gone)
        self.store.delete([key for row in gone for key in self.tiered.objects_of(row)])
        return self.copies > before

    def clean(self, map_entries: int = FULL_MAP) -> None:
        """A run of the cleaner, and what the broker does after it."""
        self.log.roll()
        self.sync()
        self.manager.checkpoint()
        sizes = self.dice.choice((400, 1500, 10_000))
        self.log.reconfigure(replace(self.log.config, segment_bytes=sizes))
        assert self.remote is not None
        self._cleaned(self.manager, self.log, self.remote, map_entries)
        self.cleaned_away += len(self.tiered.replaced)
        self.runs += 1

    def leave(self, log: Log, remote: RemoteLogs, manager: LogManager) -> None:
        """All that was copied leaves the directory, where the life is one of both tiers."""
        if not self._is_tiered:
            return
        assert learn_times(log, 1000)
        tiered = remote.of(log)
        below = tiered.leaving.droppable(EVERYTHING, NOW + 10**12, is_rewritten=True)
        if tiered.leaving.has_any:
            tiered.fence()
        while leaving := tiered.leave(below):
            self.dropped += len(leaving)
            manager.bury_copied(log, leaving)

    def _cleaned(
        self, manager: LogManager, log: Log, remote: RemoteLogs, map_entries: int = FULL_MAP
    ) -> None:
        assert learn_ages(log, 1 << 30)
        verdict = verdict_on(log, manager.cleaner_offsets, self.clock.now_ms())
        memory = CleaningMemory(24 * map_entries, 0.9, 1 << 16)
        env = Env(self.clock, self.fs, SeededRng(2))
        run = Cleaning(log, verdict, memory, env, remote.of(log))
        for part in run.slices():
            if part.in_turn is not None:
                part.in_turn()
        manager.bury(log, run.replaced)
        manager.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)

    # --- what is looked at ---

    def judge(self, disk: SimFileSystem) -> None:
        objects = MemoryStore()
        objects.objects |= self.objects.objects
        newest = read_newest(objects, KEYS)
        if newest is not None:
            judge_objects(objects, newest)
            stored = _stored(objects, newest)
            self._judge(stored, newest.log_start_offset, newest.end_offset)
            _judge_clean_part(stored, newest)
        store = FaultyStore(objects, always(Fault.LOST_BEFORE))
        manager, remote = self.opened(disk, store)
        log = manager.logs.get(("t", 0))
        if log is None:
            assert not self.ledger.exists, "a log is gone"
            return
        store.script = lambda operation, key: None
        self._judge_log(log)
        if self.ledger.exists and log.takes_changes:
            self._go_on(manager, log, remote)
            self.orphans += sweep_twice(store, self.clock, remote)
            judge_names(objects)
            self._judge_log(log)

    def _judge_log(self, log: Log) -> None:
        snapshot = log.snapshot
        assert snapshot.log_end_offset >= self.promised_end, "records are lost"
        found = [(each.offset, each.key, each.value) for each in read_rows(log).values()]
        self._judge(found, snapshot.log_start_offset, snapshot.log_end_offset)

    def _judge(self, found: Iterable[tuple[int, Any, Any]], start: int, end: int) -> None:
        """The one-line model: the last record of each key."""
        last: dict[bytes, tuple[int, Row]] = {}
        before = -1
        for offset, key, value in found:
            assert offset > before, "out of order"
            before, row = offset, Row(bytes(key), None if value is None else bytes(value))
            assert self.written[offset] == row, f"offset {offset} was never written like that"
            last[row.key] = offset, row
        known = sorted(self.written.items())
        wanted = {row.key: (offset, row) for offset, row in known if start <= offset < end}
        for key, (offset, row) in wanted.items():
            is_gone = row.value is None and key not in last
            assert is_gone or last.get(key) == (offset, row), f"{key!r}: {last.get(key)}, not {row}"

    def _go_on(self, manager: LogManager, log: Log, remote: RemoteLogs) -> None:
        """Copying and cleaning go on where they were."""
        make_durable(log)
        self._mirror(manager, log, remote)
        self.leave(log, remote, manager)
        self._judge_log(log)
        self.clock.step(1000)
        log.roll()
        make_durable(log)
        self._cleaned(manager, log, remote)
        self._mirror(manager, log, remote)
        self.clock.step(-1000)
        self._judge_log(log)

    def _mirror(self, manager: LogManager, log: Log, remote: RemoteLogs) -> None:
        tiered, cleaned = remote.of(log), manager.cleaner_offsets.clean_part(("t", 0))
        while tiered.mirror_next(lambda size: None, cleaned) is not None:
            continue
        tiered.show()
        assert tiered.uploaded_end == log.snapshot.active.base_offset, "not all was copied"


def _judge_clean_part(stored: list[tuple[int, Any, Any]], manifest: Manifest) -> None:
    """Each key is there once where compaction is said to have been."""
    end_offset = 0 if manifest.cleaned is None else manifest.cleaned.end_offset
    keys = [bytes(key) for offset, key, _ in stored if offset < end_offset]
    assert len(keys) == len(set(keys)), f"below {end_offset} keys are there twice"


def _stored(objects: MemoryStore, manifest: Manifest) -> list[tuple[int, Any, Any]]:
    """Records of the store, as a restore brings them."""
    found = []
    for segment in manifest.segments:
        key = KEYS.segment(segment.base_offset, segment.unique, RECORDS)
        content = memoryview(objects.objects[key])
        for row in scan_batches(content).batches:
            records = read_records(content[row[0] : row[0] + row[5]])
            found += [(each.offset, each.key, each.value) for each in records]
    return found


def live_compacted(world: CompactedCrashWorld, rounds: int = 4) -> None:
    """Appends, runs, copies, time that passes, restarts and kills."""
    world.create()
    dice = world.dice
    for _ in range(rounds):
        for _ in range(dice.randint(3, 8)):
            world.put()
        world.sync()
        if dice.random() < 0.5:
            world.copy_next()
        world.clean(dice.choice((5, FULL_MAP)))
        world.copy_next()
        assert world.remote is not None
        world.leave(world.log, world.remote, world.manager)
        world.clock.advance(dice.choice((0, 600)))
        match dice.randrange(4):
            case 0:
                world.restart()
            case 1:
                world.kill()
            case 2:
                world.manager.remove_deleted()
