"""Transaction index of a segment: the transactions that were aborted in it (semantics.md 9.2).

An entry is 34 bytes, big-endian: int16 version 0, int64 producer id, int64 first offset, int64
last offset (of the marker), int64 last stable offset after the abort. Last offsets strictly rise.
The file exists only if there were aborts. Entries count in memory at once; the file follows with
`flush`, at the latest when its segment is synced, and recovery rebuilds it from the log. Its
checksum (`txn_sum`) is written after each sync and looked at when the log is opened.

In memory an entry is four machine numbers of one array, which the log's writer extends in place: a
producer may abort as often as it likes. Readers of any thread take the count first.
"""

from array import array
from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from storage import locks
from storage.env import FileSystem
from storage.errors import CorruptIndex, FileMissing, InvalidOffset
from storage.index import txn_sum

VERSION = 0
ENTRY = Struct(">hqqqq")
ENTRY_BYTES = ENTRY.size
_FIELDS, _LAST_OFFSET = 4, 2  # of an entry in memory


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

    __slots__ = ("_fs", "_is_shortened", "_rows", "_unwritten", "base_offset", "path")

    def __init__(self, fs: FileSystem, path: str, base_offset: int) -> None:
        """Name the file."""
        self.path = path
        self.base_offset = base_offset
        self._fs = fs
        self._rows: array[int] | None = None
        self._unwritten = 0
        self._is_shortened = False
        """Its checksum is of more entries; it stays until a sync, so that a crash is noticed."""

    @property
    def rows(self) -> "array[int]":
        """The numbers of all entries in log order; CorruptIndex if the file contradicts itself."""
        rows = self._rows
        if rows is None:
            found = self._read()
            with locks.ONCE:  # else the writer's newest could be lost to a slow reader
                rows = self._rows
                if rows is None:
                    rows = self._rows = found
        return rows

    @property
    def entries(self) -> tuple[AbortedTxn, ...]:
        """All of them in log order. Raises CorruptIndex."""
        rows = self.rows
        return tuple(_entry(rows, number) for number in range(len(rows) // _FIELDS))

    @property
    def count(self) -> int:
        """Number of entries. Raises CorruptIndex."""
        return len(self.rows) // _FIELDS

    @property
    def is_loaded(self) -> bool:
        """True when the entries are in memory."""
        return self._rows is not None

    def append(self, aborted: AbortedTxn) -> None:
        """Add one, in memory; InvalidOffset unless its end is after the last."""
        rows = self.rows
        last = rows[_LAST_OFFSET - _FIELDS] if rows else None
        if last is not None and aborted.last_offset <= last:
            raise InvalidOffset(self.path, f"{aborted.last_offset} is not after {last}")
        rows.extend(array("q", aborted))  # in one step: a reader sees it whole or not at all
        self._unwritten += 1

    def flush(self) -> None:
        """Bring the file up to date (not synced). DiskError: it is tried again next time."""
        if self._unwritten:
            self._write(durable=False)

    def search(self, fetch_offset: int, upper_bound: int) -> AbortedSearch:
        """The transactions that touch offsets from `fetch_offset` to before `upper_bound`."""
        found = []
        rows = self.rows
        count = len(rows) // _FIELDS
        for number in range(_first_from(rows, count, fetch_offset), count):
            aborted = _entry(rows, number)
            if aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return AbortedSearch(tuple(found), is_complete=True)
        return AbortedSearch(tuple(found), is_complete=False)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions that ended at `offset` or later, in the file too."""
        self.flush()
        rows = self.rows
        count = len(rows) // _FIELDS
        keep = _first_from(rows, count, offset)
        if keep < count:
            file = self._fs.open(self.path)
            try:
                file.truncate(keep * ENTRY_BYTES)
            finally:
                file.close()
            self._rows = rows[: keep * _FIELDS]
            self._is_shortened = True

    def reset(self) -> None:
        """Start again without entries; the file goes, its checksum with the next `sync`."""
        self._rows = array("q")
        self._is_shortened = True
        self._unwritten = 0
        if self._fs.exists(self.path):
            self._fs.remove(self.path)

    def sync(self) -> None:
        """Make the file's bytes durable, if there is one (its name: the caller's). DiskError."""
        if self._rows if self._rows is not None else self._fs.exists(self.path):
            self._write(durable=True)
        elif self._is_shortened:
            txn_sum.remove(self._fs, self.path)
        self._is_shortened = False

    def _write(self, *, durable: bool) -> None:
        rows = self.rows
        count = len(rows) // _FIELDS
        first = count - self._unwritten
        file = self._fs.open(self.path, create=True)
        try:
            if self._unwritten:
                file.write_at(first * ENTRY_BYTES, _packed(rows, first, count))
            self._unwritten = count if durable else 0  # a failed sync loses all of it
            if durable:
                file.sync()
                txn_sum.save(self._fs, self.path, _packed(rows, 0, count))
                self._unwritten = 0
        finally:
            file.close()

    def check(self) -> None:
        """CorruptIndex if the file contradicts itself, its segment or its checksum."""
        data = self._bytes()
        txn_sum.check(self._fs, self.path, data)
        self._rows = self._parsed(data)

    def check_beside_writer(self) -> None:
        """As `check`, for a reader of files: a broker may have written entries since a sync."""
        data = self._bytes()
        txn_sum.check_beside_writer(self._fs, self.path, data, ENTRY_BYTES)
        self._rows = self._parsed(data)

    def _read(self) -> "array[int]":
        return self._parsed(self._bytes())

    def _bytes(self) -> bytes:
        try:
            return self._fs.read_bytes(self.path)
        except FileMissing:
            return b""

    def _parsed(self, data: bytes) -> "array[int]":
        if len(data) % ENTRY_BYTES:
            raise CorruptIndex(self.path, f"{len(data)} bytes are not whole entries")
        rows = array("q")
        last = self.base_offset - 1
        for version, *fields in ENTRY.iter_unpack(data):
            if version > VERSION or fields[_LAST_OFFSET] <= last:
                raise CorruptIndex(self.path, f"unknown or misplaced entry {AbortedTxn(*fields)}")
            last = fields[_LAST_OFFSET]
            rows.extend(fields)
        return rows


def _entry(rows: "array[int]", number: int) -> AbortedTxn:
    begin = number * _FIELDS
    return AbortedTxn(*rows[begin : begin + _FIELDS])


def _first_from(rows: "array[int]", count: int, offset: int) -> int:
    """The first of `count` entries that ends at `offset` or later, or `count`."""
    return bisect_left(
        range(count), offset, key=lambda number: rows[number * _FIELDS + _LAST_OFFSET]
    )


def _packed(rows: "array[int]", first: int, last: int) -> bytes:
    """The entries from `first` to before `last` as the file has them."""
    return b"".join(
        ENTRY.pack(VERSION, *rows[number * _FIELDS : (number + 1) * _FIELDS])
        for number in range(first, last)
    )
