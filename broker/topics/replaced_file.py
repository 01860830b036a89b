"""A small file that is replaced as a whole, and put back when the disk refuses what was written.

A failed sync says nothing about what the next start finds: the old content, or the new one, which
was refused. So the old one is stored again. Where the disk refuses that too, `is_unknown` says so
until a write succeeds.
"""

from collections.abc import Callable
from functools import partial

from storage.env import FileSystem, parent_of
from storage.errors import StorageError


class ReplacedFile:
    """One file. Blocks; one thread at a time."""

    def __init__(
        self, fs: FileSystem, path: str, making_room: Callable[[Callable[[], None]], None]
    ) -> None:
        """Reads nothing. `making_room` runs a write, on a full disk with room that was reserved."""
        self.path = path
        self._fs = fs
        self._making_room = making_room
        self._stored: bytes | None = None
        self.is_unknown = False
        """The next start may find what was refused."""

    def read(self) -> bytes | None:
        """The content; None without a file. DiskError."""
        self._stored = self._content()
        return self._stored

    def holds(self, data: bytes) -> bool:
        """True when that is the content which the next start finds."""
        return data == self._stored and not self.is_unknown

    def write(self, data: bytes) -> None:
        """Replace the content; durable when this returns.

        StorageError: the content is what it was before, or `is_unknown`.
        """
        try:
            self._making_room(partial(self._fs.write_atomically, self.path, data))
        except StorageError:
            self.is_unknown = not self._is_put_back()
            raise
        self._stored, self.is_unknown = data, False

    def _is_put_back(self) -> bool:
        try:
            if self.is_unknown or self._content() != self._stored:
                self._put_back()
        except StorageError:
            return False
        return True

    def _put_back(self) -> None:
        if self._stored is not None:
            write = partial(self._fs.write_atomically, self.path, self._stored)
            self._making_room(write)
        elif self._fs.exists(self.path):
            self._fs.remove(self.path)
            self._fs.sync_dir(parent_of(self.path))

    def _content(self) -> bytes | None:
        return self._fs.read_bytes(self.path) if self._fs.exists(self.path) else None
