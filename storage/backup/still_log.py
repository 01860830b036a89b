"""A log out of its directory, up to where it was synced and no transaction is open.

It is opened as a start opens it, over a `StillDirectory`: what comes out is what a start after a
power cut would serve, cut before the first record of an open transaction, with producers, epochs
and abort lists of that offset. Then its last segment is ended, in memory, so that all is closed.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from config.topic import TopicConfig
from storage.backup.still_directory import Names, StillDirectory, is_replaced, look
from storage.env import Env
from storage.errors import CorruptCheckpoint, CorruptLog, FileMissing
from storage.files import synced_mark
from storage.files.layout import (
    LOG,
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
from storage.tier import local_state
from storage.tier.names import PartitionKeys

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


class StillLog(NamedTuple):
    """One log, and how to find out whether its files are what they were."""

    log: Log
    path: str
    names: Names
    is_rewritten: bool
    cleaned: CleanPart
    env: Env
    """The same world; its files are those of the moment, and take changes in memory."""

    def is_changed(self, env: Env) -> bool:
        """True when a file that was read may have been another one. DiskError."""
        try:
            return is_replaced(self.names, look(env.fs, self.path))
        except FileMissing:
            return True


def synced_below(env: Env, path: str, recovery_point: int) -> int:
    """The offset below which all of a log is on the disk, as far as its files say. DiskError."""
    files = PartitionFiles(env.fs, FilePool(env.fs), path)
    return max(recovery_point, synced_mark.load(files))


def open_still(
    env: Env, path: str, keys: PartitionKeys, known: KnownOffsets, below: int | None
) -> StillLog:
    """Opens the log in `path` up to the offset `below`; None: up to where it is synced.

    A log that compaction rewrites is cut where it is synced, whatever `below` is: a record from
    before it may have gone already for one that is behind it.

    PartitionGone, TieredElsewhere, DirectoryChanged; CorruptLog for one that is damaged; DiskError.
    """
    name = PartitionName(keys.topic, keys.partition)
    cleaned = known.clean_parts.get(name)
    _check_topic(env, path, keys)
    synced = synced_below(env, path, known.recovery_points.get(name, 0))
    names = _look(env, path)
    if below is None or cleaned is not None:
        below = synced
    start = known.start_offsets.get(name, 0)
    _check_is_here(env, path, names, start)
    hints = LoadHints(
        is_clean=False,
        recovery_point=min(known.recovery_points.get(name, 0), below),
        start_offset=start,
        gaps_below=MAX_OFFSET,  # the cut is what ends a log here, no gap that compaction left
    )
    work = _Opening(env, path, keys, names, hints)
    log, still = work.opened(below)
    if log.snapshot.last_stable_offset < log.snapshot.log_end_offset:
        below = log.snapshot.last_stable_offset
        log.abandon()
        log, still = work.opened(below)
    log.roll()
    log.mark_durable(log.sync())
    return StillLog(log, path, names, cleaned is not None, cleaned or CleanPart(), still)


def _look(env: Env, path: str) -> Names:
    try:
        return look(env.fs, path)
    except FileMissing as error:
        raise PartitionGone(path, "look", "the topic was deleted") from error


def _check_topic(env: Env, path: str, keys: PartitionKeys) -> None:
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
    parsed = (parse_segment_name(name) for name in names)
    bases = [each.base_offset for each in parsed if each is not None and each.suffix == LOG]
    if state is None or not state.manifest.segments:
        return
    start = max(start_offset, state.manifest.log_start_offset)
    if not bases or max(min(bases), state.local_start_offset) > start:
        raise TieredElsewhere(
            path, "a part of it is in a tier's store alone: restore reads it from there"
        )


class _Opening:
    """Openings of one log, each up to another offset."""

    def __init__(
        self, env: Env, path: str, keys: PartitionKeys, names: Names, hints: LoadHints
    ) -> None:
        self._env = env
        self._path = path
        self._keys = keys
        self._names = names
        self._hints = hints

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
        bases = {
            parsed.base_offset: name
            for name in names
            if (parsed := parse_segment_name(name)) is not None and parsed.suffix == LOG
        }
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
