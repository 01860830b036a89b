"""One partition's log: appends by one writer, reads by many on immutable snapshots.

Rules: a `Log` is changed only by the holder of its partition's writer gate, on whichever thread
that is; `mark_durable` may come from the loop meanwhile. Everything a reader sees hangs on
`snapshot`, which is replaced by one assignment after the write succeeded, never before. A refused
or failed append leaves no trace. `sync` belongs to the fsync thread (`storage.durability`).
"""

from collections.abc import Callable
from uuid import UUID

from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import patch_offset_and_epoch
from storage import producer_snapshots
from storage.batch_walk import batch_at
from storage.durability import Durability
from storage.env import Env
from storage.errors import CorruptIndex, CorruptLog, DiskError
from storage.file_slice import FetchData
from storage.index_rebuild import write_indexes
from storage.index_trust import TrustedIndexes
from storage.layout import LEADER_EPOCHS_FILE, LOG, TXN_INDEX
from storage.leader_epochs import EpochEnd, LeaderEpochs
from storage.loading import LoadedLog
from storage.partition_files import PartitionFiles
from storage.producer_state import ProducerStates, RememberedBatch
from storage.reader import read
from storage.segment import UNKNOWN, IndexRules
from storage.segment_writer import SegmentWriter
from storage.segments import create_segment, index_of
from storage.snapshot import AppendResult, LogSnapshot, TimestampOffset
from storage.time_search import first_at_or_after, first_with_largest
from storage.txn_index import AbortedTransaction, TxnIndex
from storage.validation import BatchRules, CheckedBatch, InvalidRecordError
from storage.zone_map import LOG_APPEND_TIME as STAMPED
from storage.zone_map import UNTIMED

__all__ = [
    "AppendResult",
    "FetchData",
    "InvalidRecordError",
    "Log",
    "LogSnapshot",
    "TimestampOffset",
]

_new = tuple.__new__


class Log:
    """The log of one partition."""

    __slots__ = (
        "_batch_rules",
        "_config",
        "_corruption",
        "_durability",
        "_end_offset",
        "_env",
        "_epoch",
        "_epochs",
        "_files",
        "_index_rules",
        "_indexes",
        "_is_changing",
        "_marks",
        "_now_ms",
        "_on_start_moved",
        "_producers",
        "_segments",
        "_start_offset",
        "_total_bytes",
        "_unstable",
        "_writer",
        "is_closed",
        "partition",
        "snapshot",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        topic_id: UUID | None,
        loaded: LoadedLog,
        config: TopicConfig,
        env: Env,
        indexes: TrustedIndexes,
        on_start_moved: Callable[["Log"], None],
    ) -> None:
        """A log as it was loaded; nothing is opened. `on_start_moved` makes a new start durable."""
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.is_closed = False
        self._env = env
        self._now_ms = env.clock.now_ms
        self._files = loaded.files
        self._indexes = indexes
        self._on_start_moved = on_start_moved
        self._segments = loaded.segments
        self._start_offset = loaded.start_offset
        self._end_offset = loaded.end_offset
        self._producers = loaded.producers
        self._corruption = loaded.corruption
        self._epochs: LeaderEpochs | None = None
        self._epoch = -1
        self._total_bytes = 0
        self._unstable = loaded.producers.first_unstable_offset
        self._writer: SegmentWriter | None = None
        self._is_changing = False
        self._marks = 0
        self._config = config
        self._batch_rules = BatchRules(config)
        self._index_rules = IndexRules.of(config)
        self._durability = Durability(env.clock, loaded.end_offset, config)
        self._durability.failed = loaded.failed
        self._publish()

    def __repr__(self) -> str:
        """As the directory is called, with the offsets."""
        return f"Log({self.topic}-{self.partition}, {self._start_offset}..{self._end_offset})"

    # --- what it is ---

    snapshot: LogSnapshot

    @property
    def config(self) -> TopicConfig:
        """The topic's settings as the log follows them."""
        return self._config

    @property
    def path(self) -> str:
        """Its directory."""
        return self._files.path

    @property
    def files(self) -> PartitionFiles:
        """Its directory and open files."""
        return self._files

    @property
    def size_bytes(self) -> int:
        """Bytes of all its `.log` files."""
        return self.snapshot.size_bytes

    @property
    def corruption(self) -> CorruptLog | None:
        """The damage above which the log is kept as it is, and not written or read; or None."""
        return self._corruption

    @property
    def failed(self) -> DiskError | None:
        """The first fsync error. It is final: the log takes no more writes until it is reopened."""
        return self._durability.failed

    @property
    def durable_offset(self) -> int:
        """Everything below is on the disk."""
        return self._durability.durable_offset

    @property
    def recovery_point(self) -> int:
        """Where recovery would begin: below it log and indexes are durable."""
        return self._durability.recovery_point

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and not yet synced."""
        return self._durability.dirty_bytes

    @property
    def first_dirty_at(self) -> float | None:
        """Since when (monotonic seconds) something is unsynced; None if nothing is."""
        return self._durability.first_dirty_at

    @property
    def producers(self) -> ProducerStates:
        """What is remembered of idempotent and transactional producers. Read only."""
        return self._producers

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow new settings from the next append on; index sizes from the next segment on."""
        self._config = config
        self._batch_rules = BatchRules(config)
        self._index_rules = IndexRules.of(config)
        self._durability.reconfigure(config)
        if self._writer is not None:
            self._writer.reconfigure(config)

    # --- append ---

    def needs_lane(self, records: memoryview) -> bool:
        """Whether checking these records takes so long that the loop should not do it."""
        return self._batch_rules.needs_lane(records)

    def append(self, records: memoryview, *, acks_all: bool, leader_epoch: int) -> AppendResult:
        """Append exactly one batch of format 2 from a client; patched in place.

        KafkaError when it is refused (`InvalidRecordError` when for its records), with
        KAFKA_STORAGE_ERROR (56) when the disk failed; nothing is stored then.
        """
        if self._durability.failed is not None or self._corruption is not None or self.is_closed:
            raise self._offline()
        self._is_changing = True
        try:
            result = self._append(records, acks_all, leader_epoch)
        except (DiskError, CorruptIndex, CorruptLog) as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        finally:
            self._is_changing = False
            if self._marks:
                self._catch_up()
        return result

    def _append(self, records: memoryview, acks_all: bool, leader_epoch: int) -> AppendResult:
        now_ms = self._now_ms()
        batch = self._batch_rules.check(records, now_ms)
        header = batch.header
        if header.producer_id >= 0:
            duplicate = self._producers.check(header)
            if duplicate is not None:
                return self._duplicate(duplicate, acks_all)
        base_offset = self._end_offset
        last_offset = base_offset + header.last_offset_delta
        data = batch.records
        patch_offset_and_epoch(data, 0, base_offset, leader_epoch)
        writer = self._writer or self._open_writer()
        if leader_epoch != self._epoch:
            self._begin_epoch(leader_epoch, base_offset)
        size = len(data)
        if writer.roll_reason(size, batch.max_timestamp, last_offset, now_ms) is not None:
            writer = self._roll(writer)
        segment = writer.segment
        position = segment.size_bytes
        facts = batch.facts
        writer.append(
            data,
            base_offset,
            last_offset,
            header.record_count,
            facts.min_timestamp,
            batch.max_timestamp,
            facts.max_timestamp,
            _zone_flags(batch),
            now_ms,
        )
        if header.producer_id >= 0:
            self._remember(batch, base_offset)
        self._end_offset = last_offset + 1
        self._total_bytes += size
        durability = self._durability
        waits = durability.promises(last_offset, acks_all=acks_all)
        if waits:
            durability.hide(base_offset, segment.base_offset, position)
        durability.wrote(self._total_bytes)
        self._publish()
        return _new(
            AppendResult,
            (
                base_offset,
                last_offset,
                batch.log_append_time_ms,
                self._start_offset,
                False,
                last_offset + 1,
                waits,
            ),
        )

    def _duplicate(self, batch: RememberedBatch, acks_all: bool) -> AppendResult:
        durability = self._durability
        waits = durability.promises(batch.last_offset, acks_all=acks_all)
        return AppendResult(
            batch.base_offset,
            batch.last_offset,
            batch.timestamp,
            self._start_offset,
            duplicate=True,
            end_offset=self._end_offset,
            waits_for_disk=waits and durability.durable_offset <= batch.last_offset,
        )

    def _remember(self, batch: CheckedBatch, base_offset: int) -> None:
        self._producers.update(batch.header, base_offset, batch.max_timestamp)
        if batch.header.is_transactional:
            self._unstable = self._producers.first_unstable_offset

    def _open_writer(self) -> SegmentWriter:
        segment = self._segments[-1]
        self._indexes.of(segment, segment.size_bytes, self._index_rules)
        segment.synced = False
        if segment.size_bytes and segment.first_timestamp == UNKNOWN:
            first = batch_at(segment.file(), 0, segment.size_bytes)
            segment.first_timestamp = first.max_timestamp
        self._writer = SegmentWriter(segment, self._config)
        return self._writer

    def _roll(self, writer: SegmentWriter) -> SegmentWriter:
        """Begin the next segment. DiskError: the old one goes on, and the next append tries again."""
        writer.trim()
        old = writer.segment
        assert old.indexes is not None
        segment = create_segment(
            self._files,
            self._end_offset,
            self._config,
            self._env,
            arrival_floor_ms=old.indexes.zones.last_arrival_ms,
        )
        writer.close_out(self._end_offset)
        self._save_producers()
        held, old.held = old.held, None
        if held is not None:
            self._files.pool.put(held)
        self._segments = (*self._segments, segment)
        self._writer = SegmentWriter(segment, self._config)
        return self._writer

    def _save_producers(self) -> None:
        """Write the producers' snapshot: a short cut for the next start, so failing is no harm."""
        self._producers.end_offset = self._end_offset
        try:
            producer_snapshots.save(self._env.fs, self._files.path, self._producers, durable=False)
        except DiskError:
            return

    def _offline(self) -> KafkaError:
        reason = self._durability.failed or self._corruption or "the log is closed"
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(reason))

    # --- publish ---

    def _publish(self) -> None:
        hidden = self._durability.first_hidden
        if hidden is None:
            watermark, place = self._end_offset, None
        else:
            watermark, place = hidden
        unstable = self._unstable
        self.snapshot = _new(
            LogSnapshot,
            (
                self._start_offset,
                self._end_offset,
                watermark,
                watermark if unstable is None or unstable > watermark else unstable,
                self._segments,
                self._segments[-1].size_bytes,
                self._total_bytes,
                place,
            ),
        )

    def mark_durable(self, offset: int) -> None:
        """On the loop, with what `sync` returned: hidden batches appear."""
        self._durability.mark(offset)
        self._marks += 1
        if not self._is_changing:
            self._catch_up()

    def _catch_up(self) -> None:
        self._marks = 0
        self._publish()
        if self._unstable is not None:
            self._producers.high_watermark_moved(self.snapshot.high_watermark)
            self._unstable = self._producers.first_unstable_offset
            self._publish()

    def sync(self) -> int:
        """Make everything that is written durable; the offset up to which it is. Blocks.

        One caller at a time, on any thread. The first DiskError is final and raised ever after.
        """
        try:
            return self._durability.sync(self.snapshot)
        except DiskError:
            if self.is_closed:
                return self.snapshot.log_end_offset
            raise

    # --- read ---

    def read(self, offset: int, max_bytes: int, *, up_to: int, min_one_batch: bool) -> FetchData:
        """Whole batches from the one with `offset` to before `up_to`; see `storage.reader`.

        KafkaError OFFSET_OUT_OF_RANGE (1) outside of the log, KAFKA_STORAGE_ERROR (56) when the
        disk or the log is damaged there.
        """
        try:
            return read(
                self.snapshot,
                self._indexes,
                self._index_rules,
                offset,
                max_bytes,
                up_to=up_to,
                min_one_batch=min_one_batch,
            )
        except (DiskError, CorruptLog) as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def offset_for_timestamp(
        self, timestamp_ms: int, *, last_fetchable: int
    ) -> TimestampOffset | None:
        """The smallest offset with a time of at least `timestamp_ms`, if below `last_fetchable`.

        Errors as for `read`, CORRUPT_MESSAGE (2) when the batch that would answer is damaged.
        """
        try:
            return first_at_or_after(
                self.snapshot,
                self._indexes,
                self._index_rules,
                timestamp_ms,
                last_fetchable=last_fetchable,
                inflate_limit=self._config.max_decompressed_message_bytes,
            )
        except DiskError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        except CorruptLog as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error

    def max_timestamp_offset(self) -> TimestampOffset | None:
        """The first record with the log's largest time (KIP-734). Errors as above."""
        try:
            return first_with_largest(
                self.snapshot,
                self._indexes,
                self._index_rules,
                inflate_limit=self._config.max_decompressed_message_bytes,
            )
        except DiskError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        except CorruptLog as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error

    def aborted_transactions(self, offset: int, up_to: int) -> list[AbortedTransaction]:
        """What a READ_COMMITTED fetch of [offset, up_to) must leave out."""
        found: list[AbortedTransaction] = []
        segments = self.snapshot.segments
        for segment in segments[index_of(segments, offset) :]:
            if segment.base_offset >= up_to:
                break
            index = TxnIndex(self._env.fs, segment.path_of(TXN_INDEX), segment.base_offset)
            search = index.search(offset, up_to)
            found += search.transactions
            if search.is_complete:
                break
        return found

    # --- epochs ---

    @property
    def epochs(self) -> LeaderEpochs:
        """Which leader epoch wrote from which offset on."""
        if self._epochs is None:
            epochs = LeaderEpochs(self._env.fs, f"{self._files.path}/{LEADER_EPOCHS_FILE}")
            epochs.load()
            self._epochs = epochs
            latest = epochs.latest
            self._epoch = -1 if latest is None else latest.epoch
        return self._epochs

    @property
    def leader_epoch(self) -> int:
        """The epoch of this leader: the latest that wrote here, 0 if none did."""
        if self._epochs is None:
            latest = self.epochs.latest
            return 0 if latest is None else latest.epoch
        return max(self._epoch, 0)

    def epoch_end_offset(self, epoch: int) -> EpochEnd:
        """Where `epoch` ended (OffsetForLeaderEpoch)."""
        return self.epochs.end_offset_of(epoch, self._end_offset)

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        if self.epochs.assign(epoch, offset):
            self.epochs.save()
        self._epoch = epoch

    # --- start offset, end of life ---

    def delete_records(self, before_offset: int) -> int:
        """Make `before_offset` (-1: the high watermark) the log's first offset; the new one.

        Durable when it returns. KafkaError OFFSET_OUT_OF_RANGE (1) above the high watermark.
        Blocks: run it on a lane.
        """
        watermark = self.snapshot.high_watermark
        before_offset = watermark if before_offset == -1 else before_offset
        if not 0 <= before_offset <= watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {before_offset} is above the high watermark {watermark}",
            )
        if before_offset > self._start_offset:
            self._is_changing = True
            try:
                self._start_offset = before_offset
                self._publish()
                self._on_start_moved(self)
            except DiskError as error:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
            finally:
                self._is_changing = False
                if self._marks:
                    self._catch_up()
        return self._start_offset

    def close(self) -> None:
        """Write everything out and let go of the files. DiskError leaves the log to recovery."""
        if self.is_closed:
            return
        writer = self._writer
        if writer is not None:
            writer.trim()
            if self._durability.failed is None:
                self.sync()
                writer.close_out(self._end_offset)
                assert writer.segment.indexes is not None
                write_indexes(writer.segment.indexes)
                self._save_producers()
        self.abandon()

    def abandon(self) -> None:
        """Let go of the files without writing: the log is deleted, or its disk is sick."""
        self.is_closed = True
        for segment in self._segments:
            self._files.pool.forget(segment.path_of(LOG))
            self._indexes.forget(segment)
        self._writer = None


def _zone_flags(batch: CheckedBatch) -> int:
    flags = UNTIMED if batch.facts.untimed else 0
    return flags if batch.log_append_time_ms < 0 else flags | STAMPED
