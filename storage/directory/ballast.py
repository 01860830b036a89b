"""The ballast: a file of zeros in the data directory that gives way when the disk is full.

A full disk must not keep the broker from what makes room or keeps promises: deleting a topic, a
committed offset, a checkpoint, the clean mark. Each needs a few blocks, and these are they. The
file is written, not merely made long, so that its blocks are really there. Kafka ignores it: it is
no directory. Blocks: call it on a lane.
"""

from collections.abc import Callable
from typing import TypeVar

from storage.env import FileSystem
from storage.errors import DiskError, FileMissing, NoSpace

STEP = bytes(1024 * 1024)

T = TypeVar("T")


class Ballast:
    """The file, and how much of it there is."""

    __slots__ = ("_fs", "_path", "size_bytes")

    def __init__(self, fs: FileSystem, path: str) -> None:
        """Nothing is touched before `find`."""
        self._fs = fs
        self._path = path
        self.size_bytes = 0

    def find(self) -> None:
        """Finds the ballast of an earlier run."""
        try:
            file = self._fs.open(self._path, write=False)
        except FileMissing:
            return
        self.size_bytes = file.size()
        file.close()

    def keep(self, size_bytes: int) -> None:
        """Make it that large, durably; 0 is none. NoSpace: there is none then. DiskError."""
        if size_bytes == self.size_bytes:
            return
        if not size_bytes:
            self.release()
            return
        try:
            self._write(size_bytes)
        except DiskError:
            self.release()
            raise
        self.size_bytes = size_bytes if self._fs.exists(self._path) else 0

    def release(self) -> bool:
        """Give its blocks back; whether there were any."""
        self.size_bytes = 0
        try:
            self._fs.remove(self._path)
        except FileMissing:
            return False
        return True

    def making_room(self, write: Callable[[], T]) -> T:
        """The result of `write`, which is tried a second time without the ballast on a full disk.

        NoSpace when that was not enough.
        """
        try:
            return write()
        except NoSpace:
            if not self.release():
                raise
        return write()

    def _write(self, size_bytes: int) -> None:
        file = self._fs.open(self._path, create=True)
        try:
            position = file.size()
            if position > size_bytes:
                file.truncate(size_bytes)
            while position < size_bytes:
                part = min(len(STEP), size_bytes - position)
                file.write_at(position, memoryview(STEP)[:part])
                position += part
            file.sync()
        finally:
            file.close()
