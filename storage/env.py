"""The ports: everything that storage asks of the outside world. Real: `storage.posix`.

Rules: no other module of storage reaches a clock, a file or randomness; no default argument
reaches for the real thing. Wall time (`now_ms`) stamps and judges age, `monotonic` measures
intervals, never the other way round. Paths are plain strings joined with "/".

Durability as disks have it: a write is durable after `File.sync`, a new, renamed or removed
name after `FileSystem.sync_dir` of its directory. The first failed sync of a file is final:
its unsynced bytes may be gone although a second sync would succeed (operations B3.1), and
although reads still show them. They are unsynced again when they are written again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias
from uuid import UUID

Buffer: TypeAlias = bytes | bytearray | memoryview


class DirEntry(NamedTuple):
    """One name in a directory, with what the file system knows of it."""

    name: str
    is_dir: bool
    size_bytes: int
    mtime_ms: int


class Clock(Protocol):
    """Both clocks of the machine."""

    def now_ms(self) -> int:
        """Wall time in milliseconds since 1970: it stamps records and judges their age."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go backwards: for intervals only."""


class Rng(Protocol):
    """Randomness; seeded in tests."""

    def uint64(self) -> int:
        """A number of 64 random bits."""

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""

    def uuid(self) -> UUID:
        """A random (version 4) UUID; as Kafka writes it, it does not begin with "-"."""


class File(Protocol):
    """An open file without a position of its own. Every failure is a `DiskError`."""

    path: str

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of `data` at `position`; on failure a part may have been written."""

    def write_parts_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """Write the parts one after the other from `position` on, in one call if possible."""

    def read_at(self, position: int, size: int) -> bytes:
        """The bytes at `position`: fewer than `size` only at the end of the file."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill `buffer` from `position`; the count is short only at the end of the file."""

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        """As `read_into`, but None when the disk would have to be touched or might have to be."""

    def size(self) -> int:
        """Length in bytes."""

    def truncate(self, size: int) -> None:
        """Cut or extend (with zeros) to `size` bytes; lets go of what was reserved behind it."""

    def reserve(self, position: int, size: int) -> None:
        """Have room for `size` bytes at `position` without changing the length, if that is easy.

        Never fails: it makes later writes cheaper, and those say what is wrong.
        """

    def let_go(self, position: int, size: int) -> None:
        """These bytes need not stay in the page cache. Never fails."""

    def drop_cache(self, position: int) -> bool:
        """Makes reads from `position` on come from the disk, but for unsynced bytes; True if so.

        False where the file system keeps its cache, or cannot say. Never fails.
        """

    def sync(self) -> None:
        """Make the bytes durable. The first failure is final: see the module's rules."""

    def fileno(self) -> int | None:
        """The descriptor, for sendfile; None where there is none."""

    def close(self) -> None:
        """Let go of the file without making it durable. Closing twice is allowed."""


class Lock(Protocol):
    """A taken lock on a data directory."""

    def release(self) -> None:
        """Let others have the directory."""


class FileSystem(Protocol):
    """Names and what they hold. Failures are `DiskError`, an absent name is `FileMissing`."""

    def open(self, path: str, *, create: bool = False, write: bool = True) -> File:
        """Open a file, made empty (owner only) if absent and `create` says so."""

    def exists(self, path: str) -> bool:
        """True when the name is that of a file or directory."""

    def is_open_to_all(self, path: str) -> bool:
        """True when every user of the machine may read or write the file, as far as is known."""

    def list_dir(self, path: str) -> list[DirEntry]:
        """Entries of the directory, in no particular order."""

    def make_dir(self, path: str) -> None:
        """Make the directory (owner only) and its missing parents; fine if it exists."""

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name, replacing a file of that name at once."""

    def remove(self, path: str) -> None:
        """Remove a file; FileMissing if there is none."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory and everything in it; fine if it is gone already."""

    def sync_dir(self, path: str) -> None:
        """Make the names in this directory durable (not those in its subdirectories)."""

    def free_bytes(self, path: str) -> int:
        """Bytes that may still be written on the disk that holds `path`."""

    def disk_bytes(self, path: str) -> int:
        """Size of the disk that holds `path`."""

    def lock(self, path: str) -> Lock:
        """Take the lock file `path`, made if absent; DirectoryLocked if another process has it."""

    def read_bytes(self, path: str) -> bytes:
        """The whole file."""

    def read_text(self, path: str) -> str:
        """The whole file as UTF-8; bytes that are not are replaced, so that parsers see damage."""

    def write_atomically(self, path: str, data: bytes) -> None:
        """Replace the file so that a crash leaves the old content or the new, durably."""

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the modification time."""


@dataclass(frozen=True, slots=True)
class Env:
    """The outside world, built in the composition root or in a test and passed down."""

    clock: Clock
    fs: FileSystem
    rng: Rng


def parent_of(path: str) -> str:
    """The directory that holds `path`."""
    head, _, _ = path.rstrip("/").rpartition("/")
    return head or ("/" if path.startswith("/") else ".")


def make_dir_durably(fs: FileSystem, path: str) -> None:
    """`FileSystem.make_dir`; a power cut takes back none of the directories. DiskError."""
    missing, above = [], path
    while not fs.exists(above):
        missing.append(above)
        above = parent_of(above)
    fs.make_dir(path)
    for each in missing:
        fs.sync_dir(parent_of(each))


def replace_file(fs: FileSystem, path: str, data: bytes) -> None:
    """`FileSystem.write_atomically` in terms of the other calls (operations B3.7).

    Write-new, sync, rename, sync the directory. On failure the old file is still there,
    and perhaps a left-over `.tmp` beside it, which the next call overwrites.
    """
    temporary = path + ".tmp"
    file = fs.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    fs.rename(temporary, path)
    fs.sync_dir(parent_of(path))
