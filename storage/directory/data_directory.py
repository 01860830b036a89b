"""A data directory as a whole: its lock, its identity, its clean mark.

Rules (semantics.md 9.1, operations B3.6): the lock is kept as long as the process uses the
directory; an identity that does not fit, or a newer format, is refused before anything is touched;
the clean mark is gone, durably, before the first write, and comes back when every log was closed
well.
"""

from uuid import UUID

from storage.env import Env, Lock, make_dir_durably
from storage.errors import StorageError
from storage.files.layout import (
    CLEAN_SHUTDOWN_FILE,
    LOCK_FILE,
    META_PROPERTIES_FILE,
    RESTORING_FILE,
)
from storage.files.meta_properties import (
    MetaProperties,
    encode_clean_shutdown,
    kafka_uuid,
    read_clean_shutdown,
    read_meta_properties,
    write_meta_properties,
)


class DataDirectory:
    """Lock, identity and clean mark of one directory."""

    __slots__ = ("_env", "_lock", "cluster_id", "directory_id", "path", "was_clean")

    def __init__(self, env: Env, path: str) -> None:
        """Nothing is touched."""
        self._env = env
        self._lock: Lock | None = None
        self.path = path
        self.cluster_id = ""
        self.directory_id: UUID | None = None
        self.was_clean = False

    def open(self, cluster_id: str, node_id: int) -> None:
        """Take the directory, made if absent; an empty `cluster_id` accepts or invents one.

        DirectoryLocked when another process has it, NewerFormat or CorruptCheckpoint when its
        identity cannot be read, StorageError when it belongs to another cluster or node, or when a
        restore into it was cut off, DiskError.
        """
        fs = self._env.fs
        make_dir_durably(fs, self.path)
        self._lock = fs.lock(self.path_of(LOCK_FILE))
        try:
            self._refuse_half_restored()
            self._identify(cluster_id, node_id)
            self.was_clean = read_clean_shutdown(fs, self.path_of(CLEAN_SHUTDOWN_FILE)) is not None
        except StorageError:
            self.release()
            raise

    def remove_clean_mark(self) -> None:
        """From here on the directory counts as uncleanly left. Durable when it returns.

        So is every name in it: what a killed process renamed is not taken back once it was read.
        """
        if self.was_clean:
            self._env.fs.remove(self.path_of(CLEAN_SHUTDOWN_FILE))
        self._env.fs.sync_dir(self.path)

    def write_clean_mark(self) -> None:
        """Every log was closed well. Durable when it returns."""
        self._env.fs.write_atomically(self.path_of(CLEAN_SHUTDOWN_FILE), encode_clean_shutdown(0))

    def release(self) -> None:
        """Let others have the directory."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def path_of(self, name: str) -> str:
        """Path of a file at its top."""
        return f"{self.path}/{name}"

    def _refuse_half_restored(self) -> None:
        mark = self.path_of(RESTORING_FILE)
        if self._env.fs.exists(mark):
            raise StorageError(
                mark, "a restore into this directory has not come to its end: run it once more"
            )

    def _identify(self, cluster_id: str, node_id: int) -> None:
        path = self.path_of(META_PROPERTIES_FILE)
        stored = read_meta_properties(self._env.fs, path)
        if stored is not None:
            _refuse_strangers(path, stored, cluster_id, node_id)
        known = stored or MetaProperties(None, None, None)
        meta = MetaProperties(
            known.cluster_id or cluster_id or kafka_uuid(self._env.rng.uuid()),
            node_id,
            known.directory_id or self._env.rng.uuid(),
        )
        if meta != stored:
            write_meta_properties(self._env.fs, path, meta, self._env.clock.now_ms())
        self.cluster_id = meta.cluster_id or ""
        self.directory_id = meta.directory_id


def _refuse_strangers(path: str, stored: MetaProperties, cluster_id: str, node_id: int) -> None:
    if cluster_id and stored.cluster_id not in {None, cluster_id}:
        raise StorageError(path, f"belongs to the cluster {stored.cluster_id}, not to {cluster_id}")
    if stored.node_id not in {None, node_id}:
        raise StorageError(path, f"belongs to node {stored.node_id}, not to node {node_id}")
