"""Opens one partition's log: as it was left by a clean stop, or through recovery (semantics 9.3).

After a clean stop nothing is scanned: sizes come from one look at the directory, the end offset
from a walk behind the last entry of the last segment's index, which is compared with the batch that
it speaks of. Whatever does not fit is recovered as after a crash.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from config.topic import TopicConfig
from storage.env import Env, File
from storage.errors import CorruptIndex, CorruptLog, DiskError, FileMissing, StorageError
from storage.files import synced_mark
from storage.files.layout import (
    ABORTS,
    LEADER_EPOCHS_FILE,
    LOG,
    OFFSET_INDEX,
    REMOTE_FILE,
    SNAPSHOT,
    SPAN,
    SYNCED_MARK,
)
from storage.files.partition_files import PartitionFiles
from storage.files.partition_listing import PartitionListing, list_partition
from storage.index.offset_index import OffsetPosition
from storage.index.offset_search import indexed_batch
from storage.old_formats.format_upgrade import Upgraded, upgrade_segments
from storage.producers import producer_snapshots
from storage.producers.leader_epochs import EpochStart, LeaderEpochs
from storage.producers.producer_state import NO_ARRIVAL, ProducerStates
from storage.producers.replay import replay_producers
from storage.recovery.log_recovery import LogRecovery, Recovered, remove_segment
from storage.retention.rolling import jitter
from storage.scan.batch_walk import last_batch
from storage.segment.arrival_floor import link
from storage.segment.index_rebuild import rebuild_indexes
from storage.segment.removal import wholly_before
from storage.segment.segment import IndexRules, Segment
from storage.segment.segments import create_segment
from storage.segment.sync import sync_snapshot

DAMAGE_MARK = "horolog-damaged"
NOT_DAMAGED = 1 << 63
MAX_OFFSET = (1 << 63) - 1
EMPTY_SNAPSHOT_BYTES = 10

_INDEX_ENTRY_BYTES = 8


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log's state as stored on the disk, durable up to `end_offset`."""

    files: PartitionFiles
    segments: tuple[Segment, ...]
    start_offset: int
    end_offset: int
    producers: ProducerStates
    corruption: CorruptLog | None = None
    was_recovered: bool = False
    cut_bytes: int = 0
    upgraded_segments: int = 0
    """Number of segments of old formats that were rewritten."""


class LoadHints(NamedTuple):
    """Hints of the data directory's checkpoints about a log."""

    is_clean: bool
    recovery_point: int = 0
    start_offset: int = 0
    gaps_below: int | None = None
    """Up to where compaction has been, if that is known."""
    remote_end: int | None = None
    """The offset up to which the tier's store has the log; None when it has nothing of it."""
    remote_arrival_before: Callable[[int], int] = lambda _: 0
    """The latest arrival, in ms, in the store's segments that end at or before an offset: no record
    from there on came earlier. Of those behind it this says nothing: they may be here, too.
    """
    local_start_offset: int = 0
    """Local segments wholly before it are in the store, and about to go."""


def load_log(files: PartitionFiles, config: TopicConfig, env: Env, known: LoadHints) -> LoadedLog:
    """Load the log in `files.path`, which must exist. DiskError."""
    loaded = _Loading(files, config, env, known).run()
    written = (each.mtime_ms for each in reversed(loaded.segments) if each.size_bytes)
    copied_ms = known.remote_arrival_before(MAX_OFFSET)
    loaded.producers.written_ms = max(next(written, NO_ARRIVAL), copied_ms)
    return loaded


class _Loading:
    """One opening of one log."""

    def __init__(
        self, files: PartitionFiles, config: TopicConfig, env: Env, known: LoadHints
    ) -> None:
        self._files = files
        self._config = config
        self._env = env
        self._known = known
        self._listing, self._upgraded = self._without_old_formats()
        self._check_tier()
        self._segments = self._without_removed(self._found_segments())
        link(self._segments)
        if self._segments:
            first = self._segments[0]
            first.arrival_floor_ms = known.remote_arrival_before(first.base_offset)
        self._unsound_from = self._unsound_aborts()
        self._producers = ProducerStates()

    def run(self) -> LoadedLog:
        if not self._segments:
            return self._started_empty(self._least_end(self._known.start_offset))
        self._producers.log_start_offset = self._start_offset(self._segments)
        loaded = None
        is_whole = DAMAGE_MARK not in self._listing.others and self._unsound_from == MAX_OFFSET
        if self._known.is_clean and is_whole:
            loaded = self._as_left()
        loaded = loaded or self._recovered()
        return replace(loaded, upgraded_segments=self._upgraded.segments)

    def _check_tier(self) -> None:
        """StorageError when a part of the log is in a store that is not configured."""
        if REMOTE_FILE in self._listing.others and self._known.remote_end is None:
            raise StorageError(
                self._files.path,
                "a part of this log is in the tier's store: set "
                "remote.log.storage.system.enable=true and horolog.tier.url as they were",
            )

    def _found_segments(self) -> tuple[Segment, ...]:
        now = self._env.clock.monotonic()
        segments = []
        for base in self._listing.bases:
            entry = self._listing.logs[base]
            segment = Segment(self._files, base, entry.size_bytes, entry.mtime_ms)
            segment.opened_at = now
            segments.append(segment)
        if segments:
            config = self._config
            segments[-1].jitter_ms = jitter(
                self._env.rng, config.segment_jitter_ms, config.segment_ms
            )
        return tuple(segments)

    def _unsound_aborts(self) -> int:
        """Base of the first segment whose index of aborted transactions is not as it was synced.

        It is rebuilt from the log, or readers of committed data would be refused or misled.
        """
        for segment in self._segments:
            if not ABORTS.isdisjoint(self._listing.beside.get(segment.base_offset, ())):
                try:
                    segment.aborted.check()
                except CorruptIndex:
                    return segment.base_offset
        return MAX_OFFSET

    def _without_removed(self, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        """The segments that are not wholly before the log start; those that are go.

        A crash during their removal may have kept any of them: between others, they are no hole.
        They are gone durably: no checkpoint tells a start offset at which a segment begins.
        """
        known = self._known
        removed = wholly_before(segments, max(known.start_offset, known.local_start_offset))
        for segment in removed:
            remove_segment(self._env.fs, segment)
        if removed:
            self._env.fs.sync_dir(self._files.path)
        return segments[len(removed) :]

    def _without_old_formats(self) -> tuple[PartitionListing, Upgraded]:
        """The listing after every segment was upgraded to format 2."""
        fs, path, config = self._env.fs, self._files.path, self._config
        listing = list_partition(fs, path)
        upgraded = upgrade_segments(
            fs,
            path,
            listing,
            limit_bytes=max(config.max_decompressed_message_bytes, config.max_message_bytes),
            is_clean=self._known.is_clean,
        )
        if upgraded.damaged_at is not None:
            fs.write_atomically(f"{path}/{DAMAGE_MARK}", b"%d\n" % upgraded.damaged_at)
        return (list_partition(fs, path) if upgraded.segments else listing), upgraded

    # --- after a clean stop ---

    def _as_left(self) -> LoadedLog | None:
        """The log without a scan, or None if something does not fit."""
        segments = self._segments
        rules = IndexRules.of(self._config)
        try:
            end_offset = _end_of(segments[-1])
            for segment in segments:
                if segment.size_bytes and self._listing.lacks_index(segment.base_offset):
                    rebuild_indexes(segment, segment.size_bytes, rules)
        except CorruptLog:
            return None
        start_offset = self._start_offset(segments)
        if end_offset < self._least_end(start_offset):
            return None
        if self._listing.snapshots.get(end_offset) == EMPTY_SNAPSHOT_BYTES:
            self._producers.end_offset = end_offset
        else:
            self._load_producers(segments, end_offset)
        self._remove_stray_snapshots()
        return LoadedLog(self._files, segments, start_offset, end_offset, self._producers)

    def _load_producers(self, segments: tuple[Segment, ...], up_to: int) -> None:
        """The newest sound snapshot, then the batches after it."""
        producer_snapshots.load_newest(
            self._env.fs,
            self._files.path,
            self._listing.snapshots,
            self._producers,
            at_least=self._segments[0].base_offset,
            at_most=up_to,
        )
        replay_producers(segments, self._producers, up_to)

    def _remove_stray_snapshots(self) -> None:
        bases = [segment.base_offset for segment in self._segments]
        for offset in producer_snapshots.stray_offsets(self._listing.snapshots, bases):
            self._remove_snapshot(offset)

    # --- after a crash ---

    def _recovered(self) -> LoadedLog:
        known, segments = self._known, self._segments
        epochs = LeaderEpochs(self._env.fs, f"{self._files.path}/{LEADER_EPOCHS_FILE}")
        epochs.load()
        entries = epochs.entries
        damaged_from = self._damaged_from()
        scan_from = min(known.recovery_point, damaged_from - 1, self._unsound_from)
        bases = [segment.base_offset for segment in segments]
        first_scanned = max((base for base in bases if base <= scan_from), default=bases[0])
        self._load_producers(
            tuple(each for each in segments if each.base_offset < first_scanned), first_scanned
        )
        durable = known.recovery_point if damaged_from == NOT_DAMAGED else damaged_from
        synced = synced_mark.load(self._files)
        gaps_below = self._gaps_below()
        result = LogRecovery(
            segments,
            scan_from,
            IndexRules.of(self._config),
            synced_below=known.recovery_point,
            durable_below=max(durable, synced),
            gaps_below=gaps_below,
        ).run(self._producers, epochs)
        if gaps_below and result.corruption is None:  # batches of producers may have been compacted
            self._load_producers(result.segments, result.end_offset)
        self._producers.end_offset = result.end_offset
        self._settle_mark(result)
        if synced > result.end_offset and result.corruption is None:
            self._env.fs.remove(f"{self._files.path}/{SYNCED_MARK}")  # others will have its offsets
        start_offset = self._start_offset(segments)
        least_end = self._least_end(start_offset)
        if result.end_offset < least_end and result.corruption is None:
            for segment in reversed(result.segments):
                remove_segment(self._env.fs, segment)
            return self._started_empty(least_end)
        self._renew_snapshots(result.end_offset)
        _settle_epochs(epochs, entries, result.end_offset, was_cut=bool(result.cut_bytes))
        return LoadedLog(
            self._files,
            result.segments,
            min(start_offset, result.end_offset),
            result.end_offset,
            self._producers,
            result.corruption,
            was_recovered=True,
            cut_bytes=result.cut_bytes,
        )

    def _start_offset(self, segments: tuple[Segment, ...]) -> int:
        """Start of the log: of the directory, unless the tier's store has all that is before."""
        known, begin = self._known, segments[0].base_offset
        if known.remote_end is not None and known.remote_end >= begin:
            return known.start_offset
        return max(known.start_offset, begin)

    def _least_end(self, start_offset: int) -> int:
        """The log ends there or later: others have read what the store has."""
        return max(start_offset, self._known.remote_end or 0)

    def _gaps_below(self) -> int:
        """Up to where compaction has been; all of a compacted log when that is not known."""
        if self._known.gaps_below is not None:
            return self._known.gaps_below
        return MAX_OFFSET if "compact" in self._config.cleanup_policy else 0

    def _renew_snapshots(self, end_offset: int) -> None:
        """Those from beyond the end go, durably: at their offsets other batches will end.

        A new one spares the next start a replay of the whole log; failing costs no more than that.
        """
        fs, path = self._env.fs, self._files.path
        for offset in self._listing.snapshots:
            if offset > end_offset:
                self._remove_snapshot(offset)
        with suppress(DiskError):
            sync_snapshot(fs, producer_snapshots.save(fs, path, self._producers))
        fs.sync_dir(path)

    def _damaged_from(self) -> int:
        """One more than the offset at which an earlier recovery found damage."""
        if DAMAGE_MARK not in self._listing.others:
            return NOT_DAMAGED
        text = self._env.fs.read_text(f"{self._files.path}/{DAMAGE_MARK}").strip()
        return int(text) + 1 if text.isascii() and text.isdigit() else 1

    def _settle_mark(self, result: Recovered) -> None:
        """Damage is remembered, or a clean stop would hide it; when it is gone, so is the mark."""
        path = f"{self._files.path}/{DAMAGE_MARK}"
        if result.corruption is not None:
            self._env.fs.write_atomically(path, b"%d\n" % result.end_offset)
        elif DAMAGE_MARK in self._listing.others:
            self._env.fs.remove(path)

    def _started_empty(self, start_offset: int) -> LoadedLog:
        """A log without a record in the directory: the next one gets `start_offset`.

        Of the producers is known what the snapshot of the end of the store's part says.
        """
        self._producers.clear(start_offset)
        goes_on = start_offset == self._known.remote_end
        if goes_on and start_offset in self._listing.snapshots:
            self._load_snapshot(start_offset)
        for offset in self._listing.snapshots:
            if not goes_on or offset != start_offset:
                self._remove_snapshot(offset)
        floor = self._known.remote_arrival_before(start_offset)
        segment = create_segment(
            self._files, start_offset, self._config, self._env, arrival_floor_ms=floor
        )
        if segment.held is not None:
            segment.held.close()
            segment.held = None
        self._env.fs.sync_dir(self._files.path)
        segment.name_is_durable = True
        begin = start_offset if self._known.remote_end is None else self._known.start_offset
        self._producers.log_start_offset = begin
        return LoadedLog(self._files, (segment,), begin, start_offset, self._producers)

    def _load_snapshot(self, offset: int) -> None:
        """The producers of one snapshot; none where it is damaged, and it goes."""
        producer_snapshots.load_newest(
            self._env.fs,
            self._files.path,
            [offset],
            self._producers,
            at_least=offset,
            at_most=offset,
        )
        self._producers.end_offset = offset

    def _remove_snapshot(self, offset: int) -> None:
        try:
            self._env.fs.remove(self._files.name_of(offset, SNAPSHOT))
        except FileMissing:
            return


def _settle_epochs(
    epochs: LeaderEpochs, before: tuple[EpochStart, ...], end_offset: int, *, was_cut: bool
) -> None:
    """Epochs end where the log does; after a cut a new one begins, so that readers notice."""
    epochs.truncate_to(end_offset + 1)  # one that begins at the end was announced already
    latest = epochs.latest
    if was_cut and latest is not None:
        epochs.assign(latest.epoch + 1, end_offset)
    if epochs.entries != before or epochs.damage is not None:
        epochs.save()


def _end_of(segment: Segment) -> int:
    """The offset after the segment's last batch. CorruptLog if headers do not lead there."""
    if not segment.size_bytes:
        return segment.base_offset
    file = segment.files.fs.open(segment.path_of(LOG))
    try:
        last = last_batch(file, _last_indexed_position(segment, file), segment.size_bytes)
    finally:
        file.close()
    assert last is not None
    if last.base_offset < segment.base_offset:
        raise CorruptLog(file.path, f"offset {last.base_offset} is before the segment")
    if last.last_offset >= segment.base_offset + SPAN:
        raise CorruptLog(file.path, f"offset {last.last_offset} is beyond the segment")
    return last.last_offset + 1


def _last_indexed_position(segment: Segment, log: File) -> int:
    """Position of the batch of the offset index's last entry, 0 without a usable entry.

    Reads that entry alone: a start asks every log for its end.
    """
    try:
        index = segment.files.fs.open(segment.path_of(OFFSET_INDEX))
    except FileMissing:
        return 0
    try:
        size = index.size()
        if size < _INDEX_ENTRY_BYTES or size % _INDEX_ENTRY_BYTES:
            return 0
        entry = index.read_at(size - _INDEX_ENTRY_BYTES, _INDEX_ENTRY_BYTES)
    finally:
        index.close()
    offset = segment.base_offset + int.from_bytes(entry[:4], "big")
    last = OffsetPosition(offset, int.from_bytes(entry[4:], "big"))
    place = indexed_batch(log, last, segment.size_bytes)
    return 0 if place is None else place.position
