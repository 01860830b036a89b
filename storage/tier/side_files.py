"""The side files of a partition's remote segments as a file system that is read.

A segment's indexes, its zone map and the like lie one after the other in one object, each with its
CRC in the manifest. A path is that of a local segment's file with the segment's unique text behind
it: `<base>.index-<unique>`. What a reader makes again, because it was wrong, is not written: the
object never changes, and the next process finds out again.
"""

# ruff: noqa: ARG002 - the calls of a port

from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from protocol.checksum import crc32c
from storage.env import Buffer, DirEntry, File, Lock
from storage.errors import CorruptIndex, CorruptLog, DiskError, FileMissing
from storage.files.layout import LOG, TXN_INDEX, ZONES, parse_segment_name
from storage.tier.manifests.manifest import FilePart, RemoteSegment
from storage.tier.names import SIDE, PartitionKeys
from storage.tier.remote_object import Reach, RemoteObject

NO_ROW = b"\0"
"""Behind a zone map that is not what was copied: its reader finds damage there at the latest."""


def ending_of(unique: str) -> str:
    """The text behind the names of a remote segment's files."""
    return f"-{unique}"


class SideFiles:
    """A `storage.env.FileSystem` of one partition's remote segments. Used from any thread."""

    def __init__(self, reach: Reach, keys: PartitionKeys) -> None:
        """No segment is known."""
        self._reach = reach
        self._keys = keys
        self._rows: dict[str, RemoteSegment] = {}

    def know(self, segment: RemoteSegment) -> None:
        """The segment's files may be asked for from now on."""
        self._rows[segment.unique] = segment

    def forget(self, unique: str) -> None:
        """The segment is gone: who still reads it gets CorruptLog, not files that are missing."""
        self._rows.pop(unique, None)

    def read_bytes(self, path: str) -> bytes:
        """The whole file; asks the store unless it is here. FileMissing, StoreError.

        CorruptIndex when it is not what was written: it can be made again from the `.log`.
        CorruptLog for an index of aborted transactions, which readers must not do without. A zone
        map comes with its damage behind it: its rows have checksums, and sound ones are kept.
        """
        segment, suffix, part = self._part(path)
        data, is_sound = self._read(segment, part)
        if is_sound:
            return data
        if suffix == ZONES:
            return data + NO_ROW
        error = CorruptLog if suffix == TXN_INDEX else CorruptIndex
        raise error(path, "it is not what was copied to the store")

    def sums(self, segment: RemoteSegment) -> bytes:
        """Checksums of the blocks of its `.log`; nothing when they are not known. StoreError."""
        if segment.sums is None:
            return b""
        data, is_sound = self._read(segment, segment.sums)
        return data if is_sound else b""

    def _read(self, segment: RemoteSegment, part: FilePart) -> tuple[bytes, bool]:
        """Bytes of an object, and whether they are what was copied; a fault is read twice."""
        file = self._object(segment)
        data = b""
        for _ in range(2):
            with suppress(CorruptLog):  # the object is lost, or too short
                data = file.read_at(part.position, part.size_bytes)
            if len(data) == part.size_bytes and crc32c(data) == part.crc:
                return data, True
            file.let_go(0, 1)
        return data, False

    def read_text(self, path: str) -> str:
        """The whole file as text."""
        return self.read_bytes(path).decode(errors="replace")

    def exists(self, path: str) -> bool:
        """True when a segment in the store has this file."""
        try:
            self._part(path)
        except (FileMissing, CorruptLog):
            return False
        return True

    def open(self, path: str, *, create: bool = False, write: bool = True) -> File:
        """A file that takes what is written and forgets it."""
        return Unkept(path)

    def list_dir(self, path: str) -> list[DirEntry]:
        """Nothing: what there is stands in the manifest."""
        return []

    def is_open_to_all(self, path: str) -> bool:
        """False: who may read the store is not known here."""
        return False

    def _part(self, path: str) -> tuple[RemoteSegment, str, FilePart]:
        name, _, unique = path.rpartition("/")[2].partition("-")
        parsed, segment = parse_segment_name(name), self._rows.get(unique)
        if segment is None:
            raise CorruptLog(path, "the segment is gone from the store")
        part = None if parsed is None else segment.parts.get(parsed.suffix)
        if parsed is None or part is None:
            raise FileMissing(path, "read", "the segment has no such file")
        return segment, parsed.suffix, part

    def _object(self, segment: RemoteSegment) -> RemoteObject:
        key = self._keys.segment(segment.base_offset, segment.unique, SIDE)
        return RemoteObject(self._reach, key, side_bytes(segment))

    # --- refused ---

    def _refuse(self, path: str) -> NoReturn:
        raise DiskError(path, "write", "objects never change")

    def make_dir(self, path: str) -> None:
        """Refused."""
        self._refuse(path)

    def rename(self, source: str, target: str) -> None:
        """Refused."""
        self._refuse(source)

    def remove(self, path: str) -> None:
        """Refused."""
        self._refuse(path)

    def remove_tree(self, path: str) -> None:
        """Refused."""
        self._refuse(path)

    def sync_dir(self, path: str) -> None:
        """Refused."""
        self._refuse(path)

    def free_bytes(self, path: str) -> int:
        """Refused."""
        self._refuse(path)

    def disk_bytes(self, path: str) -> int:
        """Refused."""
        self._refuse(path)

    def lock(self, path: str) -> Lock:
        """Refused."""
        self._refuse(path)

    def write_atomically(self, path: str, data: bytes) -> None:
        """Refused."""
        self._refuse(path)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Refused."""
        self._refuse(path)


class Unkept:
    """A file that takes everything and keeps nothing."""

    def __init__(self, path: str) -> None:
        """Empty."""
        self.path = path

    def write_at(self, position: int, data: Buffer) -> None:
        """Forgotten."""

    def write_parts_at(self, position: int, parts: Sequence[Buffer]) -> None:
        """Forgotten."""

    def read_at(self, position: int, size: int) -> bytes:
        """Nothing."""
        return b""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Nothing."""
        return 0

    def read_into_if_cached(self, position: int, buffer: memoryview) -> int | None:
        """Nothing."""
        return 0

    def size(self) -> int:
        """0."""
        return 0

    def truncate(self, size: int) -> None:
        """Nothing to cut."""

    def reserve(self, position: int, size: int) -> None:
        """Nothing to keep room for."""

    def let_go(self, position: int, size: int) -> None:
        """Nothing is here."""

    def drop_cache(self, position: int) -> bool:
        """Nothing is here."""
        return False

    def sync(self) -> None:
        """Nothing to keep."""

    def fileno(self) -> int | None:
        """It has none."""
        return None

    def close(self) -> None:
        """Nothing is open."""


def side_bytes(segment: RemoteSegment) -> int:
    """Size of the object of its side files."""
    files = sum(part.size_bytes for suffix, part in segment.parts.items() if suffix != LOG)
    return files + (segment.sums.size_bytes if segment.sums else 0)
