"""A file as it was at one moment: read from the disk, and what is written to it kept in memory."""

from collections.abc import Callable, Sequence

from storage.env import Buffer, File
from storage.errors import DiskError


class DirectoryChanged(DiskError):  # noqa: N818 - what was found
    """Files came, went or were replaced since the directory was looked at."""


class StillNode:
    """Content of one file: a part of a file on the disk, or bytes in memory."""

    __slots__ = ("data", "mtime_ms", "size_bytes", "source")

    def __init__(self, source: str, size_bytes: int, mtime_ms: int) -> None:
        """The first `size_bytes` of the file `source`; "": an empty one in memory."""
        self.source = source
        self.size_bytes = size_bytes
        self.mtime_ms = mtime_ms
        self.data: bytearray | None = None if source else bytearray()

    def size(self) -> int:
        """Length in bytes."""
        return self.size_bytes if self.data is None else len(self.data)


class StillFile:
    """A `storage.env.File` over such a node. Nothing reaches the disk."""

    def __init__(
        self, path: str, node: StillNode, source: File | None, charge: Callable[[str, int], None]
    ) -> None:
        """`source`: the file on the disk. `charge` hears of bytes that come into memory, before
        they do, and may refuse them.
        """
        self.path = path
        self._node = node
        self._source = source
        self._charge = charge

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes. DirectoryChanged where the file has fewer than it had; DiskError."""
        node = self._node
        if node.data is not None:
            return bytes(node.data[position : position + size])
        assert self._source is not None
        size = max(min(size, node.size_bytes - position), 0)
        data = self._source.read_at(position, size) if size else b""
        if len(data) < size:
            raise DirectoryChanged(node.source, "read", f"it ends at {position + len(data)}")
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fills the buffer. DiskError."""
        data = self.read_at(position, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        """As `read_into`: nobody's loop waits here."""
        return self.read_into(position, buffer)

    def size(self) -> int:
        """Length in bytes."""
        return self._node.size()

    def write_at(self, position: int, data: Buffer) -> None:
        """Into memory, with all else of the file. NoSpace: it is too much for that."""
        content = self._in_memory(position + len(data))
        if len(content) < position:
            content.extend(bytes(position - len(content)))
        content[position : position + len(data)] = data

    def write_parts_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """As `write_at`."""
        for part in parts:
            self.write_at(position, part)
            position += len(part)

    def truncate(self, size: int) -> None:
        """Cuts, without a byte in memory; or extends, as `write_at`."""
        node = self._node
        if node.data is None and size <= node.size_bytes:
            node.size_bytes = size
            return
        content = self._in_memory(size)
        del content[size:]
        content.extend(bytes(size - len(content)))

    def _in_memory(self, size: int) -> bytearray:
        node = self._node
        before = 0 if node.data is None else len(node.data)
        self._charge(self.path, max(size, node.size()) - before)
        if node.data is None:
            node.data = bytearray(self.read_at(0, node.size_bytes))
        return node.data

    def reserve(self, position: int, size: int) -> None:
        """Nothing: what is written is in memory."""

    def let_go(self, position: int, size: int) -> None:
        """The bytes need not stay in the page cache."""
        if self._source is not None:
            self._source.let_go(position, size)

    def drop_cache(self, position: int) -> bool:  # noqa: ARG002 - a port's call
        """Says that reads come from the disk: of what was synced they may come from anywhere."""
        return True

    def sync(self) -> None:
        """Nothing to keep."""

    def fileno(self) -> int | None:
        """It has none."""
        return None

    def close(self) -> None:
        """Lets go of the file on the disk."""
        if self._source is not None:
            self._source.close()
