"""The write side of a log: what happens to one batch between its arrival and its bytes on the file.

Check, roll if due, compare with what is remembered of its producer, give it offsets and epoch in
place, write, index, remember. The order is Kafka's: a batch that is refused for its sequence
number, or repeats another, may end a segment all the same (semantics.md 3). One owner: the holder
of the partition's writer gate. Nothing here is seen by readers until `Log` publishes it.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from config.topic import TopicConfig
from protocol.records.batch import CONTROL, patch_offset_and_epoch
from protocol.records.markers import ABORT, marker_of
from storage.env import Env
from storage.errors import DiskError
from storage.files.layout import LEADER_EPOCHS_FILE, SNAPSHOT
from storage.producers import producer_snapshots
from storage.producers.leader_epochs import LeaderEpochs
from storage.producers.producer_state import RememberedBatch
from storage.producers.replay import aborted_of
from storage.recovery.loading import LoadedLog
from storage.segment.index_rebuild import write_indexes
from storage.segment.segment import IndexRules, Segment
from storage.segment.segments import create_segment
from storage.segment.sync import sync_files, sync_snapshot
from storage.segment.times import last_arrival_of, learn_first_times
from storage.segment.trusted_indexes import TrustedIndexes
from storage.segment.writer import SegmentWriter
from storage.validation.batch_rules import BatchRules
from storage.validation.checked_batch import CheckedBatch, MistimedBatch
from storage.validation.dirty_timestamps import DirtyTimes
from storage.validation.unpacking import Work
from storage.zones.zone_map import LOG_APPEND_TIME, UNTIMED

_new = tuple.__new__


class PlacedBatch(NamedTuple):
    """A batch that is stored in the log."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    segment_base: int
    position: int
    skew_ms: int | None
    """Arrival of the batch minus its latest record time, in ms; None without any time."""
    dirty: DirtyTimes | None
    records: memoryview
    """Its bytes as they are stored, until the caller's change."""


class LogAppender:
    """Appends to a log; nothing is opened before the first append."""

    __slots__ = (
        "_batch_rules",
        "_config",
        "_env",
        "_epoch",
        "_epochs",
        "_files",
        "_indexes",
        "_is_written_out",
        "_now_ms",
        "_opened_with",
        "_writer",
        "end_offset",
        "index_rules",
        "producers",
        "segments",
        "total_bytes",
        "unstable_offset",
    )

    def __init__(
        self, loaded: LoadedLog, config: TopicConfig, env: Env, indexes: TrustedIndexes
    ) -> None:
        """Goes on where `loaded` ends."""
        self.segments = loaded.segments
        self.end_offset = loaded.end_offset
        self.total_bytes = 0
        """Bytes appended since the log was opened."""
        self.producers = loaded.producers
        self.unstable_offset = loaded.producers.first_unstable_offset
        """First offset of the earliest transaction that is not settled, if there is one."""
        self._files = loaded.files
        self._env = env
        self._now_ms = env.clock.now_ms
        self._indexes = indexes
        self._epochs: LeaderEpochs | None = None
        self._epoch = -1
        self._writer: SegmentWriter | None = None
        self._opened_with = config
        self._is_written_out = False
        self.reconfigure(config)

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow new settings from the next batch on; index sizes from the next segment on."""
        self._config = config
        self._batch_rules = BatchRules(config)
        self.index_rules = IndexRules.of(config)
        if self._writer is not None:
            self._writer.reconfigure(config)

    @property
    def last_arrival_ms(self) -> int:
        """Arrival of the last batch that was appended."""
        indexes = self.segments[-1].indexes
        assert indexes is not None
        return indexes.zones.last_arrival_ms

    def needs_lane(self, records: memoryview) -> bool:
        """True when checking these records takes too long for the loop."""
        return self._batch_rules.needs_lane(records)

    def append(
        self, batch: memoryview | CheckedBatch, leader_epoch: int, work: Work | None = None
    ) -> PlacedBatch | RememberedBatch:
        """Append one batch, as it came or checked; a remembered one is what this one repeats.

        TooMuchWork when unpacking it takes more than `work`; nothing has changed then.
        KafkaError when it is refused; MistimedBatch when it needs a rewrite first; DiskError,
        CorruptIndex or CorruptLog when the disk failed. Nothing has changed then, but that a
        segment may have ended.
        """
        if not isinstance(batch, CheckedBatch):
            batch = self._batch_rules.check(batch, self._now_ms(), work)
        if batch.rewrite is not None:
            return self._repeated(batch)
        now_ms = batch.arrival_ms
        header = batch.header
        base_offset = self.end_offset
        last_offset = base_offset + header.last_offset_delta
        data = batch.records
        writer = self._writer or self._open_writer()
        size = len(data)
        if writer.roll_reason(size, batch.max_timestamp, last_offset, now_ms) is not None:
            writer = self._roll(writer)
        if header.producer_id >= 0 and not batch.is_committed:
            duplicate = self.producers.check(header)
            if duplicate is not None:
                return duplicate
        patch_offset_and_epoch(data, 0, base_offset, leader_epoch)
        if leader_epoch != self._epoch:
            self._begin_epoch(leader_epoch, base_offset)
        segment = writer.segment
        position = segment.size_bytes
        writer.append(batch, base_offset, last_offset, _zone_flags(batch), now_ms)
        if header.producer_id >= 0:
            if header.attributes & CONTROL:
                self._end_transaction(batch, base_offset, segment)
            else:
                self.producers.update(header, base_offset, batch.max_timestamp, now_ms)
            if header.is_transactional:
                self.unstable_offset = self.producers.first_unstable_offset
        self.end_offset = last_offset + 1
        self.total_bytes += size
        placed: PlacedBatch = _new(
            PlacedBatch,
            (
                base_offset,
                last_offset,
                batch.log_append_time_ms,
                segment.base_offset,
                position,
                now_ms - latest if (latest := batch.facts.max_timestamp) >= 0 else None,
                batch.dirty,
                data,
            ),
        )
        return placed

    def _repeated(self, batch: CheckedBatch) -> RememberedBatch:
        """The batch that a mistimed one repeats; MistimedBatch when it repeats nothing."""
        header = batch.header
        duplicate = None if header.producer_id < 0 else self.producers.check(header)
        if duplicate is None:
            raise MistimedBatch(batch, self.end_offset)
        return duplicate

    def _end_transaction(self, batch: CheckedBatch, offset: int, segment: Segment) -> None:
        """A marker of the broker's was written; an abort is noted in the segment's index."""
        marker = marker_of(batch.records)
        assert marker is not None, "a control batch without a marker"
        header = batch.header
        ended = self.producers.end_transaction(
            header.producer_id,
            header.producer_epoch,
            marker.coordinator_epoch,
            offset,
            batch.max_timestamp,
            is_aborted=marker.kind == ABORT,
        )
        if ended is not None and ended.is_aborted:
            segment.aborted.append(aborted_of(ended))
            with suppress(DiskError):  # the segment's sync tries again, and recovery rebuilds it
                segment.aborted.flush()

    def own(self, batch: CheckedBatch) -> CheckedBatch:
        """A batch of the broker's making, as this log stores it: see `BatchRules.own`."""
        return self._batch_rules.own(batch, self._now_ms())

    def roll(self) -> bool:
        """Begin a new segment now, unless the active one is empty; whether that happened.

        DiskError, CorruptIndex, CorruptLog: it stays the active one.
        """
        if not self.segments[-1].size_bytes:
            return False
        self._roll(self._writer or self._open_writer())
        return True

    def drop_segments(self, leaving: int) -> None:
        """Forget so many of the oldest segments; the active one is never among them."""
        assert leaving < len(self.segments)
        for segment in self.segments[:leaving]:
            self._indexes.forget(segment)
        self.segments = self.segments[leaving:]
        self.segments[0].before = None

    def replace_segments(self, old: Sequence[Segment], new: Segment) -> None:
        """Put one closed segment in the place of neighbours, all of them closed."""
        first = self.segments.index(old[0])
        behind = first + len(old)
        assert self.segments[first:behind] == tuple(old)
        assert behind < len(self.segments)
        for segment in old:
            self._indexes.forget(segment)
        self.segments = (*self.segments[:first], new, *self.segments[behind:])
        new.before, self.segments[first + 1].before = old[0].before, new

    def watermark_moved(self, high_watermark: int) -> None:
        """Transactions that end below it are settled."""
        self.producers.high_watermark_moved(high_watermark)
        self.unstable_offset = self.producers.first_unstable_offset

    @property
    def epochs(self) -> LeaderEpochs:
        """Leader epochs and their first offsets."""
        if self._epochs is None:
            epochs = LeaderEpochs(self._env.fs, f"{self._files.path}/{LEADER_EPOCHS_FILE}")
            epochs.load()
            self._epochs = epochs
            latest = epochs.latest
            self._epoch = -1 if latest is None else latest.epoch
        return self._epochs

    @property
    def leader_epoch(self) -> int:
        """The latest epoch that wrote here, 0 if none did."""
        if self._epochs is None:
            assert self.epochs is not None
        return max(0, self._epoch)

    def trim(self) -> bool:
        """Take off the `.log` what was not stored; whether that is to be synced. DiskError."""
        return self._writer is not None and self._writer.trim()

    def write_out(self) -> None:
        """Writes everything in memory to the files, as a clean stop leaves them; unsynced.
        DiskError.
        """
        writer = self._writer
        if writer is None or self._is_written_out:
            return
        writer.close_out(self.end_offset)
        assert writer.segment.indexes is not None
        write_indexes(writer.segment.indexes)
        writer.segment.aborted.flush()
        self._save_producers()
        self._is_written_out = True

    def sync_out(self) -> None:
        """Makes durable what the next start trusts after a clean stop, but for the `.log`.
        DiskError leaves that to recovery.
        """
        unsynced = [segment for segment in self.segments if not segment.synced]
        if not unsynced:
            return
        fs, path = self._env.fs, self._files.path
        sync_snapshot(fs, self._files.name_of(self.end_offset, SNAPSHOT))
        for segment in unsynced:
            sync_files(segment)
        fs.sync_dir(path)
        for segment in unsynced:
            segment.synced = True

    def abandon(self) -> None:
        """Let go of the segment's file without writing."""
        if self._writer is not None:
            self._writer.segment.held = None
            self._writer = None

    def _open_writer(self) -> SegmentWriter:
        segment = self.segments[-1]
        if not segment.size_bytes and len(self.segments) > 1:
            segment.arrival_floor_ms = last_arrival_of(self.segments[-2], self.index_rules)
        rules = IndexRules.of(self._opened_with)  # as Kafka: later ones are for later segments
        self._indexes.of(segment, segment.size_bytes, rules)
        segment.synced = False
        learn_first_times(segment, segment.size_bytes, self._indexes, self.index_rules)
        with self._indexes.gate:  # from here on nobody else replaces the segment's indexes
            segment.since_indexed = 0  # as Kafka: the first batch after a start is never indexed
            self._writer = SegmentWriter(segment, self._opened_with, self._env.clock.monotonic)
        self._writer.reconfigure(self._config)
        return self._writer

    def _roll(self, writer: SegmentWriter) -> SegmentWriter:
        """Begin the next segment. DiskError: the old one stays, the next append tries again."""
        writer.trim()
        old = writer.segment
        assert old.indexes is not None
        segment = create_segment(
            self._files,
            self.end_offset,
            self._config,
            self._env,
            arrival_floor_ms=old.indexes.zones.last_arrival_ms,
        )
        writer.close_out(self.end_offset)
        self._save_producers()
        old.last_arrival_ms = old.arrival_by_zones
        held, old.held = old.held, None
        if held is not None:
            self._files.keep(held)
        self.segments = (*self.segments, segment)
        self._writer = SegmentWriter(segment, self._config, self._env.clock.monotonic)
        return self._writer

    def _begin_epoch(self, epoch: int, offset: int) -> None:
        self.epochs.assign(epoch, offset)
        if self.epochs.is_unsaved:
            self.epochs.save()
        self._epoch = epoch

    def _save_producers(self) -> None:
        """Write the producers' snapshot: a short cut for the next start, so failing is no harm."""
        self.producers.end_offset = self.end_offset
        try:
            producer_snapshots.save(self._env.fs, self._files.path, self.producers)
        except DiskError:
            return


def _zone_flags(batch: CheckedBatch) -> int:
    flags = batch.zone_flags | UNTIMED if batch.facts.untimed else batch.zone_flags
    return flags if batch.log_append_time_ms < 0 else flags | LOG_APPEND_TIME
