"""A partition in both tiers that loses its power at every call of its disk and of its store.

Before each call of the disk that changes something, before each call of the store and after it,
when the answer is lost: a start on what the disk may have kept, and on the store as it is then. The
start itself has no store.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from protocol.checksum import crc32c
from protocol.records.record import Record, read_records
from protocol.records.scan import scan_batches
from storage.directory.log_manager import LogManager
from storage.env import Buffer, Clock, Env
from storage.files.layout import LOG
from storage.log.lifecycle import learn_times
from storage.log.log import Log
from storage.tier.manifests.manifest import Manifest
from storage.tier.manifests.reading import read_newest
from storage.tier.names import RECORDS, SIDE, PartitionKeys
from storage.tier.object_cache import ObjectCache
from storage.tier.orphans import OrphanSweep, SweepOrder
from storage.tier.port import ObjectFacts, ObjectStore
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.disk.crash_world import LOG_DIR, NOW, TOPIC_ID, CrashWorld
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.records.logs import make_durable
from tests.support.records.proved_zones import judge_zones
from tests.support.tier.faulty_store import Fault, FaultyStore, always
from tests.support.tier.memory_store import MemoryStore
from tests.support.tier.tier_life import CACHE_DIR, EVERYTHING

KEYS = PartitionKeys("t", TOPIC_ID, 0)
CACHE_BYTES = 1 << 24


class WatchedStore:
    """A store whose calls are looked at before and after."""

    def __init__(self, store: ObjectStore, look: Callable[[], None]) -> None:
        self._store = store
        self._look = look

    def put_new(self, key: str, data: Buffer) -> None:
        self._watched(lambda: self._store.put_new(key, data))

    def put_file(self, key: str, parts: Iterator[Buffer], size_bytes: int) -> None:
        self._watched(lambda: self._store.put_file(key, parts, size_bytes))

    def get(self, key: str) -> bytes:
        return self._store.get(key)

    def get_range(self, key: str, position: int, size: int) -> bytes:
        return self._store.get_range(key, position, size)

    def pieces(self, key: str, position: int, size: int) -> Iterator[Buffer]:
        return self._store.pieces(key, position, size)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectFacts]:
        return self._store.list(prefix, after=after)

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._watched(lambda key=key: self._store.delete([key]))  # type: ignore[misc]

    def _watched(self, call: Callable[[], None]) -> None:
        self._look()
        call()
        self._look()


class TierCrashWorld(CrashWorld):
    """The partition, its store, and the eye on every call of both."""

    def __init__(self, seed: int, survivals: int, *, nested: bool = False, **settings: Any) -> None:
        self.objects = MemoryStore()
        self.store = WatchedStore(self.objects, self._look_at_store)
        self.remote: RemoteLogs | None = None
        self.cache: ObjectCache | None = None
        self.copies = self.dropped = self.withdrawn = self.orphans = self.emptied = 0
        self._starts = 0
        self._is_looking = False
        self._store_calls = 0
        super().__init__(seed, survivals, nested=nested, **settings)

    @property
    def tiered(self) -> TieredLog:
        assert self.remote is not None
        return self.remote.of(self.log)

    def started(self, fs: SimFileSystem) -> LogManager:
        """A log manager on that disk; only that of the life itself has its store at once."""
        manager, remote = self.opened(fs, self.store if fs is self.fs else _no_store())
        if fs is self.fs:
            self.remote = remote
        return manager

    def opened(self, fs: SimFileSystem, store: ObjectStore) -> tuple[LogManager, RemoteLogs]:
        self._starts += 1
        env = Env(self.clock, fs, SeededRng(self._starts))
        cache = ObjectCache(fs, CACHE_DIR, CACHE_BYTES)
        if fs is self.fs:
            if self.cache is not None:
                self.cache.close()
            self.cache = cache
        cache.open()
        remote = RemoteLogs(Reach(store, cache), env)
        manager = LogManager(env, LOG_DIR, lambda topic: self.config, remote)
        manager.open_directory("cluster", 1)
        manager.load()
        return manager, remote

    # --- what a life does ---

    def copy_next(self) -> bool:
        """One segment, if one is due; True when one was."""
        tiered = self.tiered
        row = tiered.copy_next(lambda size: None)
        self.copies += row is not None
        tiered.show()
        return row is not None

    def drop(self) -> None:
        tiered = self.tiered
        assert learn_times(self.log, 1000)
        below = tiered.leaving.droppable(EVERYTHING, NOW + 10**12)
        if tiered.leaving.has_any:
            tiered.fence()
            tiered.leaving.vouch(below)
        while leaving := tiered.leave(below):
            self.dropped += len(leaving)
            self.manager.bury_copied(self.log, leaving)

    def leave_at_once(self) -> None:
        """As on a disk short of space: all ends, what has a copy leaves, its files with it."""
        self.log.roll()
        self.sync()
        while self.copy_next():
            self.drop()
            while self.manager.remove_copied():
                continue
            self.emptied += 1

    def expire(self) -> None:
        tiered = self.tiered
        gone = tiered.expire()
        tiered.show()
        tiered.forget(gone)
        self.store.delete([key for row in gone for key in tiered.objects_of(row)])

    def end_tier(self) -> None:
        """All leaves the store, as for a topic whose tier has ended."""
        self.remove_before(self.log.snapshot.local_start_offset)
        tiered = self.tiered
        gone = tiered.withdraw()
        self.withdrawn += len(gone)
        tiered.show()
        tiered.forget(gone)
        self.store.delete([key for row in gone for key in tiered.objects_of(row)])

    def sweep(self) -> None:
        assert self.remote is not None
        sweep_twice(self.store, self.clock, self.remote)

    def remove_before(self, offset: int) -> None:
        while self.manager.remove_segments(self.log, offset).has_more:
            continue
        self.ledger.start_offset = self.log.snapshot.log_start_offset

    # --- what is looked at ---

    def _look_at_store(self) -> None:
        self._store_calls += 1
        self._look(100_000 + self._store_calls)

    def judge(self, disk: SimFileSystem) -> None:
        judge_zones(disk, f"{LOG_DIR}/t-0")
        objects = MemoryStore()
        for key, data in self.objects.objects.items():
            objects.put_new(key, data)
        newest = read_newest(objects, KEYS)
        if newest is not None:
            judge_objects(objects, newest)
        store = FaultyStore(objects, always(Fault.LOST_BEFORE))  # until it is loaded
        manager, remote = self.opened(disk, store)
        log = manager.logs.get(("t", 0))
        if log is None:
            assert not self.ledger.exists, "a log is gone"
            return
        if not self.ledger.exists:
            return
        store.script = lambda operation, key: None
        self._judge_records(log)
        self._judge_producer(log, log.snapshot.log_start_offset)
        self._judge_life(disk, log, log.snapshot.log_start_offset, log.snapshot.log_end_offset)
        if log.takes_changes:
            self._judge_tier(log, remote)
            self.orphans += sweep_twice(store, self.clock, remote)
            judge_names(objects)

    def _judge_records(self, log: Log) -> None:
        ledger = self.ledger
        found, start, end = read_all(log), log.snapshot.log_start_offset, log.snapshot
        assert start >= ledger.start_offset, "the start offset moved backwards"
        assert list(found) == list(range(start, end.log_end_offset)), "a hole"
        for offset, value in ledger.durable.items():
            assert offset < start or found.get(offset) == value, f"offset {offset} is lost"
        for offset, stored in found.items():
            assert stored in ledger.values[offset], f"offset {offset} was never written like that"

    def _judge_tier(self, log: Log, remote: RemoteLogs) -> None:
        """Copying goes on where it was, and nothing that it brings changes what is read."""
        before, tiered = read_all(log), remote.of(log)
        make_durable(log)
        while tiered.copy_next(lambda size: None) is not None:
            tiered.show()
        tiered.expire()
        tiered.show()
        assert learn_times(log, 1000)
        below = tiered.leaving.droppable(EVERYTHING, NOW + 10**12)
        while tiered.leave(below):
            continue
        assert log.snapshot.local_start_offset >= log.snapshot.segments[-1].base_offset
        assert read_all(log) == before, "the store has other records"


def read_all(log: Log) -> dict[int, bytes | None]:
    """Values by offset, in the order in which fetches bring them."""
    return {offset: record.value for offset, record in read_rows(log).items()}


def read_rows(log: Log) -> dict[int, Record]:
    """Records by offset, in the order in which fetches bring them; markers are none."""
    at, end = log.snapshot.log_start_offset, log.snapshot.high_watermark
    found: dict[int, Record] = {}
    while at < end:
        data = log.read(at, 1 << 20, up_to=end, min_one_batch=True)
        if data.unverified is not None:
            data.unverified.settle()
            continue
        content = memoryview(data.read())
        rows = scan_batches(content).batches
        assert rows, f"nothing at {at}"
        for row in rows:
            for record in read_records(content[row[0] : row[0] + row[5]]):
                if record.offset >= at:
                    assert record.offset not in found, "an offset comes twice"
                    found[record.offset] = record
        at = rows[-1][2] + 1
    return found


def judge_objects(store: MemoryStore, manifest: Manifest) -> None:
    """All that the manifest names is there, as it says."""
    for row in manifest.segments:
        records = store.objects[KEYS.segment(row.base_offset, row.unique, RECORDS)]
        assert crc32c(records) == row.parts[LOG].crc, "it names what was not verified"
        side = store.objects[KEYS.segment(row.base_offset, row.unique, SIDE)]
        for suffix, part in row.parts.items():
            if suffix != LOG:
                content = side[part.position : part.position + part.size_bytes]
                assert crc32c(content) == part.crc, f"its {suffix} was not verified"


def sweep_twice(store: ObjectStore, clock: Clock, remote: RemoteLogs) -> int:
    """Has the second round remove what the first one saw; the number of those objects."""
    sweep = OrphanSweep(store, clock, remote.find)
    order = SweepOrder(
        frozenset((TOPIC_ID,)), frozenset(), frozenset(), frozenset(), 0, 0.0, past_ms=0
    )
    seen = sweep.round(order)
    assert sweep.round(order).removed == seen.orphans
    assert not sweep.round(order).orphans.objects
    return seen.orphans.objects


def judge_names(store: MemoryStore) -> None:
    """The store has the segments that the newest manifest names, whole, and no others."""
    newest = read_newest(store, KEYS)
    rows = () if newest is None else newest.segments
    named = {
        KEYS.segment(row.base_offset, row.unique, suffix)
        for row in rows
        for suffix in (RECORDS, SIDE)
    }
    assert {key for key in store.objects if not key.endswith(".json")} == named
    if newest is not None:
        judge_objects(store, newest)


def _no_store() -> ObjectStore:
    return FaultyStore(MemoryStore(), always(Fault.LOST_BEFORE))


def live(world: TierCrashWorld) -> None:
    """Appends, copies, drops, deletions, retention, checkpoints, restarts and kills."""
    dice = world.dice
    world.create()
    for _ in range(9):
        for _ in range(dice.randint(2, 6)):
            world.append(acks_all=dice.random() < 0.5, records=dice.randint(1, 3))
        if dice.random() < 0.9:
            world.sync()
        for _ in range(dice.randint(1, 3)):
            world.copy_next()
        if dice.random() < 0.6:
            world.drop()
        _time_passes(world)


def _time_passes(world: TierCrashWorld) -> None:
    dice = world.dice
    match dice.randrange(10):
        case 0:
            snapshot = world.log.snapshot
            start = dice.randint(snapshot.log_start_offset, snapshot.high_watermark)
            world.delete_records(min(start, snapshot.log_start_offset + dice.randint(1, 9)))
            world.expire()
        case 1:
            segments = world.log.snapshot.segments
            world.remove_before(segments[min(2, len(segments) - 1)].base_offset)
            world.expire()
        case 2:
            world.manager.checkpoint()
        case 3:
            world.manager.remove_deleted()
        case 4:
            world.restart()
        case 5:
            world.kill()
        case 6:
            world.end_tier()
        case 7:
            world.sweep()
        case 8:
            world.leave_at_once()
