"""One partition's log: appends by one writer, reads by many on immutable snapshots.

Rules: a `Log` is changed only by the holder of its partition's writer gate, on whichever thread
that is. `mark_durable` may come from the loop meanwhile: who changes something has the gate, and
shows what became durable when he leaves it. Everything a reader sees hangs on `snapshot`, which is
replaced by one assignment, in the gate, after the write succeeded. A refused or failed append
leaves no trace. `sync` belongs to the fsync thread (`storage.log.durability`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from storage.env import Env
from storage.errors import CorruptLog, DiskError, LogOffline, NoSpace, StorageError
from storage.files.file_slice import FetchData
from storage.files.partition_files import PartitionFiles
from storage.locks import Lock
from storage.log.appender import LogAppender
from storage.log.compaction_state import Compaction
from storage.log.durability import Durability
from storage.log.reader import read
from storage.log.segment_tiers import SegmentTiers
from storage.producers.leader_epochs import LeaderEpochs
from storage.producers.producer_state import ProducerStates, RememberedBatch
from storage.recovery.loading import LoadedLog
from storage.retention.undelivered import Undelivered
from storage.search.log_search import LogSearch
from storage.segment.log_snapshot import AppendResult, LogSnapshot, Tail, TimestampOffset
from storage.segment.removal import STEP_SEGMENTS, RemovalStep, rename_away, wholly_before
from storage.segment.segment import Segment
from storage.segment.trusted_indexes import TrustedIndexes
from storage.validation.batch_rules import InvalidRecordError
from storage.validation.checked_batch import CheckedBatch
from storage.validation.unpacking import Work

__all__ = ["AppendResult", "InvalidRecordError", "Log", "TimestampOffset"]

_new = tuple.__new__


class Log:
    """The log of one partition."""

    __slots__ = (
        "_appender",
        "_gate",
        "_has_marks",
        "_on_start_moved",
        "_start_is_durable",
        "_start_offset",
        "_tail",
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
        self.search: LogSearch = LogSearch(indexes, self)
        self.durability: Durability = Durability(env.clock, loaded.end_offset, config)
        self._gate, self._has_marks = Lock(), False
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

    def fail(self, error: StorageError) -> None:
        """Take no more writes until it is reopened: what they need elsewhere is not durable."""
        self.durability.fail(error)

    @property
    def durable_offset(self) -> int:
        """Everything below is on the disk."""
        return self.durability.durable_offset

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and not yet synced."""
        return self.durability.dirty_bytes

    @property
    def first_dirty_at(self) -> float | None:
        """Since when (monotonic seconds) something is unsynced; None if nothing is."""
        return self.durability.first_dirty_at

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
        finally:
            if self._has_marks:
                self._catch_up()

    def _append(
        self, batch: memoryview | CheckedBatch, epoch: int, work: Work | None, *, acks_all: bool
    ) -> AppendResult:
        if self.durability.failed is not None or self.corruption is not None or self.is_closed:
            raise self._offline()
        appender = self._appender
        try:
            placed = appender.append(batch, epoch, work)
            if isinstance(placed, RememberedBatch):
                return self._duplicate(placed, acks_all=acks_all)
            base_offset, last_offset, stamp_ms, segment_base, position, skew_ms, dirty = placed
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

    def _offline(self) -> LogOffline:
        reason = self.failed or self.corruption
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
        """
        try:
            return self.durability.sync(self.snapshot)
        except DiskError:
            if self.is_closed:
                return self.snapshot.log_end_offset
            raise

    def vouch(self) -> None:
        """Leave a mark of what `sync` made durable, for a start after a crash. Blocks."""
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

    # --- time passes: start offset, segments, end of life ---

    def remove_segments(self, start_offset: int, *, all_go: bool = False) -> RemovalStep:
        """Raise the start offset, durably, and take segments before it out of the log.

        Some at a time: call it again while `has_more`. `all_go`: the active one goes as well, so
        a new one begins first, if nothing was appended after `start_offset` was decided. Holds the
        writer gate and blocks: run it on a lane. DiskError: what was done stays done.
        """
        if not self.takes_changes or self.compaction.is_running:
            return RemovalStep((), self._start_offset, has_more=False)
        with self._change():
            if all_go and self._appender.end_offset == start_offset:
                self._appender.roll()
            at_most = self._raise_start(min(start_offset, self.snapshot.high_watermark))
            before = wholly_before(self._appender.segments, self._start_offset)
            self._take_out(leaving := before[:at_most])
        return RemovalStep(leaving, self._start_offset, has_more=len(before) > len(leaving))

    def _take_out(self, leaving: Sequence[Segment], *, sync: bool = True) -> None:
        """The oldest local segments leave the directory, durably if asked; readers see it."""
        if leaving:
            rename_away(leaving)
            if sync:
                self.files.fs.sync_dir(self.files.path)
            self._appender.drop_segments(len(leaving))
            self.compaction.forget_segments()
        self._publish()

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """One closed segment counts for several from now on; holding the writer gate.

        LogOffline when it is out of service: nothing has changed.
        """
        if not self.takes_changes:
            raise self._offline()
        with self._change():
            self._appender.replace_segments(old, new)
            self._publish()

    # --- the tier's store ---

    def show_uploaded(self, segments: tuple[Segment, ...], end_offset: int) -> None:
        """All segments that the store has, in order; they count where the directory has none.

        Holds the writer gate.
        """
        with self._change():
            for gone in set(self.tiers.uploaded).difference(segments):
                self.search.forget(gone)
            self.tiers.show(segments, end_offset)
            self.tiers.join(self._appender.segments, self._start_offset)
            self._publish()

    def drop_local(self, below: int) -> tuple[Segment, ...]:
        """Take segments that end at or before `below` out of the directory; their files go later.

        The store has them, and `horolog-remote` says so, durably. Holds the writer gate and
        blocks. DiskError: what was done stays done.
        """
        if not self.takes_changes or self.compaction.is_running:
            return ()
        with self._change():
            below = min(below, self.tiers.uploaded_end)
            leaving = wholly_before(self._appender.segments, below)[:STEP_SEGMENTS]
            self._take_out(leaving, sync=False)  # a start would, too
        return leaving

    def roll(self) -> bool:
        """End the active segment, unless it is empty; whether that happened.

        Holds the writer gate and blocks: run it on a lane. The closed segment's files become
        durable with the next `sync`. DiskError, CorruptIndex, CorruptLog: nothing has changed.
        """
        if not self.takes_changes:
            return False
        with self._change():
            rolled = self._appender.roll()
            self._publish()
        return rolled

    @property
    def takes_changes(self) -> bool:
        """True when it is in service: open, its disk well, without damage."""
        return not self.is_closed and self.failed is None and self.corruption is None

    def _raise_start(self, offset: int) -> int:
        """Move the start offset up, durably; how many segments may go in one step.

        On a full disk it cannot be made durable: then one at a time, which leaves no hole either.
        """
        is_news = offset > self._start_offset or not self._start_is_durable
        try:
            self._move_start(offset)
            if is_news and self.epochs.start_at(self._start_offset):
                self.epochs.save()
        except NoSpace:
            return 1
        return STEP_SEGMENTS

    def _move_start(self, offset: int) -> None:
        """Raise the start offset to `offset`; durable when it returns, also if it failed before."""
        if offset > self._start_offset:
            self._start_offset, self._start_is_durable = offset, False
            self.tiers.join(self._appender.segments, self._start_offset)
            self._publish()
        if not self._start_is_durable:
            self._on_start_moved()
            self._start_is_durable = True

    @contextmanager
    def _change(self) -> Iterator[None]:
        """While the state changes on a lane, what became durable meanwhile waits for the end."""
        try:
            with self._gate:
                yield
        finally:
            if self._has_marks:
                self._catch_up()

    def delete_records(self, before_offset: int) -> int:
        """Make `before_offset` (-1: the high watermark) the log's first offset; the new one.

        Durable when it returns. KafkaError OFFSET_OUT_OF_RANGE (1) above the high watermark.
        Blocks: run it on a lane.
        """
        watermark = self.snapshot.high_watermark
        before_offset = watermark if before_offset == -1 else before_offset
        if not 0 <= before_offset <= watermark:
            reason = f"Offset {before_offset} is above the high watermark {watermark}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        with self._change():
            self._move_start(before_offset)
        return self._start_offset

    def sync_before_close(self) -> None:
        """The first step of `close`: what is written becomes durable, if it is not. DiskError."""
        closed = self._appender.segments[:-1]  # a roll by the timer leaves no dirty bytes
        if (
            self._appender.trim()
            or self.durability.dirty_bytes
            or not all(each.synced for each in closed)
        ):
            self.mark_durable(self.sync())

    def write_before_close(self) -> None:
        """The second step: what is in memory goes to files that are not synced yet. DiskError."""
        self._appender.write_out()

    def close(self) -> None:
        """Make durable what a start believes, let go of the files. DiskError: a start recovers."""
        if self.is_closed:
            return
        try:
            if self.durability.failed is None:
                self.sync_before_close()
                self.write_before_close()
                self._appender.sync_out()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Let go of the files without writing: the log is deleted, or its disk is sick."""
        self.is_closed = True
        self.compaction.forget_segments()
        self.files.forget_all()
        for segment in self.snapshot.segments:
            self.search.forget(segment)
        self._appender.abandon()
