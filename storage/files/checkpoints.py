"""Offset checkpoints: small text files that map partitions to offsets (semantics.md 9.1).

Kafka's format: a line `0`, a line with the count, then `topic partition offset` a line. Written
new, synced, renamed, directory synced. Reading is all or nothing: a file that is missing or
cannot be read is absent, never zero, and the reason is handed to the caller to report.

The last row of a file of ours is a checksum, as that of a partition whose name no topic can have:
`#crc32c 0 <CRC-32C of all that stands before the row>`. Kafka takes it for a partition that is
gone, and leaves it out of the file that it writes: one without the row is believed as it is.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.env import FileSystem
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.layout import PartitionName

MAX_INT64 = 2**63 - 1
MOST_DIGITS = 20
VERSION = "0"
SUM_NAME = "#crc32c"


class OffsetsLoad(NamedTuple):
    """The offsets; empty and with a description of the damage if the file could not be read."""

    offsets: dict[PartitionName, int]
    damage: str | None
    is_ours: bool = False
    """True when the file, sound or damaged, was last written here, and not by a Kafka."""


class OffsetCheckpoint:
    """One checkpoint file of a data directory."""

    __slots__ = ("_fs", "_names", "path")

    def __init__(self, fs: FileSystem, path: str) -> None:
        """Name the file; nothing is read yet."""
        self._fs = fs
        self._names: set[tuple[str, int]] | None = None  # that the file may have; None: unknown
        self.path = path

    def load(self) -> OffsetsLoad:
        """Read the file. Missing: no offsets, no damage. DiskError if the disk fails."""
        try:
            text = self._fs.read_text(self.path)
        except FileMissing:
            text = ""
        is_ours = SUM_NAME in text  # wherever a changed bit has put it
        try:
            offsets = dict(map(self._offset_of, decode_offsets(self.path, text)))
        except CorruptCheckpoint as error:
            return OffsetsLoad({}, str(error), is_ours)
        self._names = set(offsets)
        return OffsetsLoad(offsets, None, is_ours)

    def may_hold(self, name: tuple[str, int]) -> bool:
        """True when the file may have an entry of that partition. Reads nothing."""
        return self._names is None or name in self._names

    def save(self, offsets: Mapping[tuple[str, int], int]) -> None:
        """Replace the file, durably. DiskError leaves the old one in place."""
        rows = [(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        if self._names is not None:
            self._names.update(offsets)  # when it fails, the old file may be there or the new one
        self._fs.write_atomically(self.path, encode_offsets(rows))
        self._names = set(offsets)

    def _offset_of(self, row: Sequence[str]) -> tuple[PartitionName, int]:
        partition, offset = numbers(self.path, row[1:])
        return PartitionName(row[0], partition), offset


def encode_offsets(rows: Sequence[Sequence[object]]) -> bytes:
    """The text of a checkpoint of offsets, its checksum in the last row."""
    body = encode_rows([*rows, ()])[:-1]
    return body + f"{SUM_NAME} 0 {crc32c(body)}\n".encode()


def decode_offsets(path: str, text: str) -> list[list[str]]:
    """The rows without the checksum, which is compared if there is one; CorruptCheckpoint."""
    rows = decode_rows(path, text, columns=3)
    if not _has_sum(text):
        return rows
    body = text[: text.rindex(SUM_NAME)]
    if rows[-1] != [SUM_NAME, "0", str(crc32c(body.encode()))]:
        raise CorruptCheckpoint(path, "its bytes are not those of its checksum")
    return rows[:-1]


def _has_sum(text: str) -> bool:
    return text[text.rfind("\n", 0, -1) + 1 :].startswith(SUM_NAME)


def encode_rows(rows: Iterable[Sequence[object]]) -> bytes:
    """The text of a checkpoint file of Kafka's: version, count, rows of words."""
    lines = [" ".join(map(str, row)) for row in rows]
    return "".join(f"{line}\n" for line in (VERSION, str(len(lines)), *lines)).encode()


def decode_rows(path: str, text: str, *, columns: int) -> list[list[str]]:
    """The rows of a checkpoint file; CorruptCheckpoint unless all of it makes sense.

    An empty file has no rows: Kafka makes its files so, and fills them later.
    """
    if not text:
        return []
    lines = text.splitlines()
    if len(lines) < 2:
        raise CorruptCheckpoint(path, "it ends before its count")
    if lines[0].strip() != VERSION:
        raise CorruptCheckpoint(path, f"version {lines[0][:20]!r} is not known")
    rows = [line.split() for line in lines[2:]]
    if numbers(path, lines[1:2]) != [len(rows)]:
        raise CorruptCheckpoint(path, f"{len(rows)} rows, but it says {lines[1][:20]!r}")
    for row in rows:
        if len(row) != columns:
            raise CorruptCheckpoint(path, f"malformed row {' '.join(row)[:80]!r}")
    return rows


def numbers(path: str, words: Iterable[str]) -> list[int]:
    """The words as numbers from 0 of 64 bits; CorruptCheckpoint if one is not."""
    found = []
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS):
            raise CorruptCheckpoint(path, f"{word[:40]!r} is not a number")
        found.append(int(word))
    if max(found, default=0) > MAX_INT64:
        raise CorruptCheckpoint(path, f"{max(found)} is out of range")
    return found
