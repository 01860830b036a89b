"""The files of one partition: its directory, and a bounded number of open files.

Rules: at most one descriptor per partition stays open outside the pool (the active `.log`, kept by
its segment); everything else is opened through a `FilePool`, which forgets the file that was used
longest ago. A
forgotten file is not closed under its readers: it closes when the last of them is done. Reads may
come from any thread. A file that took another one's name has another generation, or is of another
partition, made again under the name of one that was deleted: so the two are never confused.
"""

from storage.env import File, FileSystem
from storage.files.layout import segment_name

POOL_FILES = 256


class FilePool:
    """Open files of one log directory, the most recently used ones.

    `owner` is the partition that has them, by identity.
    """

    __slots__ = ("_files", "_fs", "_limit")

    def __init__(self, fs: FileSystem, limit: int = POOL_FILES) -> None:
        """Nothing is open. `limit` is the number of files that stay open."""
        self._fs = fs
        self._limit = limit
        self._files: dict[tuple[object, str, int], File] = {}

    def get(self, owner: object, path: str, generation: int = 0) -> File:
        """The file, opened if need be; DiskError if that fails."""
        key = owner, path, generation
        file = self._files.pop(key, None) or self._fs.open(path)
        self._keep(key, file)
        return file

    def put(self, owner: object, file: File) -> None:
        """Keep an open file for others, as the one used last."""
        self._keep((owner, file.path, 0), file)

    def _keep(self, key: tuple[object, str, int], file: File) -> None:
        files = self._files
        files[key] = file
        if len(files) > self._limit:
            try:
                files.pop(next(iter(files)), None)
            except (StopIteration, RuntimeError):
                return  # another thread is at it

    def forget(self, owner: object, path: str, generation: int = 0) -> None:
        """The file is about to be renamed, replaced or removed."""
        self._files.pop((owner, path, generation), None)

    def forget_all(self, owner: object) -> None:
        """All files of a partition are about to go; those that others open meanwhile stay."""
        for key in tuple(self._files):
            if key[0] is owner:
                self._files.pop(key, None)

    def clear(self) -> None:
        """Forget all files."""
        self._files.clear()

    def __len__(self) -> int:
        """Number of files that are kept open."""
        return len(self._files)


class PartitionFiles:
    """The directory of a partition. Its `path` changes once: when the partition is deleted."""

    __slots__ = ("_pool", "fs", "path")

    def __init__(self, fs: FileSystem, pool: FilePool, path: str) -> None:
        """Nothing is read."""
        self.fs = fs
        self.path = path
        self._pool = pool

    def name_of(self, base_offset: int, suffix: str) -> str:
        """Path of a segment's file or of a snapshot."""
        return f"{self.path}/{segment_name(base_offset, suffix)}"

    def get(self, base_offset: int, suffix: str, generation: int = 0) -> File:
        """A segment's file from the pool; DiskError if it cannot be opened."""
        return self._pool.get(self, self.name_of(base_offset, suffix), generation)

    def opened(self, path: str) -> File:
        """Another file of the directory, from the pool; DiskError if it cannot be opened."""
        return self._pool.get(self, path)

    def keep(self, file: File) -> None:
        """Keep an open file in the pool."""
        self._pool.put(self, file)

    def forget(self, path: str, generation: int = 0) -> None:
        """The file is about to be renamed, replaced or removed."""
        self._pool.forget(self, path, generation)

    def forget_all(self) -> None:
        """All files of the directory are about to go."""
        self._pool.forget_all(self)
