"""A log of a fleet that is in segments in the store, over any number of leaders and lost disks.

By a seed: leaders write, copy, let go, remove and follow one another, with whatever their disks
have; those of before go on copying. Each next one has what is committed, and nothing else.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from broker.fleet.catalog.rows import (
    CommitId,
    CommittedSpan,
    Incarnation,
    ManifestName,
    OwnedShard,
    PartitionKey,
    PartitionRow,
)
from broker.fleet.frame import ArrivedBatch, PartitionBatches, make_frame
from broker.fleet.local_logs import LocalLog, LocalLogs, StorePart
from broker.fleet.segment_parts import SegmentParts
from broker.state.reading import batches_of
from config.topic import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.cleaner.cleanable_logs import learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import LogOffline, StorageError
from storage.log.compaction_state import CleanPart
from storage.log.following import batches_between
from storage.log.lifecycle import learn_times
from storage.retention.plan import RetentionLimits
from storage.tier.names import object_of
from storage.tier.object_cache import ObjectCache
from storage.tier.orphans import OrphanSweep, SweepOrder
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng
from tests.support.fleet.commits import HeldCommits
from tests.support.fleet.real_host import CONFIG
from tests.support.records.cleaning import COMPACT
from tests.support.tier.memory_store import MemoryStore
from tests.support.worlds.handler_world import InlineLanes

NOW = 1_700_000_000_000
KEY = PartitionKey(UUID(int=5), 0)
COMMIT = CommitId(Incarnation(1, 1), 1)
STEPS, KEYS = 60, 5
COMPACTED = replace(CONFIG, cleanup_policy=COMPACT, delete_retention_ms=500)
ALL = RetentionLimits(retention_ms=0, retention_bytes=-1)


class Front:
    """Clients' side, of which there is none."""

    def serve(self, log: LocalLog, commits: object) -> None: ...

    def committed(self, log: LocalLog) -> None: ...

    def end_writes(self, log: LocalLog) -> None: ...

    def end(self, log: LocalLog) -> None: ...


class Rows:
    """One partition as the catalog has it, and all that was ever committed."""

    def __init__(self) -> None:
        self.spans: list[CommittedSpan] = []
        self.bytes: dict[int, list[ArrivedBatch]] = {}
        self.manifest: ManifestName | None = None
        self.copied_end = 0
        """End of the last named manifest: commits of before it are gone."""
        self.log_start = 0
        self.epoch = 0
        self.values: list[tuple[int, int]] = []
        """Epoch and value by offset."""
        self.keys: list[bytes | None] = []
        self.arrivals: dict[int, int] = {}

    def row(self) -> PartitionRow:
        return PartitionRow(KEY, "t", 1, self.log_start, tuple(self.spans), None, self.manifest)

    async def bytes_of(self, committed: CommittedSpan) -> list[ArrivedBatch]:
        return self.bytes[committed.span.base_offset]

    def commit(self, log: LocalLog) -> None:
        """All that the leader has."""
        begin = len(self.values)
        batches = log.batches(begin, log.end_offset, 1 << 20)
        if not batches:
            return
        [span] = make_frame(UUID(int=1), COMMIT, [PartitionBatches(KEY, self.epoch, batches)]).spans
        self.spans.append(CommittedSpan(span, COMMIT, None))
        self.bytes[span.base_offset] = [
            ArrivedBatch(each.arrival_ms, each.data) for each in batches
        ]
        for each in batches:
            for key, value in keys_and_values(each.data):
                self.values.append((self.epoch, value))
                self.keys.append(key)
            self.arrivals[each.base_offset] = each.arrival_ms
        log.mark_durable(log.end_offset)

    def name(self, tiered: TieredLog) -> None:
        """As `name_manifest_v1`."""
        name = ManifestName(self.epoch, tiered.manifest.number)
        if self.manifest is None or name > self.manifest:
            self.manifest = name
            end = tiered.manifest.end_offset
            assert end >= self.copied_end, "commits of what the store no longer has are gone"
            self.copied_end = end
            kept = [each for each in self.spans[:-1] if each.span.end_offset > end]
            self.spans = kept + self.spans[-1:]
        tiered.is_named = True

    def trim(self, start: int) -> None:
        self.log_start = max(self.log_start, start)
        self.spans = [each for each in self.spans if each.span.end_offset > start]


class Node:
    """A machine with a disk of its own, and a way to the store that all share."""

    def __init__(
        self, number: int, store: MemoryStore, clock: "Clock", config: TopicConfig
    ) -> None:
        self._store = store
        self._clock = clock
        self._number = number
        self._config = config
        self.fs = SimFileSystem(clock=clock)
        self.log: LocalLog | None = None
        self._starts = 0
        self.start()

    def start(self) -> None:
        self._starts += 1
        env = Env(self._clock, self.fs, SeededRng(100 * self._starts + self._number))
        self.fs.make_dir("/cache")
        cache = ObjectCache(self.fs, "/cache", 1 << 20)
        cache.open()
        self.remote = RemoteLogs(Reach(self._store, cache), env)
        logs = self.logs = LogManager(env, "/data", lambda _: self._config, self.remote)
        logs.open_directory("cluster", self._number)
        logs.load()
        parts = SegmentParts(logs, self._store, env)
        lane = InlineLanes()
        self.host = LocalLogs(
            logs, lane, lambda _: self._config, Front(), StorePart(parts, self.remote, lane)  # type: ignore[arg-type]
        )  # fmt: skip

    def crash(self, dice: random.Random) -> None:
        """A power cut: what is not synced may go."""
        self.fs = self.fs.after_crash(dice.getrandbits(32))
        self.start()

    def lose_disk(self) -> None:
        self.fs = SimFileSystem(clock=self._clock)
        self.start()

    async def lead(self, rows: Rows) -> None:
        rows.epoch += 1
        log = await self.host.load(rows.row(), OwnedShard(1, rows.epoch), rows.bytes_of)
        assert isinstance(log, LocalLog)
        self.host.serve(log, HeldCommits())
        self.log = log

    @property
    def tiered(self) -> TieredLog:
        return self.remote.logs["t", 0]


class Clock:
    """One clock for all, which goes on."""

    def __init__(self) -> None:
        self.now = NOW

    def now_ms(self) -> int:
        self.now += 1
        return self.now

    def monotonic(self) -> float:
        return self.now / 1000


def keys_and_values(data: bytes) -> Iterator[tuple[bytes | None, int]]:
    for record in read_records(memoryview(data)):
        yield None if record.key is None else bytes(record.key), int(record.value or b"")


def check(rows: Rows, log: LocalLog, *, is_compacted: bool) -> None:
    """The leader has all that is committed, as it was written, and nothing else.

    Of a compacted log the last record of each key at least.
    """
    begin = log.log.snapshot.log_start_offset
    assert begin == rows.log_start
    assert log.end_offset == len(rows.values)
    last = {key: offset for offset, key in enumerate(rows.keys)}
    if is_compacted:  # first, while nothing was brought here
        assert not log.log.snapshot.first_local, "some of it is in the store alone"
        read = {header.base_offset for _, header in batches_of(log.log, 1 << 20)}
        assert set(last.values()) <= read, "a coordinator would not find the last record of a key"
    found = dict(records_of(log, begin, len(rows.values)))
    for offset, (value, epoch) in found.items():
        assert (epoch, value) == rows.values[offset], offset
    if not is_compacted:
        assert sorted(found) == list(range(begin, len(rows.values)))
        check_arrivals(rows, log)
        return
    assert set(last.values()) <= found.keys(), "the last record of a key is gone"


def records_of(log: LocalLog, begin: int, end: int) -> Iterator[tuple[int, tuple[int, int]]]:
    """Value and epoch by offset."""
    at = begin
    while at < end:
        data = log.log.read(at, 1 << 20, up_to=end, min_one_batch=True)
        while data.unverified is not None:
            data.unverified.settle()
            data = log.log.read(at, 1 << 20, up_to=end, min_one_batch=True)
        view = memoryview(data.read())
        if not view:
            return  # compaction has left nothing behind
        for row in scan_batches(view).batches:
            for record in read_records(view[row[0] : row[0] + row[5]]):
                if record.offset >= at:
                    epoch = log.log.epochs.epoch_at(record.offset)
                    assert epoch is not None
                    yield record.offset, (int(record.value or b""), epoch)
            at = max(at, row[2] + 1)


def check_arrivals(rows: Rows, log: LocalLog) -> None:
    """Each batch came when its first leader had it; the first one may begin before the start."""
    start, end = log.log.snapshot.log_start_offset, len(rows.values)
    at = min((each for each in rows.arrivals if each >= start), default=end)
    while at < len(rows.values):
        for each in batches_between(log.log, at, len(rows.values), 1 << 20):
            assert abs(each.arrival_ms - rows.arrivals[each.base_offset]) <= 200
            at = each.last_offset + 1


class History:
    """A course of events by its seed."""

    def __init__(self, seed: int, *, is_compacted: bool = False) -> None:
        self.dice = random.Random(seed)
        self.store = MemoryStore()
        clock = Clock()
        self.is_compacted = is_compacted
        config = COMPACTED if is_compacted else CONFIG
        self.nodes = [Node(number, self.store, clock, config) for number in (1, 2, 3)]
        self.clock = clock
        self.rows = Rows()
        self.next_value = 0
        self.zombies: list[TieredLog] = []

    async def run(self) -> None:
        self.leader = self.nodes[0]
        await self.leader.lead(self.rows)
        ways = [self.write, self.write, self.write, self.copy, self.copy, self.zombie]
        ways += [self.move, self.move]
        ways += [self.clean, self.clean] if self.is_compacted else [self.drop, self.trim]
        for _ in range(STEPS):
            await self.dice.choice(ways)()
        await self.move()

    def sweep(self) -> int:
        """Objects that nothing names go, as the leader finds them; how many did."""
        order = SweepOrder(
            frozenset((KEY.topic_id,)), frozenset(), frozenset(), frozenset(), 0, 0.0,
            is_shared=True,
        )  # fmt: skip
        sweep = OrphanSweep(self.store, self.clock, self.leader.remote.find)
        return sum(sweep.round(order).removed.objects for _ in range(2))

    @property
    def log(self) -> LocalLog:
        assert self.leader.log is not None
        return self.leader.log

    def append(self, count: int) -> None:
        for _ in range(count):
            records = 1 if self.is_compacted else self.dice.choice((1, 2, 5))
            batch = build_batch([self.record() for _ in range(records)])
            self.log.log.append(memoryview(batch), acks_all=True, leader_epoch=self.rows.epoch)

    def record(self) -> tuple[int, bytes | None, bytes]:
        value = str(self.next_value).rjust(40).encode()
        self.next_value += 1
        key = b"%d" % self.dice.randrange(KEYS) if self.is_compacted else None
        return self.clock.now_ms(), key, value

    async def write(self) -> None:
        self.append(self.dice.randrange(1, 12))
        self.rows.commit(self.log)
        if self.dice.random() < 0.3:
            self.log.log.roll()
        self.log.log.mark_durable(self.log.log.sync())

    def checkpoint(self) -> None:
        """Commits are read for one, as far as they are in the log."""
        for each in self.rows.spans:
            with suppress(StorageError):
                found = self.log.batches(each.span.base_offset, each.span.end_offset, 1 << 20)
                assert found[0].base_offset == each.span.base_offset

    async def copy(self) -> None:
        tiered = self.leader.tiered
        if self.is_compacted:
            cleaned = self.leader.logs.cleaner_offsets.clean_part(("t", 0))
            while tiered.mirror_next(lambda _: None, cleaned) is not None:
                pass
        else:
            tiered.copy_next(lambda _: None)
        if tiered.manifest.number and self.dice.random() < 0.8:
            self.rows.name(tiered)
            tiered.show()
            gone = tiered.take_replaced()
            tiered.forget(gone)
            self.store.delete([key for row in gone for key in tiered.objects_of(row)])

    async def clean(self) -> None:
        """A run of the leader's cleaner."""
        log, logs = self.log.log, self.leader.logs
        log.roll()
        log.mark_durable(log.sync())
        assert learn_ages(log, 1 << 30)
        verdict = verdict_on(log, logs.cleaner_offsets, self.clock.now_ms())
        memory = CleaningMemory(24 * 4096, 0.9, 1 << 16)
        env = Env(self.clock, self.leader.fs, SeededRng(2))
        run = Cleaning(log, verdict, memory, env, self.leader.tiered)
        for part in run.slices():
            if part.in_turn is not None:
                part.in_turn()
        logs.bury(log, run.replaced)
        logs.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)

    async def drop(self) -> None:
        tiered, log = self.leader.tiered, self.log.log
        if self.rows.manifest != ManifestName(self.rows.epoch, tiered.manifest.number):
            return  # as a round has it: what is not named leaves nothing
        assert learn_times(log, 1000)
        below = tiered.droppable(ALL, self.clock.now_ms())
        while tiered.leave(below):
            pass

    async def trim(self) -> None:
        low, high = self.rows.log_start, self.log.log.snapshot.high_watermark
        if self.dice.random() < 0.5 or low == high:
            return
        start = self.dice.randrange(low, high + 1)
        self.log.log.delete_records(start)
        self.rows.trim(start)
        self.checkpoint()
        gone = self.leader.tiered.expire()
        if gone:
            self.rows.name(self.leader.tiered)
            self.leader.tiered.show()
            for row in gone:
                self.leader.tiered.forget([row])
                self.store.delete(list(self.leader.tiered.objects_of(row)))

    async def zombie(self) -> None:
        """A leader of before goes on copying: what it puts counts for nothing."""
        if self.zombies:
            zombie = self.dice.choice(self.zombies)
            try:
                if self.is_compacted:
                    zombie.mirror_next(lambda _: None, CleanPart())
                else:
                    zombie.copy_next(lambda _: None)
            except (LogOffline, StorageError):
                return

    async def move(self) -> None:
        """Another leader, or the same: what was not committed goes, and a disk perhaps."""
        self.append(self.dice.randrange(3))
        if self.dice.random() < 0.5:
            self.log.log.sync()
        self.zombies = [self.leader.tiered]
        node = self.dice.choice(self.nodes)
        match self.dice.randrange(4):
            case 0:
                node.lose_disk()
            case 1:
                node.crash(self.dice)
        self.leader = node
        await node.lead(self.rows)
        check(self.rows, self.log, is_compacted=self.is_compacted)


async def swept_segments(seed: int) -> int:
    """A history, a sweep, and a take-over by an empty disk; how many objects went."""
    history = History(seed)
    await history.run()
    removed = history.sweep()
    if history.leader.tiered.is_named:
        left = (object_of(each.key) for each in history.store.list("topics/"))
        epochs = {each.epoch for each in left if each is not None and each.epoch is not None}
        assert epochs == {history.rows.epoch}
    history.leader.lose_disk()
    await history.leader.lead(history.rows)
    check(history.rows, history.log, is_compacted=False)
    return removed


async def play_segments(seed: int, *, is_compacted: bool = False) -> int:
    """One history; the take-overs it had. AssertionError, or whatever it meets."""
    history = History(seed, is_compacted=is_compacted)
    await history.run()
    return history.rows.epoch
