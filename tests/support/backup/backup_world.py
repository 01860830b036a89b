"""A data directory with logs of several kinds on a simulated disk, its back-ups, and restores."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from config.topic import TopicConfig
from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, COMMIT, Marker, build_marker
from storage.backup.run import Backup, BackupOrder, back_up
from storage.backup.sweep import SweepLimits, Swept, sweep
from storage.cleaner.cleanable_logs import learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.directory.log_manager import LogManager
from storage.directory.topics_file import CatalogState, TopicEntry, partitions_in, render
from storage.env import Env, File, FileSystem
from storage.index.txn_index import AbortedTxn
from storage.log.log import Log
from storage.search.time_lag import OffsetTimes
from storage.tier.cluster_picture import FILES, TOPICS_FILE, USERS_FILE, Files, read_files
from storage.tier.port import ObjectStore
from storage.tier.restore import Order, Restored, restore
from storage.validation.internal_batch import own_batch
from tests.support.disk.read_only import ReadOnlyFileSystem
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT
from tests.support.records.logs import NO_BOUNDS, make_durable, records_of

DATA, CLUSTER_ID = "/data", "cluster"
PLAIN, KEYED, TRANSACTIONAL, OFFSETS = "plain", "keyed", "paid", "__consumer_offsets"
TOPICS = {
    PLAIN: TopicEntry(UUID(int=1), 2),
    KEYED: TopicEntry(UUID(int=2), 1),
    TRANSACTIONAL: TopicEntry(UUID(int=3), 1),
    OFFSETS: TopicEntry(UUID(int=4), 1),
}
T0 = 1_700_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Name = tuple[str, int]
Row = tuple[int, int, bytes | None, bytes | None]
"""Offset, time, key and value."""


class LogContent(NamedTuple):
    """All that a reader can learn of a log."""

    start_offset: int
    end_offset: int
    records: tuple[Row, ...]
    aborted: tuple[AbortedTxn, ...]


class WatchedFiles(ReadOnlyFileSystem):
    """Contents of a file system, for reading; a broker may be at work after each small file."""

    def __init__(self, inner: FileSystem, on_read: Callable[[str], object]) -> None:
        super().__init__(inner)
        self._on_read = on_read

    def open(self, path: str, *, create: bool = False, write: bool = True) -> File:
        file = super().open(path, create=create, write=write)
        if path.endswith(".log"):
            self._on_read(path)
        return file

    def read_bytes(self, path: str) -> bytes:
        data = super().read_bytes(path)
        self._on_read(path)
        return data


class BackupWorld:
    """A broker's directory, and what is done to it and with it."""

    def __init__(self, topics: Mapping[str, TopicEntry] = TOPICS, **settings: Any) -> None:
        self.clock = SimClock(T0)
        self.fs = SimFileSystem(clock=self.clock)
        self.env = sim_env(1, self.fs, self.clock)
        self._settings = {"segment_bytes": 900, "index_interval_bytes": 256, **settings}
        self.topics = dict(topics)
        self.sequence = 0
        self._written = 0
        self._seeds = 100
        self.on_read: Callable[[str], object] = lambda path: None
        """Called after a back-up has read a small file, or opened one of records."""
        self.appended: dict[Name, dict[int, Row | None]] = defaultdict(dict)
        """All records that were ever appended, by offset; None: a marker."""
        self.start()
        for topic, entry in self.topics.items():
            for partition in range(entry.partition_count):
                self.manager.create_log(topic, partition, entry.topic_id, self.config_of(topic))
        self.write_top()

    manager: LogManager

    def config_of(self, topic: str) -> TopicConfig:
        settings = {**NO_BOUNDS, **self._settings}
        if topic in {KEYED, OFFSETS}:
            settings |= {"cleanup_policy": COMPACT, "delete_retention_ms": 500}
        return TopicConfig(**settings)

    def start(self) -> None:
        """A start on the directory as it is."""
        self.manager = LogManager(self.env, DATA, self.config_of)
        self.manager.open_directory(CLUSTER_ID, 1)
        self.manager.load()

    def write_top(self) -> None:
        """The files at the top of the directory."""
        state = CatalogState(self.topics)
        self.fs.write_atomically(f"{DATA}/{TOPICS_FILE}", render(state))
        self.fs.write_atomically(f"{DATA}/{USERS_FILE}", b'{"users": []}\n')

    def log(self, topic: str, partition: int = 0) -> Log:
        """One of its logs."""
        return self.manager.logs[topic, partition]

    def fill(self, count: int, topic: str = PLAIN, partition: int = 0) -> None:
        """So many batches."""
        for _ in range(count):
            self._written += 1
            number = self._written
            value = b"%d " % number * 30
            if topic == KEYED and number % 9 == 0:
                value = b""
            self._append(topic, partition, b"key %d" % (number % 7), value or None)

    def fill_all(self, count: int) -> None:
        """So many batches in each log; a transaction with some of them is aborted."""
        for topic, entry in self.topics.items():
            for partition in range(entry.partition_count):
                self.fill(count, topic, partition)
        if TRANSACTIONAL in self.topics:
            self.transaction(count // 2 + 1, is_committed=False)
            self.transaction(count // 2 + 1, is_committed=True)

    def _append(
        self, topic: str, partition: int, key: bytes, value: bytes | None, **batch: Any
    ) -> None:
        at = self.clock.now_ms() - self._written % 5 * 1000  # out of order
        data = build_batch([(at, key, value)], **batch)
        log = self.log(topic, partition)
        put = log.append(memoryview(data), acks_all=True, leader_epoch=log.leader_epoch)
        self.appended[topic, partition][put.base_offset] = put.base_offset, at, key, value
        self.clock.advance(7)

    def transaction(self, count: int, *, is_committed: bool | None) -> None:
        """One with so many batches; None: it stays open."""
        log = self.log(TRANSACTIONAL)
        for _ in range(count):
            self._append(
                TRANSACTIONAL, 0, b"p", b"in a transaction " * 10, producer_id=5, producer_epoch=0,
                base_sequence=self.sequence, transactional=True,
            )  # fmt: skip
            self.sequence += 1
        if is_committed is not None:
            marker = build_marker(
                Marker(COMMIT if is_committed else ABORT, 0), 5, 0, self.clock.now_ms()
            )
            batch = own_batch(marker, self.clock.now_ms())
            put = log.append_own(batch, acks_all=False, leader_epoch=log.leader_epoch)
            self.appended[TRANSACTIONAL, 0][put.base_offset] = None

    def sync(self) -> None:
        """All that is written is on the disk, and the directory says so."""
        for log in self.manager.logs.values():
            make_durable(log)
        self.manager.checkpoint()

    def compact(self, topic: str = KEYED) -> None:
        """A run of the cleaner."""
        log = self.log(topic)
        log.roll()
        self.sync()
        assert learn_ages(log, 1 << 30)
        verdict = verdict_on(log, self.manager.cleaner_offsets, self.clock.now_ms())
        larger = dataclasses.replace(log.config, segment_bytes=4000)
        log.reconfigure(larger)
        run = Cleaning(log, verdict, CleaningMemory(24 * 4096, 0.9, 1 << 20), self.env)
        for part in run.slices():
            if part.in_turn is not None:
                part.in_turn()
        self.manager.bury(log, run.replaced)
        self.manager.cleaned(log, run.first_dirty, run.stats.next_horizon_ms)
        self.manager.remove_deleted(hurry=True)

    def retain_from(self, offset: int, topic: str = PLAIN, partition: int = 0) -> None:
        """Retention takes what is before the offset."""
        log = self.log(topic, partition)
        while self.manager.remove_segments(log, offset).has_more:
            pass
        self.manager.remove_deleted(hurry=True)

    # --- back-ups ---

    def files(self) -> Files:
        """Those at the top, as a back-up takes them."""
        return read_files(self.fs, DATA, lambda text: text, (*FILES, USERS_FILE))

    def back_up(self, store: ObjectStore, **order: Any) -> Backup:
        """One run; the directory may be read and not be written."""
        fs: Any = WatchedFiles(self.fs, self.on_read)
        env = Env(self.clock, fs, sim_env(self._next_seed()).rng)
        return back_up(env, store, BackupOrder(DATA, self.files, partitions_in, **order))

    def _next_seed(self) -> int:
        self._seeds += 1
        return self._seeds

    def sweep(self, store: ObjectStore, keep_ms: int = 0, orphan_age_ms: int = 0) -> Swept:
        """The sweep that the command ends with."""
        now_ms = self.clock.now_ms()
        limits = SweepLimits(now_ms - keep_ms, now_ms - orphan_age_ms)
        return sweep(store, partitions_in, limits)

    def content(self) -> Mapping[Name, LogContent]:
        """Contents of the directory, up to where no transaction is open."""
        return content_of(self.manager)


def content_of(manager: LogManager) -> Mapping[Name, LogContent]:
    """Views of each log, as readers have them."""
    return {name: _content(log) for name, log in manager.logs.items()}


def _content(log: Log) -> LogContent:
    snapshot = log.snapshot
    end = snapshot.last_stable_offset
    rows = tuple(
        (each.offset, each.timestamp, each.key, each.value)
        for each in records_of(log)
        if each.offset < end
    )
    return LogContent(
        snapshot.log_start_offset,
        end,
        rows,
        tuple(log.search.aborted(snapshot.log_start_offset, end)),
    )


def arrivals_of(log: Log) -> dict[int, OffsetTimes]:
    """Times of each record, by its offset."""
    found = {}
    for offset in range(log.snapshot.log_start_offset, log.snapshot.last_stable_offset):
        times = log.search.times_at(offset)
        if times is not None:
            found[times.offset] = times
    return found


def restored(
    world: BackupWorld, store: ObjectStore, at_ms: int | None = None
) -> tuple[LogManager, Restored]:
    """Another machine with all of a back-up, started."""
    env = sim_env(77, SimFileSystem(clock=world.clock), world.clock)
    done = restore(env, store, Order("/new", partitions_in, at_ms, lambda _: True))
    manager = LogManager(env, "/new", world.config_of)
    manager.open_directory("", 1)
    manager.load()
    return manager, done
