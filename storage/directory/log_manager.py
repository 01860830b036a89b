"""All logs of one data directory: opened together, checkpointed, created, deleted, closed.

Checkpoints and names are Kafka's (semantics.md 9.1), so a Kafka directory opens here and ours opens
there; `__cluster_metadata-0` and directories that are no partitions are left alone. Calls that
touch the disk block: run them on a lane. `logs` is replaced, never changed, so any thread may read.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

from config.topic import TopicConfig
from storage.cleaner.cleanable_logs import is_compacted
from storage.directory.ballast import Ballast
from storage.directory.data_directory import DataDirectory
from storage.directory.deleted_directories import DeletedDirectories
from storage.directory.log_checkpoints import LogCheckpoints
from storage.env import Env
from storage.errors import CorruptCheckpoint, DiskError, StorageError
from storage.files import synced_mark
from storage.files.layout import (
    BALLAST_FILE,
    PARTITION_METADATA_FILE,
    PartitionName,
    is_deleted_partition_dir,
    parse_partition_dir,
    partition_dir_name,
)
from storage.files.meta_properties import read_partition_metadata, write_partition_metadata
from storage.files.partition_files import FilePool, PartitionFiles
from storage.locks import Lock
from storage.log.log import Log
from storage.producers.producer_state import MAX_PRODUCERS, PRODUCER_BYTES
from storage.recovery.cutting import cut_from
from storage.recovery.loading import LoadHints, load_log
from storage.segment.removal import RemovalStep, RemovedSegments
from storage.segment.segment import Segment
from storage.segment.trusted_indexes import TrustedIndexes

if TYPE_CHECKING:
    from storage.tier.manifests.local_state import LocalState
    from storage.tier.remote_logs import RemoteLogs

METADATA_TOPIC = "__cluster_metadata"


class LogManager:
    """The logs of one data directory."""

    def __init__(
        self,
        env: Env,
        log_dir: str,
        topic_config: Callable[[str], TopicConfig],
        remote: "RemoteLogs | None" = None,
    ) -> None:
        """Nothing is touched. `topic_config` gives the settings of a topic by name.

        `remote`: the parts of logs in the tier's store, where there is one.
        """
        self.logs: Mapping[tuple[str, int], Log] = {}
        self.damage: list[str] = []
        """Damaged files that `load` went on without: checkpoints, metadata files."""
        self.recovered_logs = 0
        """Number of logs that `load` had to recover."""
        self.cut_bytes: Counter[str] = Counter()
        """Bytes by which logs were cut when they were opened: tails that were never durable."""
        self.upgraded_segments = 0
        """Number of segments of formats 0 and 1 that `load` rewrote."""
        self._env = env
        self._remote = remote
        self._topic_config = topic_config
        self._directory = DataDirectory(env, log_dir)
        self._pool = FilePool(env.fs)
        self._indexes = TrustedIndexes()
        self._deleted = DeletedDirectories(env, log_dir)
        self._removed = RemovedSegments(env.clock)
        self._copied = RemovedSegments(env.clock)
        self._checkpoints = LogCheckpoints(env.fs, log_dir, lambda: self.logs)
        self.cleaner_offsets = self._checkpoints.cleaner
        """End of the clean part of each compacted log."""
        self.ballast = Ballast(env.fs, self._directory.path_of(BALLAST_FILE))
        """Space that is released on a full disk."""
        self._turn = Lock()
        self._is_loaded = False
        self._has_closed_badly = False

    @property
    def log_dir(self) -> str:
        """The data directory."""
        return self._directory.path

    @property
    def was_clean(self) -> bool:
        """True when the directory was left by a clean stop."""
        return self._directory.was_clean

    @property
    def cluster_id(self) -> str:
        """Of the cluster that the directory belongs to."""
        return self._directory.cluster_id

    @property
    def directory_id(self) -> UUID | None:
        """The directory's own id."""
        return self._directory.directory_id

    @property
    def rebuilt_indexes(self) -> int:
        """Segments whose indexes did not agree with their log and were rebuilt."""
        return self._indexes.rebuilt

    @property
    def last_write_ms(self) -> int | None:
        """Wall time of the last write to a log that holds something; None if none does."""
        written = (
            segment.mtime_ms
            for log in self.logs.values()
            for segment in log.snapshot.segments
            if segment.size_bytes
        )
        return max(written, default=None)

    @property
    def producers_bytes(self) -> int:
        """About what the logs remember of producers; from any thread."""
        return PRODUCER_BYTES * sum(len(log.producers) for log in self.logs.values())

    def share_producers(self, most_bytes: int) -> bool:
        """Have each log remember its part, when all together take more; whether they do.

        A log that has more than its part forgets those idle for longest as new ones come.
        """
        is_too_much = self.producers_bytes > most_bytes
        most = MAX_PRODUCERS
        if is_too_much:
            most = min(most, max(1, most_bytes // PRODUCER_BYTES // len(self.logs)))
        for log in self.logs.values():
            log.producers.most = most
        return is_too_much

    def producer_ids(self) -> Iterator[int]:
        """Ids of the producers that the logs know of; from any thread."""
        for log in self.logs.values():
            yield from log.producers.ids()

    def open_directory(self, cluster_id: str, node_id: int) -> None:
        """Lock and identify the directory; see `DataDirectory.open` for what is refused."""
        self._directory.open(cluster_id, node_id)
        self.ballast.find()

    def has_partitions(self) -> bool:
        """True when the directory has a partition of a topic, whether it can be opened or not."""
        names = (each.name for each in self._env.fs.list_dir(self.log_dir) if each.is_dir)
        found = (name for name in map(parse_partition_dir, names) if name is not None)
        return any(name.topic != METADATA_TOPIC for name in found)

    def load(self) -> None:
        """Open all logs: at once after a clean stop, through recovery otherwise.

        StorageError when a log cannot be opened at all: the directory is then left as it is.
        """
        self._directory.remove_clean_mark()
        self.damage += self._checkpoints.load()
        is_clean = self._directory.was_clean
        logs: dict[tuple[str, int], Log] = {}
        for entry in self._env.fs.list_dir(self.log_dir):
            if not entry.is_dir:
                continue
            if is_deleted_partition_dir(entry.name):
                self._deleted.found(entry.name)
            name = parse_partition_dir(entry.name)
            if name is not None and name.topic != METADATA_TOPIC:
                known = LoadHints(
                    is_clean,
                    self._checkpoints.recovery_points.get(name, 0),
                    self._checkpoints.start_offsets.get(name, 0),
                    self.cleaner_offsets.gaps_below(name),
                )
                logs[name] = self._open_log(name, known)
        self.logs = logs
        self.cleaner_offsets.settle(
            {name: log.snapshot.log_end_offset for name, log in logs.items()}
        )
        self._is_loaded = True
        if self.recovered_logs:
            with suppress(
                DiskError
            ):  # what was scanned once need not be again; tried again on time
                self.checkpoint()

    def expire_restored_producers(self, expiration_ms: int) -> None:
        """Forget producers from snapshots that have been silent for so long.

        Between `load` and the first append, once the clock of this start is believed.
        """
        now_ms = self._env.clock.now_ms()
        for log in self.logs.values():
            log.producers.expire_restored(now_ms, expiration_ms)

    def create_log(
        self, topic: str, partition: int, topic_id: UUID, config: TopicConfig, start_offset: int = 0
    ) -> Log:
        """Make a partition's directory and empty log, durably. DiskError: it does not exist.

        One of that name that could not be deleted goes first, and so does what checkpoints say of
        the name. StorageError while a log of that name is in use by another topic.
        """
        name = PartitionName(topic, partition)
        left = self.logs.get(name)
        if left is not None:
            if not left.is_closed:
                return self._made_before(left, topic_id, config)
            self.delete_log(topic, partition)
        self.ballast.making_room(lambda: self._checkpoints.forget(name))
        hints = LoadHints(is_clean=False, start_offset=start_offset)
        return self._created(
            name, topic_id, lambda _: self._make_log(name, topic_id, config, hints)
        )

    def adopt_log(
        self, topic: str, partition: int, topic_id: UUID, write: Callable[[str], object]
    ) -> Log:
        """As `create_log`, of a partition of which nothing is here: its directory has what `write`
        makes there, and its segments are in the store, as the file `horolog-remote` says.
        """
        name = PartitionName(topic, partition)
        self.ballast.making_room(lambda: self._checkpoints.forget(name))

        def opened(path: str) -> Log:
            write(path)
            return self._open_log(name, LoadHints(is_clean=False))

        return self._created(name, topic_id, opened)

    def _created(self, name: PartitionName, topic_id: UUID, opened: Callable[[str], Log]) -> Log:
        fs, path = self._env.fs, self._path_of(name)
        if fs.exists(path):  # a log that could not be made, or cut, has left it: none is there
            left = PartitionFiles(fs, self._pool, path)
            self.ballast.making_room(lambda: self._deleted.bury(left, *name, delay_ms=0))
        try:
            fs.make_dir(path)
            write_partition_metadata(fs, f"{path}/{PARTITION_METADATA_FILE}", topic_id)
            log = opened(path)
            fs.sync_dir(self.log_dir)
        except StorageError:
            self._undo_make_dir(path)
            raise
        self._replace({name: log})
        return log

    def delete_log(self, topic: str, partition: int) -> None:
        """Take a log out of service and its directory out of the way, durably.

        Its files go in later calls of `remove_deleted`. DiskError: it is out of service and
        perhaps still there; asked again, it goes on.
        """
        log = self.logs[topic, partition]
        log.abandon()
        if self._remote is not None:
            self._remote.retire(log)
        delay_ms = log.config.file_delete_delay_ms
        self.ballast.making_room(lambda: self._deleted.bury(log.files, topic, partition, delay_ms))
        self._replace({}, without=log)
        if self._remote is not None:
            self._remote.deleted(log)

    def cut(self, log: Log, end_offset: int) -> Log:
        """Takes off what is at `end_offset` or behind it, durably; the log, opened again.

        What was not committed by a leader goes before the next one begins. Blocks; `log` is closed,
        once what is under way there is over. StorageError: it stays closed, and is for `delete_log`
        or a start, which recovers it.
        """
        name, start_offset = PartitionName(log.topic, log.partition), log.snapshot.log_start_offset
        log.abandon()
        # Else a start would trust what comes at these offsets.
        log.durability.recovery_point = point = min(log.durability.recovery_point, end_offset)
        known = LoadHints(is_clean=False, recovery_point=point, start_offset=start_offset)
        try:
            self.ballast.making_room(lambda: self._checkpoints.forget(name))
            cut_from(log.files, log.snapshot.local_segments, end_offset)
            shorter = self._open_log(name, known)
        except StorageError as error:
            log.fail(error)
            raise
        shorter.reconfigure(log.config)
        self._replace({name: shorter})
        return shorter

    def _replace(self, new: Mapping[tuple[str, int], Log], without: Log | None = None) -> None:
        """Other logs may come and go on another thread."""
        with self._turn:
            kept = {name: log for name, log in self.logs.items() if log is not without}
            self.logs = {**kept, **new}

    def remove_segments(self, log: Log, start_offset: int, *, all_go: bool = False) -> RemovalStep:
        """As `Log.remove_segments`; the files go in later calls of `remove_deleted`."""
        step = log.remove_segments(start_offset, all_go=all_go)
        self._removed.bury(step.segments, log.config.file_delete_delay_ms)
        return step

    def bury(self, log: Log, segments: Sequence[Segment]) -> None:
        """Replaced segments, renamed already: their files go in later calls of `remove_deleted`."""
        self._removed.bury(segments, log.config.file_delete_delay_ms)

    def bury_copied(self, log: Log, segments: Sequence[Segment]) -> None:
        """As `bury`, for segments that the tier's store has; `remove_copied` has no delay."""
        self._copied.bury(segments, log.config.file_delete_delay_ms)

    def is_rewritten(self, log: Log) -> bool:
        """True when compaction rewrites segments of the log, or has done so."""
        has_been = (log.topic, log.partition) in self.cleaner_offsets.first_dirty
        return has_been or is_compacted(log.config)

    def cleaned(self, log: Log, first_dirty: int, horizon_ms: int) -> None:
        """A compaction has ended there; durable, unless a DiskError says otherwise."""
        self._checkpoints.cleaned(log, first_dirty, horizon_ms)

    def remove_deleted(self, *, hurry: bool = False) -> bool:
        """Remove some files of deleted partitions and segments that are due; whether more is.

        `hurry`: whatever `file.delete.delay.ms` says, since the disk is short of space.
        """
        more_copied = self._copied.step(hurry=hurry)
        more_segments = self._removed.step(hurry=hurry)
        return self._deleted.step(hurry=hurry) or more_segments or more_copied

    def remove_copied(self) -> bool:
        """Remove files of segments that the tier's store has, now; whether more are left.

        For a disk that runs short of space: readers find the records in the store. DiskError.
        """
        return self._copied.step(hurry=True)

    def checkpoint(self) -> None:
        """Store recovery points, start offsets, high watermarks. DiskError: the old ones stay."""
        self._checkpoints.save()

    def sync_logs(self, logs: Iterable[Log]) -> None:
        """Make some logs durable before `close_logs` closes them; several threads may.

        Apart from it, since closing makes files: an fsync in between would have to store all of
        their names and inodes, too. A log that fails is tried again by `close_logs`, which says so.
        """
        for log in logs:
            with suppress(StorageError):
                log.sync_before_close()

    def write_logs(self, logs: Iterable[Log]) -> None:
        """Write what is in memory, unsynced, before `close_logs` syncs it, likewise."""
        for log in logs:
            if log.failed is None:
                with suppress(StorageError):
                    log.write_before_close()

    def close_logs(self, logs: Iterable[Log]) -> None:
        """Close some logs before `close` does; several threads may, each with logs of its own.

        The fsync threads must be at rest. A log that fails is left to recovery.
        """
        for log in logs:
            try:
                log.close()
            except StorageError:
                self._has_closed_badly = True
            if log.failed is not None:
                self._has_closed_badly = True

    def close(self) -> bool:
        """Close all logs and let the directory go; whether it is left clean.

        The fsync threads must be at rest. A log that fails is left to recovery.
        """
        self.close_logs(self.logs.values())
        is_clean = self._is_loaded and not self._has_closed_badly
        try:
            if self._is_loaded:
                self.ballast.making_room(self.checkpoint)
            if is_clean:
                self.ballast.making_room(self._directory.write_clean_mark)
        except StorageError:
            is_clean = False
        self._pool.clear()
        self._directory.release()
        return is_clean

    def release(self) -> None:
        """Let others have the directory as it is: after a start that failed."""
        self._directory.release()

    def _open_log(self, name: PartitionName, known: LoadHints) -> Log:
        metadata = f"{self._path_of(name)}/{PARTITION_METADATA_FILE}"
        topic_id = None
        try:
            topic_id = read_partition_metadata(self._env.fs, metadata)
        except CorruptCheckpoint as error:
            self.damage.append(str(error))
        remote = None
        if self._remote is not None:
            from storage.tier.manifests import local_state  # start-up time, where there is no tier

            remote = local_state.load(self._env.fs, self._path_of(name))
        if remote is None:
            return self._make_log(name, topic_id, self._topic_config(name.topic), known)
        return self._open_tiered(name, remote, topic_id, known)

    def _open_tiered(
        self, name: PartitionName, remote: "LocalState", topic_id: UUID | None, known: LoadHints
    ) -> Log:
        """A log of which a part is in the tier's store."""
        assert self._remote is not None
        topic_id = _id_of(self._path_of(name), remote, topic_id)
        config = self._topic_config(name.topic)
        log = self._make_log(name, topic_id, config, remote.added_to(known))
        self._remote.opened(log, remote)
        return log

    def _make_log(
        self, name: PartitionName, topic_id: UUID | None, config: TopicConfig, known: LoadHints
    ) -> Log:
        files = PartitionFiles(self._env.fs, self._pool, self._path_of(name))
        synced_mark.forget(files)
        loaded = load_log(files, config, self._env, known)
        self.recovered_logs += loaded.was_recovered
        if loaded.cut_bytes:
            self.cut_bytes[partition_dir_name(*name)] = loaded.cut_bytes
        self.upgraded_segments += loaded.upgraded_segments
        return Log(
            name.topic,
            name.partition,
            topic_id,
            loaded,
            config,
            self._env,
            self._indexes,
            self._checkpoints.save_starts,
        )

    def _made_before(self, log: Log, topic_id: UUID, config: TopicConfig) -> Log:
        """A log of the same topic, made when others of the request could not be; nobody used it."""
        if log.topic_id != topic_id:
            raise StorageError(log.files.path, "another topic's log of that name is in use")
        log.reconfigure(config)
        return log

    def _undo_make_dir(self, path: str) -> None:
        try:
            self._env.fs.remove_tree(path)
        except StorageError:
            return  # the next start finds an empty log of a topic that was not made

    def _path_of(self, name: PartitionName) -> str:
        return f"{self.log_dir}/{partition_dir_name(name.topic, name.partition)}"


def _id_of(path: str, remote: "LocalState", topic_id: UUID | None) -> UUID:
    """The topic's id, also when its own file is damaged. StorageError when two are named."""
    if topic_id is not None and topic_id != remote.manifest.topic_id:
        raise StorageError(
            path, f"the topic is {topic_id}, its part in the store {remote.manifest.topic_id}'s"
        )
    return remote.manifest.topic_id
