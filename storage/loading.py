"""Opens one partition's log: as it was left by a clean stop, or through recovery (semantics 9.3).

After a clean stop nothing is scanned: sizes come from one look at the directory, the end offset from a
walk behind the last entry of the last segment's index, which is compared with the batch that it
speaks of. Whatever does not fit is recovered as after a crash.
"""

from dataclasses import dataclass
from typing import NamedTuple

from config.topic import TopicConfig
from storage import producer_snapshots
from storage.batch_walk import batch_at, last_batch
from storage.env import Env
from storage.errors import CorruptLog, DiskError, FileMissing
from storage.index_rebuild import rebuild_indexes
from storage.layout import LEADER_EPOCHS_FILE, LOG, OFFSET_INDEX, SNAPSHOT
from storage.leader_epochs import EpochStart, LeaderEpochs
from storage.partition_files import PartitionFiles
from storage.partition_listing import PartitionListing, list_partition
from storage.producer_state import ProducerStates
from storage.recovery import LogRecovery, Recovered, remove_segment
from storage.replay import replay_producers
from storage.rolling import jitter
from storage.segment import IndexRules, Segment
from storage.segments import create_segment

DAMAGE_MARK = "horolog-damaged"
NOT_DAMAGED = 1 << 63
EMPTY_SNAPSHOT_BYTES = 10
PRODUCER_EXPIRATION_MS = 86_400_000

_INDEX_ENTRY_BYTES = 8


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log's state as it lies on the disk, durable up to `end_offset`."""

    files: PartitionFiles
    segments: tuple[Segment, ...]
    start_offset: int
    end_offset: int
    producers: ProducerStates
    corruption: CorruptLog | None = None
    failed: DiskError | None = None
    """The disk failed while the log was loaded: nothing may be written."""
    recovered: bool = False
    cut_bytes: int = 0


class WhatIsKnown(NamedTuple):
    """What the data directory's checkpoints say of a log."""

    is_clean: bool
    recovery_point: int = 0
    start_offset: int = 0


def load_log(files: PartitionFiles, config: TopicConfig, env: Env, known: WhatIsKnown) -> LoadedLog:
    """Load the log in `files.path`, which must exist. DiskError."""
    listing = list_partition(env.fs, files.path)
    segments = _segments(files, listing, config, env)
    if not segments:
        return _started_empty(files, config, env, known.start_offset, listing)
    if known.is_clean and DAMAGE_MARK not in listing.others:
        loaded = _as_left(files, segments, listing, config, env, known)
        if loaded is not None:
            return loaded
    return _recovered(files, segments, listing, config, env, known)


def _segments(
    files: PartitionFiles, listing: PartitionListing, config: TopicConfig, env: Env
) -> tuple[Segment, ...]:
    now_ms = env.clock.now_ms()
    segments = []
    for base in listing.bases:
        entry = listing.logs[base]
        segment = Segment(files, base, entry.size_bytes, entry.mtime_ms)
        segment.created_ms = now_ms
        segments.append(segment)
    if segments:
        segments[-1].jitter_ms = jitter(env.rng, config.segment_jitter_ms, config.segment_ms)
    return tuple(segments)


def _as_left(
    files: PartitionFiles,
    segments: tuple[Segment, ...],
    listing: PartitionListing,
    config: TopicConfig,
    env: Env,
    known: WhatIsKnown,
) -> LoadedLog | None:
    """The log without a scan, or None if something does not fit."""
    try:
        end_offset = _end_of(segments[-1])
        for segment in segments:
            if segment.size_bytes and listing.lacks_index(segment.base_offset):
                segment.indexes = rebuild_indexes(
                    segment, segment.size_bytes, IndexRules.of(config)
                )
                segment.verified = True
    except CorruptLog:
        return None
    start_offset = max(known.start_offset, segments[0].base_offset)
    if end_offset < start_offset:
        return None
    producers = ProducerStates()
    _load_producers(files, segments, listing, producers, end_offset, env)
    return LoadedLog(files, segments, start_offset, end_offset, producers)


def _end_of(segment: Segment) -> int:
    """The offset after the segment's last batch. CorruptLog if headers and index do not lead there."""
    if not segment.size_bytes:
        return segment.base_offset
    file = segment.files.fs.open(segment.path_of(LOG))
    try:
        position = _last_indexed_position(segment)
        if position:
            indexed = batch_at(file, position, segment.size_bytes)
            if indexed.base_offset < segment.base_offset:
                raise CorruptLog(file.path, f"offsets run backwards at {position}")
        last = last_batch(file, position, segment.size_bytes)
    finally:
        file.close()
    assert last is not None
    return last.last_offset + 1


def _last_indexed_position(segment: Segment) -> int:
    """Where the batch of the last entry of the offset index begins, 0 without a usable entry."""
    fs = segment.files.fs
    try:
        index = fs.open(segment.path_of(OFFSET_INDEX))
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
    position = int.from_bytes(entry[4:], "big")
    file = segment.files.fs.open(segment.path_of(LOG))
    try:
        return position if batch_at(file, position, segment.size_bytes).last_offset == offset else 0
    except CorruptLog:
        return 0
    finally:
        file.close()


def _load_producers(
    files: PartitionFiles,
    segments: tuple[Segment, ...],
    listing: PartitionListing,
    producers: ProducerStates,
    end_offset: int,
    env: Env,
) -> None:
    """The newest sound snapshot, then the batches after it."""
    snapshots = listing.snapshots
    if snapshots.get(end_offset) == EMPTY_SNAPSHOT_BYTES:
        producers.end_offset = end_offset
    else:
        producer_snapshots.load_newest(
            env.fs,
            files.path,
            snapshots,
            producers,
            at_most=end_offset,
            now_ms=env.clock.now_ms(),
            expiration_ms=PRODUCER_EXPIRATION_MS,
        )
        replay_producers(segments, producers, end_offset)
    bases = [segment.base_offset for segment in segments]
    for offset in producer_snapshots.stray_offsets(snapshots, bases):
        _remove_if_there(files, files.name_of(offset, SNAPSHOT))


def _recovered(
    files: PartitionFiles,
    segments: tuple[Segment, ...],
    listing: PartitionListing,
    config: TopicConfig,
    env: Env,
    known: WhatIsKnown,
) -> LoadedLog:
    epochs = LeaderEpochs(env.fs, f"{files.path}/{LEADER_EPOCHS_FILE}")
    epochs.load()
    entries = epochs.entries
    damaged_from = _damaged_from(files, listing)
    scan_from = min(known.recovery_point, damaged_from - 1)
    producers = ProducerStates()
    bases = [segment.base_offset for segment in segments]
    first_scanned = max((base for base in bases if base <= scan_from), default=bases[0])
    producer_snapshots.load_newest(
        env.fs,
        files.path,
        listing.snapshots,
        producers,
        at_most=first_scanned,
        now_ms=env.clock.now_ms(),
        expiration_ms=PRODUCER_EXPIRATION_MS,
    )
    before = tuple(segment for segment in segments if segment.base_offset < first_scanned)
    replay_producers(before, producers, first_scanned)
    recovery = LogRecovery(
        segments,
        scan_from,
        IndexRules.of(config),
        durable_below=known.recovery_point if damaged_from == NOT_DAMAGED else damaged_from,
        has_gaps="compact" in config.cleanup_policy,
    )
    result = recovery.run(producers, epochs)
    start_offset = max(known.start_offset, segments[0].base_offset)
    if result.end_offset < start_offset and result.corruption is None:
        for segment in reversed(result.segments):
            remove_segment(env.fs, segment)
        _settle_mark(files, listing, result)
        return _started_empty(files, config, env, start_offset, listing)
    for offset in listing.snapshots:
        if offset > result.end_offset:
            _remove_if_there(files, files.name_of(offset, SNAPSHOT))
    _settle_epochs(epochs, entries, result.end_offset, was_cut=bool(result.cut_bytes))
    _settle_mark(files, listing, result)
    return LoadedLog(
        files,
        result.segments,
        min(start_offset, result.end_offset),
        result.end_offset,
        producers,
        result.corruption,
        recovered=True,
        cut_bytes=result.cut_bytes,
    )


def _settle_epochs(
    epochs: LeaderEpochs, before: tuple[EpochStart, ...], end_offset: int, *, was_cut: bool
) -> None:
    """Epochs end where the log does; after a cut a new one begins, so that readers notice."""
    epochs.truncate_to(end_offset)
    latest = epochs.latest
    if was_cut and latest is not None:
        epochs.assign(latest.epoch + 1, end_offset)
    if epochs.entries != before or epochs.damage is not None:
        epochs.save()


def _damaged_from(files: PartitionFiles, listing: PartitionListing) -> int:
    """One more than the offset at which an earlier recovery found damage."""
    if DAMAGE_MARK not in listing.others:
        return NOT_DAMAGED
    text = files.fs.read_text(f"{files.path}/{DAMAGE_MARK}").strip()
    return int(text) + 1 if text.isascii() and text.isdigit() else 1


def _settle_mark(files: PartitionFiles, listing: PartitionListing, result: Recovered) -> None:
    """Damage is remembered, or a clean stop would hide it; when it is gone, so is the mark."""
    path = f"{files.path}/{DAMAGE_MARK}"
    if result.corruption is not None:
        files.fs.write_atomically(path, b"%d\n" % result.end_offset)
    elif DAMAGE_MARK in listing.others:
        files.fs.remove(path)


def _started_empty(
    files: PartitionFiles,
    config: TopicConfig,
    env: Env,
    start_offset: int,
    listing: PartitionListing,
) -> LoadedLog:
    """A log without a record, which begins at `start_offset`."""
    for offset in listing.snapshots:
        _remove_if_there(files, files.name_of(offset, SNAPSHOT))
    segment = create_segment(files, start_offset, config, env)
    if segment.held is not None:
        segment.held.close()
        segment.held = None
    env.fs.sync_dir(files.path)
    segment.name_is_durable = True
    producers = ProducerStates()
    producers.end_offset = start_offset
    return LoadedLog(files, (segment,), start_offset, start_offset, producers)


def _remove_if_there(files: PartitionFiles, path: str) -> None:
    try:
        files.fs.remove(path)
    except FileMissing:
        return
