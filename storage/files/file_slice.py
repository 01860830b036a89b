"""Ranges of log files on their way to a reader, unread until the bytes are needed."""

from typing import NamedTuple, Protocol

from storage.env import File


class FileSlice:
    """`size` bytes of an open file from `position` on. `len()` is its size, as of any buffer."""

    __slots__ = ("file", "position", "size")

    def __init__(self, file: File, position: int, size: int) -> None:
        """Nothing is read; the file stays open as long as the slice lives."""
        self.file = file
        self.position = position
        self.size = size

    def __len__(self) -> int:
        """Size in bytes."""
        return self.size

    def __repr__(self) -> str:
        """Path and range."""
        return f"FileSlice({self.file.path}, {self.position}+{self.size})"

    def read(self) -> bytes:
        """The bytes; may wait for the disk. DiskError on failure."""
        return self.file.read_at(self.position, self.size)

    def read_into(self, buffer: memoryview) -> int:
        """Fill `buffer` (of `size` bytes); may wait for the disk."""
        return self.file.read_into(self.position, buffer)

    def read_into_if_cached(self, buffer: memoryview) -> int | None:
        """As `read_into`, but None when the disk would have to be touched."""
        return self.file.read_into_if_cached(self.position, buffer)


class Unverified(Protocol):
    """A byte range to verify before its first read."""

    @property
    def segment(self) -> object:
        """The segment of the slice."""

    @property
    def place(self) -> tuple[object, int]:
        """The segment and where in it: ranges of one place are settled one after the other."""

    @property
    def is_away(self) -> bool:
        """True when it takes the tier's store, which may take its time."""

    def settle(self) -> None:
        """Verify it. Blocks. DiskError."""


class FetchData(NamedTuple):
    """Data of a fetch: whole batches but perhaps the last, as stored on the disk."""

    slices: tuple[FileSlice, ...]
    size_bytes: int
    unverified: Unverified | None = None
    """Set while it must not be served: what has to be settled before it is asked for again."""
    segment: object = None
    """Segment of the slices: another one may take its name while they wait to be sent."""

    def read(self) -> bytes:
        """All bytes joined (tools, tests, old clients)."""
        return b"".join(part.read() for part in self.slices)


NOTHING = FetchData((), 0)
