"""A compacted partition that loses its power at every call of a run, and what must be there then.

Of what was promised: the last record of each key is there, unless it is a tombstone whose time is
up. Nothing comes back that an ended run has removed, nothing is made up, and no file of a run is
left after a start.
"""

from dataclasses import replace
from itertools import pairwise

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.scan import scan_batches
from storage.cleaner.cleanable_logs import learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.env import Env
from storage.log.log import Log
from tests.support.disk.crash_world import NOW, CrashWorld
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.records.cleaning import COMPACT
from tests.support.records.logs import make_durable, records_of

Stored = tuple[bytes, bytes | None, int]  # key, value, time

CODECS = (Codec.NONE, Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD, Codec.SNAPPY)


class CleaningWorld(CrashWorld):
    """Keyed appends, tombstones, dirty times, runs of the cleaner, restarts and kills."""

    segment_sizes: tuple[int, ...] = (400, 1500, 10_000)
    """Old segments are about 400 bytes large: so many of them become one."""

    def __init__(self, seed: int, survivals: int, *, nested: bool = False, **settings: object):
        self.stored: dict[int, Stored] = {}
        """Records in the log: as written, less what ended runs removed."""
        self.leaving: set[int] = set()
        """Offsets that the run under way removes."""
        self.safe: set[int] = set()
        """Offsets that were promised to be durable."""
        self.runs = 0
        self._horizons: dict[int, int] = {}  # tombstones that a run has seen: when they may go
        usual = {"cleanup_policy": COMPACT, "segment_bytes": 400}
        super().__init__(seed, survivals, nested=nested, **usual | settings)
        self.fs.on_call = None

    def put(self) -> None:
        """A batch of some records of few keys."""
        dice, log = self.dice, self.log
        rows = [
            (
                dice.choice((NOW, NOW + dice.randrange(10**6), -1, 1_700_000_000, NOW + 10**12)),
                b"key-%d" % dice.randrange(7),
                dice.choice((b"v" * dice.randrange(90), b"%d" % dice.getrandbits(40), None)),
            )
            for _ in range(dice.randint(1, 4))
        ]
        data = build_batch(rows, codec=dice.choice(CODECS))
        base = log.snapshot.log_end_offset
        for index, (at, key, value) in enumerate(rows):
            self.stored[base + index] = (key, value, at)
        log.append(memoryview(data), acks_all=True, leader_epoch=log.leader_epoch)

    def sync(self) -> None:
        make_durable(self.log)
        self.safe.update(self.stored)

    def restart(self) -> None:
        super().restart()
        self.safe.update(self.stored)
        self.fs.on_call = None

    def kill(self) -> None:
        super().kill()
        self.safe.update(self.stored)
        self.fs.on_call = None

    def clean(self, map_entries: int = 4096) -> None:
        """One run of the cleaner, and what the broker does after it."""
        log, manager = self.log, self.manager
        log.roll()
        self.sync()
        manager.checkpoint()  # so that a start trusts what is below
        assert learn_ages(log, 1 << 30)
        now_ms = self.clock.now_ms()
        verdict = verdict_on(log, manager.cleaner_offsets, now_ms)
        log.reconfigure(replace(log.config, segment_bytes=self.dice.choice(self.segment_sizes)))
        memory = CleaningMemory(24 * map_entries, 0.9, self.dice.choice((100, 1000, 1 << 20)))
        run = Cleaning(log, verdict, memory, Env(self.clock, self.fs, SeededRng(2)))
        self.leaving = self._removable(verdict.first_dirty, verdict.first_uncleanable, now_ms)
        self.fs.on_call = self._look
        for part in run.slices():
            if part.in_turn is not None:
                part.in_turn()
        self.fs.on_call = None
        left = {offset: row for offset, row in self.stored.items() if offset not in self.leaving}
        if run.first_dirty < verdict.first_uncleanable:  # the map was full
            found = records_of(log)
            left = {each.offset: self.stored[each.offset] for each in found}
        self._see_tombstones(run.first_dirty, now_ms)
        self.stored, self.leaving = left, set()
        manager.bury(log, run.replaced)
        manager.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)
        self.runs += 1
        assert rows_of(log) == self.stored

    def judge(self, disk: SimFileSystem) -> None:
        manager = self.started(disk)
        log = manager.logs.get(("t", 0))
        if log is None:
            assert not self.safe
            return
        assert not [
            name for name in names_on(disk) if name.endswith((".cleaned", ".swap", ".deleted"))
        ]
        records = records_of(log)
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets)), "records twice, or out of order"
        found = {each.offset: (each.key or b"", each.value, each.timestamp) for each in records}
        for offset, row in found.items():
            assert self.stored.get(offset) == row, f"offset {offset} should not be there like that"
        for offset in self.safe & self.stored.keys() - self.leaving:
            assert offset in found, f"offset {offset} is lost"
        for segment, following in pairwise(log.snapshot.segments):
            rows = scan_batches(segment.file().read_at(0, segment.size_bytes)).batches
            assert all(row[2] < following.base_offset for row in rows), "segments overlap"
        again = self.started(disk.after_kill()).logs["t", 0]
        assert rows_of(again) == found, "a second start differs"

    def _removable(self, first_dirty: int, end: int, now_ms: int) -> set[int]:
        """The ten-line model: what a run up to `end` removes."""
        last: dict[bytes, int] = {}
        for offset, (key, _, _) in sorted(self.stored.items()):
            if first_dirty <= offset < end:
                last[key] = offset
        gone = set()
        for offset, (key, value, _) in self.stored.items():
            is_old = last.get(key, -1) > offset
            is_due = value is None and self._horizons.get(offset, now_ms + 1) <= now_ms
            if offset < end and (is_old or is_due):
                gone.add(offset)
        return gone

    def _see_tombstones(self, end: int, now_ms: int) -> None:
        """A horizon is the batch's: every tombstone that stays in a batch with one shares it."""
        horizon = now_ms + self.log.config.delete_retention_ms
        for offset, (_, value, _) in self.stored.items():
            if value is None and offset < end and offset not in self.leaving:
                self._horizons.setdefault(offset, horizon)


def live(world: CleaningWorld, rounds: int = 3) -> None:
    """Appends, runs, time that passes, restarts and kills."""
    world.create()
    dice = world.dice
    for _ in range(rounds):
        for _ in range(dice.randint(3, 9)):
            world.put()
        world.clean(dice.choice((5, 4096)))
        world.clock.advance(dice.choice((0, 500, 5000)))
        if dice.random() < 0.5:
            world.manager.remove_deleted()
        match dice.randrange(4):
            case 0:
                world.restart()
            case 1:
                world.kill()


def rows_of(log: Log) -> dict[int, Stored]:
    """Records that a consumer reads."""
    return {each.offset: (each.key or b"", each.value, each.timestamp) for each in records_of(log)}


def names_on(disk: SimFileSystem) -> list[str]:
    """The files of the partition."""
    return [entry.name for entry in disk.list_dir("/data/t-0")]
