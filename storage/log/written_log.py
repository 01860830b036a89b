"""The written part of a log: appends by one writer, reads by many on immutable snapshots.

Rules: a log is changed only by the holder of its partition's writer gate, on whichever thread that
is. `mark_durable` may come from the loop meanwhile: who changes something has the gate, and shows
what became durable when he leaves it. Everything a reader sees hangs on `snapshot`, which is
replaced by one assignment, in the gate, after the write succeeded. A refused or failed append
leaves no trace. `sync` belongs to the fsync thread (`storage.log.durability`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import stated_crc
from storage.env import Env
from storage.errors import CorruptLog, DiskError, LogOffline, StorageError
from storage.files.file_slice import FetchData
from storage.files.partition_files import PartitionFiles
from storage.locks import Lock
from storage.log.appender import LogAppender
from storage.log.compaction_state import Compaction
from storage.log.durability import Durability
from storage.log.reader import read
from storage.log.recent_arrivals import RecentArrivals
from storage.log.segment_tiers import SegmentTiers
from storage.producers.leader_epochs import LeaderEpochs
from storage.producers.producer_state import ProducerStates, RememberedBatch
from storage.recovery.loading import LoadedLog
from storage.retention.undelivered import Undelivered
from storage.search.log_search import LogSearch
from storage.segment.log_snapshot import AppendResult, LogSnapshot, Tail
from storage.segment.trusted_indexes import TrustedIndexes
from storage.validation.checked_batch import CheckedBatch
from storage.validation.unpacking import Work

_new = tuple.__new__


class WrittenLog:
    """A log as it is written and read; `storage.log.log.Log` is all of it."""

    __slots__ = (
        "_appender",
        "_gate",
        "_has_marks",
        "_least_epoch",
        "_on_start_moved",
        "_start_is_durable",
        "_start_offset",
        "_syncs",
        "_tail",
        "arrivals",
        "compaction",
        "config",
        "corruption",
        "durability",
        "files",
        "is_closed",
        "partition",
        "search",
        "snapshot",
        "tiers",
        "topic",
        "topic_id",
        "undelivered",
    )

    snapshot: LogSnapshot
    """State for readers; replaced as a whole."""
    config: TopicConfig
    """The topic's settings as the log follows them. Read only."""

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        topic: str,
        partition: int,
        topic_id: UUID | None,
        loaded: LoadedLog,
        config: TopicConfig,
        env: Env,
        indexes: TrustedIndexes,
        on_start_moved: Callable[[], None],
    ) -> None:
        """A log as it was loaded; nothing is opened. `on_start_moved` makes a new start durable."""
        self.topic, self.partition = topic, partition
        self.topic_id = topic_id
        self.files: PartitionFiles = loaded.files
        self.is_closed, self.compaction = False, Compaction()
        self.config = config
        self._on_start_moved = on_start_moved
        self._start_offset, self._start_is_durable = loaded.start_offset, True
        self.undelivered: Callable[[], Sequence[Undelivered]] = tuple  # set where queues are known
        self.corruption = loaded.corruption
        """The damage above which the log is kept as it is, and not written or read; or None."""
        self._appender = LogAppender(loaded, config, env, indexes)
        self.arrivals: RecentArrivals | None = None
        """Those of single batches, where they are kept."""
        self.search: LogSearch = LogSearch(indexes, self)
        self.durability: Durability = Durability(env.clock, loaded.end_offset, config)
        self._gate, self._has_marks = Lock(), False
        self._syncs, self._least_epoch = Lock(), -1
        self._tail: Tail | None = None
        self.tiers: SegmentTiers = SegmentTiers(loaded.segments)
        self._publish()
        self._settle()  # what a start found ended is settled: all that was found is durable

    def __repr__(self) -> str:
        """As the directory is called, with the offsets."""
        begin, end = self.snapshot.log_start_offset, self.snapshot.log_end_offset
        return f"Log({self.topic}-{self.partition}, {begin}..{end})"

    @property
    def failed(self) -> StorageError | None:
        """The first fsync error, or what `fail` was given.

        It is final: the log takes no more writes until it is reopened.
        """
        return self.durability.failed

    @property
    def fault(self) -> StorageError | None:
        """The reason why it takes no more writes: a failed disk, or damage that the start found."""
        return self.durability.failed or self.corruption

    def fail(self, error: StorageError) -> None:
        """Take no more writes until it is reopened: what they need elsewhere is not durable."""
        self.durability.fail(error)

    @property
    def durable_offset(self) -> int:
        """Everything below is on the disk."""
        return self.durability.durable_offset

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and not yet synced; 0 once it is closed: none will be."""
        return 0 if self.is_closed else self.durability.dirty_bytes

    @property
    def first_dirty_at(self) -> float | None:
        """Since when (monotonic seconds) something is unsynced; None if nothing is."""
        return self.durability.first_dirty_at

    def keep_arrivals(self) -> None:
        """Has arrivals of single batches kept, from the log's end on."""
        self.arrivals = RecentArrivals(self._appender.end_offset)

    @property
    def producers(self) -> ProducerStates:
        """State of idempotent and transactional producers. Read only."""
        return self._appender.producers

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow new settings from the next append on; index sizes from the next segment on."""
        self.config = config
        self._appender.reconfigure(config)
        self.search.reconfigure(config)
        self.durability.reconfigure(config)

    def needs_lane(self, records: memoryview) -> bool:
        """True when checking these records takes too long for the loop."""
        return self._appender.needs_lane(records)

    def append_own(self, batch: CheckedBatch, *, acks_all: bool, leader_epoch: int) -> AppendResult:
        """Append a batch that the broker made: limits on times and sizes are for clients."""
        own = self._appender.own(batch)
        result = self.append(own, acks_all=acks_all, leader_epoch=leader_epoch)
        if self._appender.unstable_offset is not None:
            with self._change():
                self._settle()
        return result

    def append(
        self, batch: memoryview | CheckedBatch, *, acks_all: bool, leader_epoch: int,
        work: Work | None = None,
    ) -> AppendResult:  # fmt: skip
        """Append exactly one batch of format 2 from a client; patched in place.

        Raises KafkaError when it is refused (`InvalidRecordError` when for its records);
        StorageError when the disk failed or the log is offline; MistimedBatch when it needs a
        rewrite: the rewritten batch may be appended, as long as nothing else was since;
        TooMuchWork when it unpacks to more than `work` allows for. Nothing is stored then.
        """
        try:
            with self._gate:
                return self._append(batch, leader_epoch, work, acks_all=acks_all)
        except CorruptLog as error:  # its own log, not the batch: nothing can be written
            raise LogOffline(error.path, error.message) from error
        except DiskError as error:
            self._end_where_others_go_on(error)
            raise
        finally:
            if self._has_marks:
                self._catch_up()

    def _end_where_others_go_on(self, error: DiskError) -> None:
        """A log alone waits for its device. In a fleet another disk has what is committed."""
        if error.is_of_device and self.durability.counts_commits:
            self.durability.fail(error)

    def _append(
        self, batch: memoryview | CheckedBatch, epoch: int, work: Work | None, *, acks_all: bool
    ) -> AppendResult:
        if self.durability.failed is not None or self.corruption is not None or self.is_closed:
            raise self._offline()
        if epoch < self._least_epoch:
            self._check_epoch(batch, epoch)
        appender = self._appender
        try:
            placed = appender.append(batch, epoch, work)
            if isinstance(placed, RememberedBatch):
                return self._duplicate(placed, acks_all=acks_all)
            base_offset, last_offset, stamp_ms, segment_base, position, skew_ms, dirty, data = (
                placed
            )
            if self.arrivals is not None:
                self.arrivals.add(base_offset, appender.last_arrival_ms, stated_crc(data))
            durability = self.durability
            waits = durability.promises(last_offset, acks_all=acks_all)
            if waits:
                durability.hide(base_offset, segment_base, position)
            durability.wrote(appender.total_bytes)
            self._tail = _new(Tail, (base_offset, segment_base, position))
            self._publish()
        finally:
            if appender.segments is not self.tiers.local:
                self._publish()  # a batch that was not stored may have ended a segment
        start, end = self._start_offset, last_offset + 1
        found = (base_offset, last_offset, stamp_ms, start, False, end, waits, skew_ms, dirty)
        result: AppendResult = _new(AppendResult, found)
        return result

    def _duplicate(self, batch: RememberedBatch, *, acks_all: bool) -> AppendResult:
        last, durability = batch.last_offset, self.durability
        waits = durability.durable_offset <= last and durability.promises(last, acks_all=acks_all)
        stored = (batch.base_offset, last, batch.timestamp, self._start_offset)
        end = self._appender.end_offset
        return AppendResult(*stored, duplicate=True, end_offset=end, waits_for_disk=waits)

    def end_epochs_before(self, epoch: int) -> None:
        """Refuse appends of earlier leaders from now on: their checks may take long, on a thread.

        What is under way ends first. What is committed already may come all the same. Blocks.
        """
        with self._gate:
            self._least_epoch = epoch

    def _check_epoch(self, batch: memoryview | CheckedBatch, epoch: int) -> None:
        if not isinstance(batch, CheckedBatch) or not batch.is_committed:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"{self.topic}-{self.partition}: epoch {epoch} has ended",
            )

    def _offline(self) -> LogOffline:
        reason = self.fault
        if reason is None:
            return LogOffline(self.files.path, "the log is closed")
        return LogOffline(reason.path, reason.message)

    # --- publish ---

    def _publish(self) -> None:
        appender, tiers = self._appender, self.tiers
        if appender.segments is not tiers.local:
            tiers.join(appender.segments, self._start_offset)
        segments = tiers.segments
        hidden = self.durability.first_hidden
        if hidden is None:
            watermark, place = appender.end_offset, None
        else:
            watermark, place = hidden
        unstable = appender.unstable_offset
        self.snapshot = _new(
            LogSnapshot,
            (
                self._start_offset,
                appender.end_offset,
                watermark,
                watermark
                if unstable is None or unstable > watermark
                else max(unstable, self._start_offset),
                segments,
                segments[-1].size_bytes,
                appender.total_bytes,
                place,
                self._tail,
                tiers.first_local,
            ),
        )

    def sync(self) -> int:
        """Make everything that is written durable; the offset up to which it is. Blocks.

        One caller at a time, on any thread. The first DiskError is final and raised ever after.
        Nothing is written or raised once the log is closed: its files may be another's by then.
        """
        with self._syncs:
            if self.is_closed:
                return self.snapshot.log_end_offset
            return self._synced()

    def _synced(self) -> int:
        try:
            return self.durability.sync(self.snapshot)
        except DiskError:
            if self.is_closed:
                return self.snapshot.log_end_offset
            raise

    def vouch(self) -> None:
        """Leave a mark of what `sync` made durable, for a start after a crash. Blocks."""
        with self._syncs:
            if not self.is_closed:
                self.durability.vouch(self.files)

    def mark_durable(self, offset: int) -> None:
        """On the loop, with what `sync` returned: hidden batches appear."""
        self.durability.reached(offset)
        self._has_marks = True
        self._catch_up()

    def _catch_up(self) -> None:
        """Publish what became durable, unless a change is under way: that does it at its end.

        The gate is asked for after the mark was made, and the mark after the gate was left.
        """
        while self._has_marks and self._gate.acquire(blocking=False):
            try:
                self._has_marks = False
                self.durability.show()
                self._publish()
                self._settle()
            finally:
                self._gate.release()

    def _settle(self) -> None:
        """Transactions whose marker is below the high watermark hold nobody up any longer."""
        if self._appender.unstable_offset is not None:
            self._appender.watermark_moved(self.snapshot.high_watermark)
            self._publish()

    # --- read: any thread, on the snapshot of the moment ---

    def read(self, offset: int, max_bytes: int, *, up_to: int, min_one_batch: bool) -> FetchData:
        """Whole batches from the one with `offset` to before `up_to`; see `storage.log.reader`.

        Raises KafkaError OFFSET_OUT_OF_RANGE (1) outside of the log, DiskError, and CorruptLog
        when the log is damaged there. While `unverified` is set the bytes must not be served:
        settle it, then ask again.
        """
        try:
            return self.search.on_snapshot(
                lambda snapshot: read(
                    snapshot,
                    *self.search.lookup,
                    offset,
                    max_bytes,
                    up_to=up_to,
                    min_one_batch=min_one_batch,
                )
            )
        except (DiskError, CorruptLog) as error:
            if offset < self._start_offset:  # removed while we looked
                reason = f"Offset {offset} is before the log start {self._start_offset}"
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason) from error
            raise

    @property
    def epochs(self) -> LeaderEpochs:
        """Leader epochs and their first offsets."""
        return self._appender.epochs

    @property
    def leader_epoch(self) -> int:
        """The epoch of this leader: the latest that wrote here, 0 if none did."""
        return self._appender.leader_epoch

    @property
    def takes_changes(self) -> bool:
        """True when it is in service: open, its disk well, without damage."""
        return not self.is_closed and self.fault is None

    @contextmanager
    def _change(self) -> Iterator[None]:
        """While the state changes on a lane, what became durable meanwhile waits for the end."""
        try:
            with self._gate:
                yield
        finally:
            if self._has_marks:
                self._catch_up()
