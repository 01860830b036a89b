"""A data directory with one partition, as a broker drives it, with a tier or without one."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from broker.tier.trash import Trash
from config.topic import TopicConfig
from storage.cleaner.cleanable_logs import learn_ages, verdict_on
from storage.cleaner.cleaner import Cleaning, CleaningMemory
from storage.directory.log_manager import LogManager
from storage.directory.topics_file import CatalogState, TopicEntry, parse, partitions_of, render
from storage.env import Env
from storage.files.file_slice import FetchData
from storage.log.lifecycle import learn_times
from storage.log.log import Log
from storage.retention.cleanability import Verdict
from storage.retention.plan import RetentionLimits
from storage.tier.card import claim
from storage.tier.cluster_picture import TOPICS_FILE, Content, Files, PictureWriter
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.names import PartitionKeys
from storage.tier.object_cache import ObjectCache
from storage.tier.orphans import OrphanSweep, SweepOrder, SweepReport
from storage.tier.port import ObjectStore, StoreError
from storage.tier.remote_logs import RemoteLogs
from storage.tier.remote_object import Reach
from storage.tier.restore import Order, restore
from storage.tier.tiered_log import TieredLog
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.cleaning import MEMORY
from tests.support.records.logs import NO_BOUNDS, make_durable

LOG_DIR = "/data"
CACHE_DIR = "/cache"
TOPIC_ID = UUID(int=7)
CLUSTER_ID = "cluster"
NOW = 1_700_000_000_000
MOST_STARTS = 1000
"""Of one life."""
EVERYTHING = RetentionLimits(retention_ms=0, retention_bytes=-1)
"""Local limits by which all that the store has may leave."""
SETTINGS: dict[str, Any] = {
    **NO_BOUNDS,
    "segment_bytes": 900,
    "index_interval_bytes": 200,
    "horolog_zone_bytes": 4096,
    "file_delete_delay_ms": 0,
}


class TierLife:
    """The partition `t-0`. Each start has a random generator of its own, and an empty cache."""

    def __init__(
        self,
        store: ObjectStore | None,
        *,
        fs: SimFileSystem | None = None,
        clock: SimClock | None = None,
        cache_bytes: int = 1 << 24,
        starts: int = 0,
        topic_id: UUID = TOPIC_ID,
        **settings: Any,
    ) -> None:
        """`store` None: without a tier. A directory that is there is started.

        `starts`: earlier ones beside this store, each of which has drawn names of its own.
        """
        self.clock = clock or SimClock(NOW)
        self.fs = fs or SimFileSystem(clock=self.clock)
        self.store = store
        self.cache_bytes = cache_bytes
        self.settings = settings
        self.config = TopicConfig(**{**SETTINGS, **settings})
        self.starts = starts
        self.topic_id = topic_id
        self.deleted: frozenset[UUID] = frozenset()
        """Topics that were here before, under the same name."""
        self.manager = self.started(self.fs)

    remote: RemoteLogs | None
    cache: ObjectCache | None = None
    trash: Trash
    orphans: OrphanSweep

    @property
    def log(self) -> Log:
        return self.manager.logs["t", 0]

    @property
    def tiered(self) -> TieredLog:
        assert self.remote is not None
        return self.remote.of(self.log)

    def started(self, fs: SimFileSystem) -> LogManager:
        """A log manager on that disk; it is loaded."""
        self.starts += 1
        env = Env(self.clock, fs, SeededRng(self.starts))
        self.remote = None
        if self.store is not None:
            self.cache = ObjectCache(fs, CACHE_DIR, self.cache_bytes)
            self.cache.open()
            self.remote = RemoteLogs(Reach(self.store, self.cache), env)
            self.trash = Trash(self.store, self.clock.monotonic)
            self.orphans = OrphanSweep(self.store, self.clock, self.remote.find)
        manager = LogManager(env, LOG_DIR, lambda topic: self.config, self.remote)
        manager.open_directory(CLUSTER_ID, 1)
        manager.load()
        return manager

    # --- steps of a broker ---

    def create(self) -> None:
        self.manager.create_log("t", 0, self.topic_id, self.config)

    def create_again(self) -> None:
        """The topic is deleted, and there is a new one of its name."""
        self.manager.delete_log("t", 0)
        if self.remote is not None:
            self.deleted |= {self.topic_id}
            for tiered in self.remote.take_deleted():
                self.trash.put([*tiered.segment_names(), *tiered.manifest_names()], 0)
        self.topic_id = UUID(int=self.topic_id.int + 1)
        self.create()

    def sync(self) -> None:
        make_durable(self.log)

    def copy_next(self) -> RemoteSegment | None:
        """One segment, if one is due. StorageError."""
        is_rewritten = self.manager.is_rewritten(self.log)
        row = self.mirror_next() if is_rewritten else self.tiered.copy_next(lambda size: None)
        self.tiered.show()
        return row

    def mirror_next(self) -> RemoteSegment | None:
        """One segment of a log that compaction rewrites. StorageError."""
        cleaned = self.manager.cleaner_offsets.clean_part(("t", 0))
        return self.tiered.mirror_next(lambda size: None, cleaned)

    def copy_all(self) -> None:
        """All that is due. StorageError."""
        while self.copy_next() is not None:
            continue

    def drop(self, below: int | None = None) -> None:
        """Local segments leave, all that may or those below an offset. StorageError."""
        assert learn_times(self.log, 1000)
        tiered = self.tiered
        is_rewritten = self.manager.is_rewritten(self.log)
        now_ms = self.clock.now_ms() + 10**15
        offset = tiered.leaving.droppable(EVERYTHING, now_ms, is_rewritten=is_rewritten)
        if tiered.leaving.has_any:
            tiered.fence()
        while leaving := tiered.leave(offset if below is None else min(offset, below)):
            self.manager.bury_copied(self.log, leaving)

    def expire(self) -> None:
        """Segments before the log start leave the store, and replaced ones. StorageError."""
        gone = (*self.tiered.expire(), *self.tiered.take_replaced())
        self.tiered.show()
        self.delete(gone)

    def verdict(self) -> Verdict:
        """Present cleanability. StorageError."""
        assert learn_ages(self.log, 1 << 30)
        return verdict_on(self.log, self.manager.cleaner_offsets, self.clock.now_ms())

    def clean(self, verdict: Verdict, memory: CleaningMemory = MEMORY) -> None:
        """A run of the cleaner. StorageError: what it replaced stays replaced."""
        remote = None if self.remote is None else self.tiered
        env = Env(self.clock, self.fs, SeededRng(self.starts))
        run = Cleaning(self.log, verdict, memory, env, remote)
        slices = run.slices()
        try:
            for part in slices:
                if part.in_turn is not None:
                    part.in_turn()
        finally:
            slices.close()
            self.manager.bury(self.log, run.replaced)
        self.manager.cleaned(self.log, run.first_dirty, run.stats.next_horizon_ms)

    def delete(self, gone: Sequence[RemoteSegment]) -> None:
        """Objects go. StoreError: some may have, and `empty_trash` tries again."""
        self.tiered.forget(gone)
        self.trash.put([key for row in gone for key in self.tiered.objects_of(row)], 0)
        self.empty_trash()

    def empty_trash(self) -> None:
        """Objects go that are due. StoreError, after which they wait."""
        while leaving := self.trash.take():
            try:
                self.trash.remove(leaving)
            except StoreError:
                self.trash.put_back(leaving)
                raise

    def sweep(self) -> SweepReport:
        """A round over all objects, however young. StoreError, SweepStopped."""
        order = SweepOrder(
            frozenset((self.topic_id,)),
            self.deleted,
            self.trash.names(),
            frozenset(),
            0,
            0.0,
            past_ms=0,
        )
        report = self.orphans.round(order)
        self.deleted -= report.forgotten
        return report

    def remove_before(self, offset: int) -> None:
        """Retention of both tiers."""
        while self.manager.remove_segments(self.log, offset).has_more:
            continue

    def remove_files(self) -> None:
        while self.manager.remove_deleted():
            continue

    def stop(self) -> None:
        """A clean stop."""
        assert self.manager.close()
        if self.cache is not None:
            self.cache.close()

    def restart(self) -> None:
        """A clean stop and a start."""
        self.stop()
        self.manager = self.started(self.fs)

    def kill(self) -> None:
        """A kill -9 and a start: the page cache stays."""
        self.fs = self.fs.after_kill()
        self.manager = self.started(self.fs)

    def cut_power(self, seed: int) -> None:
        """A power cut and a start."""
        self.fs = self.fs.after_crash(seed)
        self.manager = self.started(self.fs)

    def restored(self, store: ObjectStore) -> "TierLife | None":
        """The partition out of the store alone, on another disk; None where nothing was copied.

        StorageError.
        """
        claim(store, CLUSTER_ID)
        state = CatalogState({"t": TopicEntry(self.topic_id, 1)})
        content = Content(CLUSTER_ID, 1, {TOPICS_FILE: render(state).decode()})
        PictureWriter(store, self.clock).write_if_changed(content)
        fs, starts = SimFileSystem(clock=self.clock), self.starts + MOST_STARTS
        env = Env(self.clock, fs, SeededRng(starts))
        found = restore(env, store, Order(LOG_DIR, partitions_in))
        if found.partitions[0].manifest is None:
            return None
        return TierLife(
            store, fs=fs, clock=self.clock, cache_bytes=self.cache_bytes, starts=starts,
            topic_id=self.topic_id, **self.settings,
        )  # fmt: skip

    # --- what readers see ---

    def read(self, offset: int, max_bytes: int = 1 << 20, *, up_to: int | None = None) -> bytes:
        """Bytes of a fetch, once all that it takes was brought. StorageError, KafkaError."""
        return self.fetched(offset, max_bytes, up_to=up_to).read()

    def fetched(self, offset: int, max_bytes: int, *, up_to: int | None = None) -> FetchData:
        """Slices of files that hold them."""
        up_to = self.log.snapshot.high_watermark if up_to is None else up_to
        for _ in range(6):
            data = self.log.read(offset, max_bytes, up_to=up_to, min_one_batch=True)
            if data.unverified is None:
                return data
            data.unverified.settle()
        raise AssertionError(f"offset {offset} is never here")


def partitions_in(files: Files) -> Sequence[PartitionKeys]:
    """The partitions of a picture's topics."""
    return partitions_of(parse(files[TOPICS_FILE].encode()))
