"""A log out of its directory, up to where it was synced and no transaction is open.

It is opened as a start opens it, over a `StillDirectory`: what comes out is what a start after a
power cut would serve, cut before the first record of an open transaction, with producers, epochs
and abort lists of that offset. Then its last segment is ended, in memory, so that all is closed.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

from config.topic import TopicConfig
from storage.backup.still_directory import (
    Names,
    StillDirectory,
    has_traces,
    is_log,
    is_replaced,
    logs_by_base,
    look,
)
from storage.backup.still_file import DirectoryChanged
from storage.env import Env
from storage.errors import CorruptCheckpoint, CorruptLog, FileMissing
from storage.files import synced_mark
from storage.files.layout import (
    PARTITION_METADATA_FILE,
    REMOTE_FILE,
    SYNCED_MARK,
    PartitionName,
    parse_segment_name,
)
from storage.files.meta_properties import read_partition_metadata
from storage.files.partition_files import FilePool, PartitionFiles
from storage.log.compaction_state import CleanPart
from storage.log.log import Log
from storage.recovery.loading import MAX_OFFSET, LoadHints, load_log
from storage.scan.batch_walk import find_offset
from storage.segment.trusted_indexes import TrustedIndexes
from storage.tier.manifests import local_state
from storage.tier.names import PartitionKeys

RECENT_MS, MARK_SECONDS = 2000, 0.5
"""A log that was written so lately has its mark of what is synced no later than that."""
_LEFT_OUT = frozenset((REMOTE_FILE, SYNCED_MARK))
"""Files that speak of more than the log has after it was cut."""


class PartitionGone(FileMissing):
    """The partition's directory is gone, or another topic's: the topic was deleted."""


class TieredElsewhere(CorruptLog):
    """A part of the log is in a tier's store alone: that tier is its back-up."""


class KnownOffsets(NamedTuple):
    """Contents of a data directory's checkpoints."""

    recovery_points: Mapping[PartitionName, int]
    start_offsets: Mapping[PartitionName, int]
    clean_parts: Mapping[PartitionName, CleanPart]
    """Of logs that compaction has rewritten."""


class StillOrder(NamedTuple):
    """A log as it is asked for."""

    known: Callable[[], KnownOffsets]
    """Reads the checkpoints of its data directory."""
    below: int | None
    """The offset where it ends, unless compaction rewrites it: a record from before may have gone
    already for one that is behind. None: where it is synced."""
    pause: Callable[[float], object]
    """Waits so many seconds."""


class StillLog(NamedTuple):
    """One log, and how to find out whether its files are what they were."""

    log: Log
    path: str
    names: Names
    is_rewritten: bool
    cleaned: CleanPart
    env: Env
    """The same world; its files are those of the moment, and take changes in memory."""

    def is_changed(self, env: Env, order: StillOrder) -> bool:
        """True when a file that was read may have been another one. DiskError."""
        name = PartitionName(self.log.topic, self.log.partition)
        try:
            now = look(env.fs, self.path)
            return is_replaced(self.names, now, _clean_end(order.known(), name))
        except FileMissing:
            return True


def synced_below(env: Env, path: str, recovery_point: int) -> int:
    """The offset below which all of a log is on the disk, as far as its files say. DiskError."""
    files = PartitionFiles(env.fs, FilePool(env.fs), path)
    return max(recovery_point, synced_mark.load(files))


def open_still(env: Env, path: str, keys: PartitionKeys, order: StillOrder) -> StillLog:
    """Opens the log in `path` up to the offset `order.below`; None: up to where it is synced.

    PartitionGone, TieredElsewhere, DirectoryChanged; CorruptLog for one that is damaged; DiskError.
    """
    check_topic(env, path, keys)
    found = _find(env, path, PartitionName(keys.topic, keys.partition), order)
    _check_is_here(env, path, found.names, found.hints.start_offset)
    work = _Opening(env, path, keys, found)
    log, still = work.opened(found.below)
    if log.snapshot.last_stable_offset < log.snapshot.log_end_offset:
        log.abandon()
        log, still = work.opened(log.snapshot.last_stable_offset)
    log.roll()
    log.mark_durable(log.sync())
    cleaned = found.cleaned or CleanPart()
    return StillLog(log, path, found.names, found.is_rewritten, cleaned, still)


class _FoundLog(NamedTuple):
    """A log's files, and what is known of them."""

    names: Names
    below: int
    hints: LoadHints
    is_rewritten: bool
    cleaned: CleanPart | None


def _find(env: Env, path: str, name: PartitionName, order: StillOrder) -> _FoundLog:
    """Looks at names, then at marks, then at names again: these have all up to the marks."""
    before = _look(env, path)
    known = order.known()
    cleaned, below = known.clean_parts.get(name), order.below
    is_rewritten = cleaned is not None or has_traces(before)
    if is_rewritten:
        _wait_for_mark(env, before, order.pause)
    if is_rewritten or below is None:
        known = order.known()
        below = synced_below(env, path, known.recovery_points.get(name, 0))
    names = _look(env, path)
    if is_replaced(before, names, _clean_end(order.known(), name)) or (
        has_traces(names) and not is_rewritten
    ):
        raise DirectoryChanged(path, "look", "segments were replaced meanwhile")
    hints = LoadHints(
        is_clean=False,
        recovery_point=min(known.recovery_points.get(name, 0), below),
        start_offset=known.start_offsets.get(name, 0),
        gaps_below=MAX_OFFSET,  # the cut is what ends a log here, no gap that compaction left
    )
    return _FoundLog(names, below, hints, is_rewritten, cleaned)


def _clean_end(known: KnownOffsets, name: PartitionName) -> int:
    """End of the part in which compaction has been."""
    return known.clean_parts.get(name, CleanPart()).end_offset


def _wait_for_mark(env: Env, names: Names, pause: Callable[[float], object]) -> None:
    """Waits until a log's mark speaks of all that compaction has seen of it.

    It may have removed a record for one that is behind the mark of this moment; that one is synced,
    and a log's mark follows its syncs.
    """
    written_ms = max((each.mtime_ms for name, each in names.items() if is_log(name)), default=0)
    if abs(env.clock.now_ms() - written_ms) < RECENT_MS:
        pause(MARK_SECONDS)


def _look(env: Env, path: str) -> Names:
    try:
        return look(env.fs, path)
    except FileMissing as error:
        raise PartitionGone(path, "look", "the topic was deleted") from error


def check_topic(env: Env, path: str, keys: PartitionKeys) -> None:
    """PartitionGone unless the directory is that of the topic; CorruptLog when it cannot say."""
    try:
        topic_id = read_partition_metadata(env.fs, f"{path}/{PARTITION_METADATA_FILE}")
    except CorruptCheckpoint as error:
        raise CorruptLog(error.path, error.message) from error
    if topic_id != keys.topic_id:
        raise PartitionGone(path, "look", "the topic was deleted")


def _check_is_here(env: Env, path: str, names: Names, start_offset: int) -> None:
    """TieredElsewhere unless the directory has the log from its start on."""
    if REMOTE_FILE not in names:
        return
    state = local_state.load(env.fs, path)
    bases = logs_by_base(names)
    if state is None or not state.manifest.segments:
        return
    start = max(start_offset, state.manifest.log_start_offset)
    if not bases or max(min(bases), state.local_start_offset) > start:
        raise TieredElsewhere(
            path, "a part of it is in a tier's store alone: restore reads it from there"
        )


class _Opening:
    """Openings of one log, each up to another offset."""

    def __init__(self, env: Env, path: str, keys: PartitionKeys, found: _FoundLog) -> None:
        self._env = env
        self._path = path
        self._keys = keys
        self._names = found.names
        self._hints = found.hints

    def opened(self, below: int) -> tuple[Log, Env]:
        """The log up to the offset. CorruptLog, DiskError."""
        names = self._cut(below)
        fs = StillDirectory(self._env.fs, self._path, names, _LEFT_OUT)
        env = replace(self._env, fs=fs)
        files = PartitionFiles(fs, FilePool(fs), self._path)
        config = TopicConfig()
        hints = self._hints._replace(recovery_point=min(self._hints.recovery_point, below))
        keys = self._keys
        loaded = load_log(files, config, env, hints)
        if loaded.corruption is not None:
            raise loaded.corruption
        log = Log(
            keys.topic, keys.partition, keys.topic_id, loaded, config, env, TrustedIndexes(),
            lambda: None,
        )  # fmt: skip
        return log, env

    def _cut(self, below: int) -> Names:
        """The names without segments from the offset on; the last one ends before it."""
        names = dict(self._names)
        bases = logs_by_base(names)
        first = min(bases, default=0)
        behind = {base for base in bases if base >= below and base > first}
        for name in self._names:
            parsed = parse_segment_name(name)
            if parsed is not None and parsed.base_offset in behind:
                del names[name]
        last = max((base for base in bases if base not in behind), default=None)
        if last is not None:
            entry = names[bases[last]]
            names[bases[last]] = entry._replace(size_bytes=self._end_in(entry.name, below))
        return names

    def _end_in(self, name: str, below: int) -> int:
        """Position in a `.log` of the first batch that ends at the offset or behind it.

        All of it where the headers end before: a batch may be on its way into the file, and
        loading finds that end.
        """
        size_bytes = self._names[name].size_bytes
        file = self._env.fs.open(f"{self._path}/{name}", write=False)
        try:
            place = find_offset(file, 0, size_bytes, below)
        except CorruptLog:
            return size_bytes
        finally:
            file.close()
        return size_bytes if place is None else place.position
