"""Copies one partition to the back-up's place, by the tier's own steps.

What is there already is not sent again: of a log that compaction never rewrote by its offsets, of
others by the checksum of each segment. The end of the log, which grows, takes the place of what the
back-up before had of that segment.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.backup.checked_store import CheckedStore
from storage.backup.run_clock import RunClock
from storage.backup.still_file import DirectoryChanged
from storage.backup.still_log import KnownOffsets, StillLog, StillOrder, check_topic, open_still
from storage.backup.unchanged import has_all, state_if_old
from storage.env import Env
from storage.errors import StorageError
from storage.files.layout import ZONES, PartitionName, partition_dir_name
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.tier.carrying import Pace
from storage.tier.manifests.manifest import Manifest, RemoteSegment
from storage.tier.manifests.reading import read_newest
from storage.tier.names import PartitionKeys
from storage.tier.object_cache import ObjectCache
from storage.tier.port import ObjectStore
from storage.tier.remote_object import Reach
from storage.tier.tiered_log import TieredLog

TRIES = 20
"""Looks at a partition whose files change while they are read."""
REST_SECONDS = 0.2


class CopyCount(NamedTuple):
    """Segments and bytes that one partition's copy has sent."""

    segments: int = 0
    size_bytes: int = 0

    def plus(self, row: RemoteSegment) -> "CopyCount":
        """With one more."""
        return CopyCount(self.segments + 1, self.size_bytes + row.size_bytes)


class Source(NamedTuple):
    """The directory that is copied, and the place it is copied to."""

    env: Env
    log_dir: str
    store: ObjectStore
    clock: RunClock
    pace: Pace
    pause: Callable[[float], object]
    """Waits so many seconds."""
    before_ms: int | None = None
    """Begin of the last complete back-up at the place; None: there is none."""


class PartitionBackup:
    """One partition's copy. One thread."""

    def __init__(self, source: Source, keys: PartitionKeys) -> None:
        """Nothing is read."""
        self._source = source
        self._keys = keys
        self.path = f"{source.log_dir}/{partition_dir_name(keys.topic, keys.partition)}"
        self.sent = CopyCount()

    def run(
        self, known: Callable[[], KnownOffsets], below: int | None, at_first: KnownOffsets
    ) -> None:
        """Has the place know the log up to the offset `below`; None: all that is synced.

        `known` reads the directory's checkpoints, before each look at the partition; `at_first` is
        what it gave when the back-up had begun, which is enough where nothing has changed.
        PartitionGone; CorruptLog for a damaged log, TieredElsewhere; DirectoryChanged when its
        files do not rest; WriterReplaced, TierMismatch, StoreError, DiskError: what was sent is
        not sent again.
        """
        order = StillOrder(known, below, self._source.pause)
        for _ in range(TRIES - 1):
            try:
                return self._attempt(order, at_first)
            except DirectoryChanged:
                self._source.pause(REST_SECONDS)
        return self._attempt(order, at_first)

    def _attempt(self, order: StillOrder, at_first: KnownOffsets) -> None:
        source = self._source
        if self._is_there(at_first):
            return
        still = open_still(source.env, self.path, self._keys, order)
        try:
            with self._judged(still, order):
                self._copy(still, order)
        finally:
            still.log.abandon()

    def _is_there(self, known: KnownOffsets) -> bool:
        """True when nothing has changed since the last back-up."""
        source, keys = self._source, self._keys
        if source.before_ms is None:
            return False
        check_topic(source.env, self.path, keys)
        name = PartitionName(keys.topic, keys.partition)
        state = state_if_old(source.env, self.path, name, known, source.before_ms)
        if state is None:
            return False
        manifest = read_newest(source.store, keys)
        if manifest is None or not has_all(manifest, state):
            return False
        source.clock.pass_by(manifest.written_ms)
        return True

    @contextmanager
    def _judged(self, still: StillLog, order: StillOrder) -> Iterator[None]:
        """An error of files that were replaced meanwhile says nothing about the log."""
        try:
            yield
        except StorageError as error:
            if not isinstance(error, DirectoryChanged) and still.is_changed(
                self._source.env, order
            ):
                raise DirectoryChanged(self.path, "copy", str(error)) from error
            raise

    def _copy(self, still: StillLog, order: StillOrder) -> None:
        source = self._source
        store = CheckedStore(source.store, partial(still.is_changed, source.env, order))
        reach = Reach(store, ObjectCache(still.env.fs, self.path, 0))  # nothing is read through it
        env = replace(still.env, clock=source.clock)
        tiered = TieredLog(still.log, self._keys, reach, env, None)
        tiered.settle()
        source.clock.pass_by(tiered.manifest.written_ms)
        if still.is_rewritten:
            copy_next = partial(tiered.mirror_next, source.pace, still.cleaned)
        else:
            copy_next = partial(tiered.copy_next, source.pace)
        if (known := _with_better_times(still.log, tiered.manifest)) is not None:
            self._count(tiered.copy_again(*known, source.pace))
        while (row := copy_next()) is not None:
            self._count(row)
        tiered.expire()
        tiered.note_start()

    def _count(self, row: RemoteSegment | None) -> None:
        if row is not None:
            self.sent = self.sent.plus(row)


def _with_better_times(log: Log, manifest: Manifest) -> tuple[Segment, int] | None:
    """The last segment of the place, and its end, where the directory knows more of its times.

    Of a segment that is written, the arrivals of the last zone are in the broker's memory alone: a
    copy has estimates, until the segment has ended or the broker has.
    """
    if not manifest.segments:
        return None
    row, segments = manifest.segments[-1], log.snapshot.segments
    for segment, following in pairwise(segments):
        if (segment.base_offset, following.base_offset) == (row.base_offset, row.end_offset):
            zones = segment.files.fs.read_bytes(segment.path_of(ZONES))
            part = row.parts.get(ZONES)
            is_same = part is not None and (part.size_bytes, part.crc) == (
                len(zones), crc32c(zones),
            )  # fmt: skip
            is_copy = segment.size_bytes == row.size_bytes
            return (segment, row.end_offset) if is_copy and not is_same else None
    return None
