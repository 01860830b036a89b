"""Durability of a log: what is on the disk, and what readers may therefore see (operations B2, B3).

- A batch whose answer promises durability (acks=all under `by-acks`, every batch under `fsync`, or
  one that makes `flush.messages` due) is hidden from consumers until it is synced: the high
  watermark never passes it.
- `sync` is called from one thread at a time. It reads one snapshot and takes no part in the log's
  state: it syncs every file with bytes up to that snapshot's end, oldest first, the directory if a
  name in it is new, and the index files of segments that were closed.
- The first failed sync of a `.log`, or of its directory, is final: `failed` is set, and the log
  takes no more writes. What a failed sync of an index lost is written again by the next one.
"""

from collections import deque
from itertools import takewhile
from typing import NamedTuple

from config.topic import TopicConfig
from storage.env import Clock
from storage.errors import DiskError, FileMissing, StorageError
from storage.files import synced_mark
from storage.files.partition_files import PartitionFiles
from storage.segment.log_snapshot import LogSnapshot, Place
from storage.segment.segment import Segment
from storage.segment.sync import sync_files


class _Synced(NamedTuple):
    """Extent of the last sync."""

    end_offset: int
    total_bytes: int
    began_at: float


class Durability:
    """The durable part of one log.

    All but `sync`, `vouch`, `reached` and `committed` belongs to the gate's holder.
    """

    __slots__ = (
        "_clock",
        "_flush_messages",
        "_gated",
        "_promises_all",
        "_promises_some",
        "_synced",
        "_total_bytes",
        "_vouched_offset",
        "counts_commits",
        "durable_offset",
        "failed",
        "first_dirty_at",
        "recovery_point",
    )

    def __init__(self, clock: Clock, durable_offset: int, config: TopicConfig) -> None:
        """Everything below `durable_offset` is on the disk."""
        self._clock = clock
        self.durable_offset = durable_offset
        self.counts_commits = False
        """In a fleet: durable is what the catalog has committed, whatever this disk has."""
        self.recovery_point = durable_offset
        """Below it the index files are durable as well: recovery need not look there."""
        self.failed: StorageError | None = None
        self.first_dirty_at: float | None = None
        """Since when (monotonic seconds) something is unsynced; None if nothing is."""
        self._gated: deque[tuple[int, Place]] = deque()
        self._synced = _Synced(durable_offset, 0, 0.0)
        self._total_bytes = 0
        self._vouched_offset = durable_offset
        self.reconfigure(config)

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow the topic's settings from the next batch on."""
        self._promises_all = config.horolog_durability == "fsync"
        self._promises_some = config.horolog_durability == "by-acks"
        self._flush_messages = config.flush_messages

    def promises(self, last_offset: int, *, acks_all: bool) -> bool:
        """True when the answer to a batch that ends with `last_offset` waits for the disk."""
        return (
            self._promises_all
            or (acks_all and self._promises_some)
            or last_offset - self.durable_offset >= self._flush_messages - 1
        )

    def wrote(self, total_bytes: int) -> None:
        """Bytes were written; nobody was promised anything."""
        self._total_bytes = total_bytes
        if self.first_dirty_at is None:
            self.first_dirty_at = self._clock.monotonic()

    def hide(self, base_offset: int, segment_base: int, position: int) -> None:
        """The batch that begins there stays hidden until it is durable."""
        self._gated.append((base_offset, Place(segment_base, position)))

    @property
    def first_hidden(self) -> tuple[int, Place] | None:
        """Offset and place of the first hidden batch: the high watermark if there is one."""
        return self._gated[0] if self._gated else None

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and not synced yet."""
        return self._total_bytes - self._synced.total_bytes

    def fail(self, error: StorageError) -> None:
        """Ends writes, as a failed sync does. On the loop."""
        self.failed = self.failed or error

    def reached(self, offset: int) -> None:
        """Notes that everything below `offset` is on the disk. On the loop, at any time."""
        if not self.counts_commits:
            self.durable_offset = max(offset, self.durable_offset)

    def committed(self, offset: int) -> None:
        """Notes that everything below `offset` is committed. On the loop, at any time."""
        self.durable_offset = max(offset, self.durable_offset)

    def show(self) -> None:
        """Batches that became durable appear."""
        gated = self._gated
        while gated and gated[0][0] < self.durable_offset:
            gated.popleft()
        self.first_dirty_at = self._synced.began_at if self.dirty_bytes > 0 else None

    def sync(self, snapshot: LogSnapshot) -> int:
        """Make the snapshot durable; its end offset. Blocks. DiskError: see the module's rules."""
        if self.failed is not None:
            raise self.failed
        began_at, active = self._clock.monotonic(), snapshot.active
        end_offset = snapshot.log_end_offset
        zones = _closed_zones(active)  # before its sync, which therefore covers them
        try:
            self._sync_logs(snapshot)
            closed_by = self._sync_indexes(snapshot)
        except DiskError as error:  # a name, or a record, that was lost cannot be written again
            self.failed = error
            raise
        _write_zones(active, zones)
        self._synced = _Synced(end_offset, snapshot.total_bytes, began_at)
        self.recovery_point = min(closed_by, end_offset)
        return end_offset

    def vouch(self, files: PartitionFiles) -> None:
        """Write down how far all is synced, if that has grown. Blocks, never fails."""
        end_offset = self._synced.end_offset
        if end_offset > self._vouched_offset:
            self._vouched_offset = end_offset
            synced_mark.save(files, end_offset)

    def _sync_logs(self, snapshot: LogSnapshot) -> None:
        synced = self._synced.end_offset
        segments = snapshot.segments
        first = len(segments) - 1
        while first and segments[first].base_offset > synced:
            first -= 1
        for segment in segments[first:]:
            _sync_log(segment)
        if not all(segment.name_is_durable for segment in segments[first:]):
            _sync_names(snapshot.active)
            for segment in segments[first:]:
                segment.name_is_durable = True

    def _sync_indexes(self, snapshot: LogSnapshot) -> int:
        """Sync the files of closed segments; the base of the first one that cannot be yet.

        A failure costs nothing but the time that a recovery takes: all is written again next time.
        But that of a `.log`, or of the directory, is raised.
        """
        unsynced = [segment for segment in snapshot.segments[:-1] if not segment.synced]
        if unsynced:
            for segment in unsynced:
                # Its length, too: what a failed write left may have been cut off.
                _sync_log(segment)
            done = list(takewhile(_sync_files, unsynced))
            if done:
                _sync_names(snapshot.active)
            for segment in done:
                segment.synced = True
            if len(done) < len(unsynced):
                return unsynced[len(done)].base_offset
        # The active one's index of aborted transactions is not on the disk. A new segment that
        # begins right here must not let recovery pass over it, so its last offset counts as above
        # the point.
        return snapshot.log_end_offset - snapshot.active.has_aborted


def _sync_log(segment: Segment) -> None:
    try:
        segment.file().sync()
    except FileMissing:
        if not segment.is_removed:
            raise


def _sync_files(segment: Segment) -> bool:
    try:
        sync_files(segment)
    except DiskError:
        return False
    return True


def _sync_names(segment: Segment) -> None:
    segment.files.fs.sync_dir(segment.files.path)


def _closed_zones(segment: Segment) -> int:
    """Number of its closed zones: the bytes that they describe are written by now."""
    zones = None if segment.indexes is None else segment.indexes.zones
    return 0 if zones is None or not zones.is_loaded else zones.row_count


def _write_zones(segment: Segment, count: int) -> None:
    """The first so many rows. Arrival times cannot be made again, so they do not wait for the
    segment's end; and what a row speaks of is on the disk before it.
    """
    if segment.indexes is None:
        return
    try:
        segment.indexes.zones.flush(count)
    except DiskError:
        return
