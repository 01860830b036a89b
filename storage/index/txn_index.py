"""Transaction index of a segment: the transactions that were aborted in it (semantics.md 9.2).

An entry is 34 bytes, big-endian: int16 version 0, int64 producer id, int64 first offset, int64
last offset (of the marker), int64 last stable offset after the abort. Last offsets strictly rise.
The file exists only if there were aborts. Entries count in memory at once; the file follows with
`flush`, at the latest when its segment is synced, and recovery rebuilds it from the log. Its
checksum (`txn_sum`) is written after each sync and looked at when the log is opened.
"""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter
from struct import Struct
from typing import NamedTuple

from storage import locks
from storage.env import FileSystem
from storage.errors import CorruptIndex, FileMissing, InvalidOffset
from storage.index import txn_sum

VERSION = 0
ENTRY = Struct(">hqqqq")
ENTRY_BYTES = ENTRY.size
_last_offset = attrgetter("last_offset")


class AbortedTxn(NamedTuple):
    """Records of `producer_id` from `first_offset` to `last_offset` do not count."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class AbortedSearch(NamedTuple):
    """Result of one segment; `is_complete`: later segments cannot add to it."""

    transactions: tuple[AbortedTxn, ...]
    is_complete: bool


class TxnIndex:
    """Aborted transactions of one segment. Nothing is read before the first use."""

    __slots__ = ("_entries", "_fs", "_is_shortened", "_unwritten", "base_offset", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        """Name the file."""
        self.path = path
        self.base_offset = base_offset
        self._fs = fs
        self._entries: tuple[AbortedTxn, ...] | None = None
        self._unwritten = 0
        self._is_shortened = False
        """Its checksum is of more entries; it stays until a sync, so that a crash is noticed."""

    @property
    def entries(self) -> tuple[AbortedTxn, ...]:
        """All of them in log order; CorruptIndex if the file contradicts itself."""
        entries = self._entries
        if entries is None:
            found = self._read()
            with locks.ONCE:  # else the writer's newest could be lost to a slow reader
                entries = self._entries
                if entries is None:
                    entries = self._entries = found
        return entries

    @property
    def is_loaded(self) -> bool:
        """True when the entries are in memory."""
        return self._entries is not None

    def append(self, aborted: AbortedTxn) -> None:
        """Add one, in memory; InvalidOffset unless its end is after the last."""
        entries = self.entries
        if entries and aborted.last_offset <= entries[-1].last_offset:
            raise InvalidOffset(
                self.path, f"{aborted.last_offset} is not after {entries[-1].last_offset}"
            )
        self._entries = (*entries, aborted)
        self._unwritten += 1

    def flush(self) -> None:
        """Bring the file up to date (not synced). DiskError: it is tried again next time."""
        if self._unwritten:
            self._write(durable=False)

    def search(self, fetch_offset: int, upper_bound: int) -> AbortedSearch:
        """The transactions that touch offsets from `fetch_offset` to before `upper_bound`."""
        found = []
        entries = self.entries
        first = bisect_left(entries, fetch_offset, key=_last_offset)
        for aborted in islice(entries, first, None):
            if aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return AbortedSearch(tuple(found), is_complete=True)
        return AbortedSearch(tuple(found), is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions that ended at `offset` or later, in the file too."""
        self.flush()
        entries = self.entries
        keep = sum(aborted.last_offset < offset for aborted in entries)
        if keep < len(entries):
            file = self._fs.open(self.path)
            try:
                file.truncate(keep * ENTRY_BYTES)
            finally:
                file.close()
            self._entries = entries[:keep]
            self._is_shortened = True

    def reset(self) -> None:
        """Start again without entries; the file goes, its checksum with the next `sync`."""
        self._entries = ()
        self._is_shortened = True
        self._unwritten = 0
        if self._fs.exists(self.path):
            self._fs.remove(self.path)

    def sync(self) -> None:
        """Make the file's bytes durable, if there is one (its name: the caller's). DiskError."""
        if self._entries if self._entries is not None else self._fs.exists(self.path):
            self._write(durable=True)
        elif self._is_shortened:
            txn_sum.remove(self._fs, self.path)
        self._is_shortened = False

    def _write(self, *, durable: bool) -> None:
        entries = self.entries
        first = len(entries) - self._unwritten
        file = self._fs.open(self.path, create=True)
        try:
            if self._unwritten:
                file.write_at(first * ENTRY_BYTES, _packed(entries[first:]))
            self._unwritten = len(entries) if durable else 0  # a failed sync loses all of it
            if durable:
                file.sync()
                txn_sum.save(self._fs, self.path, _packed(entries))
                self._unwritten = 0
        finally:
            file.close()

    def check(self) -> None:
        """CorruptIndex if the file contradicts itself, its segment or its checksum."""
        data = self._bytes()
        txn_sum.check(self._fs, self.path, data)
        self._entries = self._parsed(data)

    def check_beside_writer(self) -> None:
        """As `check`, for a reader of files: a broker may have written entries since a sync."""
        data = self._bytes()
        txn_sum.check_beside_writer(self._fs, self.path, data, ENTRY_BYTES)
        self._entries = self._parsed(data)

    def _read(self) -> tuple[AbortedTxn, ...]:
        return self._parsed(self._bytes())

    def _bytes(self) -> bytes:
        try:
            return self._fs.read_bytes(self.path)
        except FileMissing:
            return b""

    def _parsed(self, data: bytes) -> tuple[AbortedTxn, ...]:
        if len(data) % ENTRY_BYTES:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        return self._checked(ENTRY.iter_unpack(data))

    def _checked(self, rows: Iterable[tuple[int, ...]]) -> tuple[AbortedTxn, ...]:
        entries = []
        last = self.base_offset - 1
        for version, *fields in rows:
            aborted = AbortedTxn(*fields)
            if version > VERSION or aborted.last_offset <= last:
                raise CorruptIndex(self.path, f"unknown or misplaced entry {aborted}")
            last = aborted.last_offset
            entries.append(aborted)
        return tuple(entries)


def _packed(entries: Iterable[AbortedTxn]) -> bytes:
    return b"".join(ENTRY.pack(VERSION, *each) for each in entries)
