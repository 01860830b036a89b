"""Shared base of the offset and the time index: two rising columns over a file of fixed entries.

Rules (semantics.md 1.4-1.7, 2): the file holds nothing but entries and is never preallocated or
mapped, so its length is always entries x entry size; `segment.index.bytes` sets the capacity all
the same. An index is a hint: it can be rebuilt, and is verified before it is believed.

In memory an index costs nothing until it is first used; then two arrays of machine numbers.
Entries are appended in memory and written by `flush`, which opens and closes the file, so no
descriptor stays open. Appending, truncating and flushing belong to the log's single writer (a flush
may run in another thread as long as nothing truncates meanwhile). Lookups may run in any thread at
any time: both columns are published by one assignment, and only ever grow in place.
"""

import sys
from abc import ABC, abstractmethod
from array import array
from itertools import islice
from operator import le, lt
from typing import TypeAlias

from storage import locks
from storage.env import FileSystem
from storage.errors import CorruptIndex, FileMissing
from storage.files.layout import SPAN

MAX_RELATIVE_OFFSET = SPAN - 1

_ABSENT = -1

Columns: TypeAlias = "tuple[array[int], array[int]]"


def big_endian(column: "array[int]") -> "array[int]":
    """The column's numbers with their bytes as files want them, and back."""
    if sys.byteorder == "little":
        column.byteswap()
    return column


def is_rising(column: "array[int]", *, strictly: bool) -> bool:
    """True when no number is smaller (`strictly`: nor equal) than the one before it."""
    return all(map(lt if strictly else le, column, islice(column, 1, None)))


def used_bytes(data: bytes, entry_bytes: int) -> int:
    """Length of the whole entries before the zeros at the end of an index that a Kafka has open.

    An entry that ends with zeros itself counts whole.
    """
    used = -(-len(data.rstrip(b"\0")) // entry_bytes)
    return min(used, len(data) // entry_bytes) * entry_bytes


class SparseIndex(ABC):
    """Entries of one segment: keys are searched, values are found. Both columns rise."""

    ENTRY_BYTES: int
    __slots__ = ("_columns", "_fs", "_written", "base_offset", "capacity", "path")

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
        self._columns: Columns | None = None
        self._written = _ABSENT  # entries that are in the file; _ABSENT: no file, or not ours

    @abstractmethod
    def _decode(self, data: bytes) -> Columns:
        """Keys and values of the file's entries; CorruptIndex if they contradict themselves."""

    @abstractmethod
    def _encode(self, columns: Columns, first: int, last: int) -> bytes:
        """The entries from `first` to before `last` as the file has them."""

    @property
    def entries(self) -> int:
        """Number of entries, written or not."""
        return len(self._load()[0])

    @property
    def size_bytes(self) -> int:
        """Length of the file once everything is written."""
        return self.entries * self.ENTRY_BYTES

    @property
    def is_loaded(self) -> bool:
        """True when the entries are in memory."""
        return self._columns is not None

    def reset(self) -> None:
        """Start again without entries, unread: for a new segment, or to rebuild."""
        self._columns = self._decode(b"")
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
        if self._columns is not None:
            self.flush()
            self._columns = None

    def _load(self) -> Columns:
        columns = self._columns
        if columns is None:
            found, written = self._read()
            with locks.ONCE:  # else the writer's newest could be lost to a slow reader
                columns = self._columns
                if columns is None:
                    columns = self._columns = found
                    self._written = written
        return columns

    def _read(self) -> tuple[Columns, int]:
        try:
            data = self._fs.read_bytes(self.path)
        except FileMissing:
            return self._decode(b""), _ABSENT
        if len(data) % self.ENTRY_BYTES:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        columns = self._decode(data)
        return columns, len(columns[0])

    def _keep(self, count: int) -> None:
        """Drop all entries but the first `count`, in memory and in the file."""
        keys, values = self._load()
        if count >= len(keys):
            return
        self._columns = keys[:count], values[:count]
        if self._written > count:
            file = self._fs.open(self.path)
            try:
                file.truncate(count * self.ENTRY_BYTES)
            finally:
                file.close()
            self._written = count

    def _write(self, *, durable: bool) -> None:
        columns = self._columns
        if columns is None:
            return
        count, written = len(columns[0]), max(self._written, 0)
        if self._written == count and not durable:
            return
        file = self._fs.open(self.path, create=True)
        try:
            if self._written == _ABSENT:
                file.truncate(0)
            if count > written:
                data = self._encode(columns, written, count)
                file.write_at(written * self.ENTRY_BYTES, data)
            self._written = 0 if durable else count  # a failed sync loses all that was not synced
            if durable:
                file.sync()
                self._written = count
        finally:
            file.close()
