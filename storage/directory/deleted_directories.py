"""Directories of deleted partitions: renames now, deletes later in bounded steps.

A deleted partition's directory is renamed to `<topic>-<partition>.<hex>-delete`, which is durable
when `bury` returns, so a restart cannot bring it back. Its files stay for `file.delete.delay.ms`,
for readers that hold them, unless the disk is short of space.
"""

from collections import deque

from storage.env import Env
from storage.errors import FileMissing
from storage.files.layout import deleted_partition_dir_name, is_deleted_partition_dir
from storage.files.partition_files import PartitionFiles

STEP_FILES = 64


class DeletedDirectories:
    """Deleted directories that are still on the disk, in the order in which they are due."""

    __slots__ = ("_due", "_env", "_log_dir")

    def __init__(self, env: Env, log_dir: str) -> None:
        """None yet."""
        self._env = env
        self._log_dir = log_dir
        self._due: deque[tuple[float, str]] = deque()

    def __len__(self) -> int:
        """Number of directories that wait."""
        return len(self._due)

    def found(self, name: str) -> None:
        """A directory that an earlier run renamed."""
        self._due.appendleft((self._env.clock.monotonic(), f"{self._log_dir}/{name}"))

    def bury(self, files: PartitionFiles, topic: str, partition: int, delay_ms: int) -> None:
        """Rename the directory, durably; `files` follow. DiskError: ask again, it goes on there."""
        if not is_deleted_partition_dir(files.path.rpartition("/")[2]):
            name = deleted_partition_dir_name(topic, partition, self._env.rng.uuid())
            target = f"{self._log_dir}/{name}"
            self._env.fs.rename(files.path, target)
            files.path = target
            self._due.append((self._env.clock.monotonic() + delay_ms / 1000, target))
        self._env.fs.sync_dir(self._log_dir)

    def step(self, *, hurry: bool = False) -> bool:
        """Remove some files of the next directory that is due; whether more is due. Blocks.

        `hurry`: all are due, since the disk is short of space.

        DiskError: the directory is tried again later.
        """
        now = self._env.clock.monotonic()
        if not self._due or not (hurry or self._due[0][0] <= now):
            return False
        due, path = self._due.popleft()
        try:
            if not self._remove_some(path):
                self._due.appendleft((due, path))
        except FileMissing:
            pass
        except Exception:
            self._due.append((now, path))
            raise
        return bool(self._due) and (hurry or self._due[0][0] <= now)

    def _remove_some(self, path: str) -> bool:
        """Removes some files; True when the directory is gone."""
        fs = self._env.fs
        entries = fs.list_dir(path)
        for entry in entries[:STEP_FILES]:
            if not entry.is_dir:
                fs.remove(f"{path}/{entry.name}")
        if len(entries) > STEP_FILES:
            return False
        fs.remove_tree(path)
        return True
