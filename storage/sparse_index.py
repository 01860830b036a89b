"""What the offset index and the time index share: two rising columns over a file of fixed entries.

Rules (semantics.md 1.4-1.7, 2): the file holds nothing but entries and is never preallocated or
mapped, so its length is always entries x entry size; `segment.index.bytes` sets the capacity all
the same. An index is a hint: it can be rebuilt, and is verified before it is believed.

In memory an index costs nothing until it is first used; then two arrays of machine numbers.
Entries are appended in memory and written by `flush`, which opens and closes the file, so no
descriptor is held. Appending, truncating and flushing belong to the log's single writer (a flush
may run in another thread as long as nothing truncates meanwhile); lookups may run in any thread.
"""

import sys
from abc import ABC, abstractmethod
from array import array
from itertools import islice
from operator import le, lt

from storage.env import FileSystem
from storage.errors import CorruptIndex, FileMissing

MAX_RELATIVE_OFFSET = 2**31 - 1

_ABSENT = -1


def big_endian(column: "array[int]") -> "array[int]":
    """The column's numbers with their bytes as files want them, and back."""
    if sys.byteorder == "little":
        column.byteswap()
    return column


def is_rising(column: "array[int]", *, strictly: bool) -> bool:
    """Whether no number is smaller (`strictly`: nor equal) than the one before it."""
    return all(map(lt if strictly else le, column, islice(column, 1, None)))


class SparseIndex(ABC):
    """Entries of one segment: `keys` are searched, `values` are found. Both columns rise."""

    ENTRY_BYTES: int
    __slots__ = ("_fs", "_keys", "_values", "_written", "base_offset", "capacity", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int, max_bytes: int) -> None:
        """Name the file; nothing is read before the first use.

        `max_bytes` is `segment.index.bytes`; less than one entry is a ValueError.
        """
        if max_bytes < self.ENTRY_BYTES:
            raise ValueError(f"{path}: an index of {max_bytes} bytes cannot hold one entry")
        self.path = path
        self.base_offset = base_offset
        self.capacity = max_bytes // self.ENTRY_BYTES
        self._fs = fs
        self._keys: array[int] | None = None
        self._values: array[int] = array("i")
        self._written = _ABSENT  # entries that are in the file; _ABSENT: no file, or not ours

    @abstractmethod
    def _decode(self, data: bytes) -> "tuple[array[int], array[int]]":
        """Keys and values of the file's entries; CorruptIndex if they contradict themselves."""

    @abstractmethod
    def _encode(self, first: int, last: int) -> bytes:
        """The entries from `first` to before `last` as the file has them."""

    @property
    def entries(self) -> int:
        """How many entries there are, written or not."""
        return len(self._load())

    @property
    def size_bytes(self) -> int:
        """Length of the file once everything is written."""
        return self.entries * self.ENTRY_BYTES

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are in memory."""
        return self._keys is not None

    def reset(self) -> None:
        """Start again without entries, unread: for a new segment, or to rebuild."""
        self._values = array(self._values.typecode)
        self._keys = self._empty_keys()
        self._written = _ABSENT

    def check(self) -> None:
        """Read the file if that has not happened; CorruptIndex if it contradicts itself.

        Stricter than Kafka's sanity check, which looks at the length and the last entry alone:
        order is verified too, so the zero tail of a crashed Kafka is found. A missing file is
        an index without entries.
        """
        self._load()

    def flush(self) -> None:
        """Write what is not in the file yet; makes the file, also when there is no entry."""
        self._write(durable=False)

    def sync(self) -> None:
        """As `flush`, and the file's bytes are durable afterwards (its name: the caller's)."""
        self._write(durable=True)

    def unload(self) -> None:
        """Drop the memory; unwritten entries are written first. The next use reads the file."""
        if self._keys is not None:
            self.flush()
            self._keys = None
            self._values = array(self._values.typecode)

    def _empty_keys(self) -> "array[int]":
        keys, _ = self._decode(b"")
        return keys

    def _load(self) -> "array[int]":
        keys = self._keys
        if keys is None:
            keys = self._read()
        return keys

    def _read(self) -> "array[int]":
        try:
            data = self._fs.read_bytes(self.path)
        except FileMissing:
            self.reset()
            return self._load()
        if len(data) % self.ENTRY_BYTES:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        keys, self._values = self._decode(data)
        self._written = len(keys)
        self._keys = keys  # last: a reader in another thread sees both columns or none
        return keys

    def _keep(self, count: int) -> None:
        """Drop all entries but the first `count`, in memory and in the file."""
        keys = self._load()
        if count >= len(keys):
            return
        del keys[count:]
        del self._values[count:]
        if self._written > count:
            file = self._fs.open(self.path)
            try:
                file.truncate(count * self.ENTRY_BYTES)
            finally:
                file.close()
            self._written = count

    def _write(self, *, durable: bool) -> None:
        keys = self._keys
        if keys is None or (self._written == len(keys) and not durable):
            return
        count, written = len(keys), max(self._written, 0)
        file = self._fs.open(self.path, create=True)
        try:
            if self._written == _ABSENT:
                file.truncate(0)
            if count > written:
                file.write_at(written * self.ENTRY_BYTES, self._encode(written, count))
            self._written = count
            if durable:
                file.sync()
        finally:
            file.close()
