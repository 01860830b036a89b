"""A piece of a large file in memory: reads forward in bounded memory, whatever the file claims."""

from collections.abc import Callable
from typing import TypeAlias

from storage.env import File

WINDOW_BYTES = 1024 * 1024

Checksum: TypeAlias = Callable[..., int]
"""`crc32c` or `zlib.crc32`: of a piece, given the checksum of what came before."""


class LogWindow:
    """A piece of a file in memory, which follows the reader."""

    __slots__ = ("_begin", "_buffer", "_filled", "file", "size")

    def __init__(self, file: File, size: int) -> None:
        """The first `size` bytes of the file; nothing is read yet."""
        self.file = file
        self.size = size
        self._begin = 0
        self._filled = 0
        self._buffer = bytearray(WINDOW_BYTES)

    def view(self, position: int, size: int) -> memoryview:
        """Bytes from `position`, fewer at the end; valid until the next call. DiskError."""
        size = min(size, self.size - position)
        if not self._begin <= position <= position + size <= self._begin + self._filled:
            if size > len(self._buffer) or len(self._buffer) > WINDOW_BYTES >= size:
                self._buffer = bytearray(max(size, WINDOW_BYTES))
            self._begin = position
            wanted = min(len(self._buffer), self.size - position)
            self._filled = self.file.read_into(position, memoryview(self._buffer)[:wanted])
        begin = position - self._begin
        return memoryview(self._buffer)[begin : min(begin + size, self._filled)]

    def checksum(self, position: int, end: int, algorithm: Checksum) -> int:
        """The checksum of a stretch of any length."""
        value = 0
        while position < end:
            piece = self.view(position, min(WINDOW_BYTES, end - position))
            if not piece:
                break
            value = algorithm(piece, value)
            position += len(piece)
        return value

    def is_zeros(self, position: int) -> bool:
        """True when only zeros follow."""
        while position < self.size:
            piece = self.view(position, WINDOW_BYTES)
            if not piece or any(piece):
                return not piece
            position += len(piece)
        return True
