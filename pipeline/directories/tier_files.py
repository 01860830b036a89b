"""A partition's directory and its part in the store, as the files of one directory.

Which segments the store has, and what files each of them has, the manifest tells. What is on this
machine is read there, so a segment in both is read once. Nothing is asked of the store before a
file is read.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pipeline.directories.log_files import Files, LogFile
from pipeline.directories.tier_log import StoredSegment, TierLog
from pipeline.directories.tier_store import StorePlace
from pipeline.errors import DamagedLog
from storage.env import DirEntry
from storage.errors import FileMissing
from storage.files.layout import LOG, SNAPSHOT, TXN_INDEX, parse_segment_name, segment_name
from storage.files.partition_listing import listing_of
from storage.tier.manifests.manifest import FilePart, Manifest, RemoteSegment
from storage.tier.names import PartitionKeys


class LocalPart(NamedTuple):
    """A partition's directory on this machine, from one look."""

    directory: str
    entries: Sequence[DirEntry]
    end_offset: int
    """The offset behind its last whole batch."""

    @property
    def bases(self) -> list[int]:
        """Base offsets of its segments, in order."""
        return listing_of(self.entries).bases


class MissingOffsets(NamedTuple):
    """Offsets that neither has, from `first` to before `end`."""

    first: int
    end: int


class _Side(NamedTuple):
    """A file beside a segment's `.log` in the store."""

    name: str
    segment: StoredSegment
    part: FilePart


class TierFiles(Files):
    """One partition's files, wherever they are."""

    __slots__ = (
        "_local",
        "_segments",
        "_sides",
        "gaps",
        "log_start_offset",
        "path",
        "stored_end_offset",
    )

    def __init__(
        self, place: StorePlace, manifest: Manifest, local: LocalPart | None = None
    ) -> None:
        """`local` was looked at before the manifest was read: what left it since is in there.

        A directory that ends before the store does is passed over, as by a broker, which goes on
        behind the store's part.
        """
        keys = PartitionKeys(manifest.topic, manifest.topic_id, manifest.partition)
        if local is not None and manifest.segments and local.end_offset < manifest.end_offset:
            local = local._replace(entries=())
        bases = [] if local is None else local.bases
        rows = [row for row in manifest.segments if not bases or row.base_offset < bases[0]]
        segments = [StoredSegment(place, keys, row) for row in rows]
        self.path = keys.prefix.rstrip("/") if local is None else local.directory
        self.log_start_offset = manifest.log_start_offset
        self.stored_end_offset = manifest.end_offset if rows else 0
        """Behind the last segment that is read from the store; 0 without any."""
        self.gaps = tuple(_gaps(rows, bases[:1]))
        """Offsets between its segments that neither has."""
        self._local = {each.name: each for each in (() if local is None else local.entries)}
        self._segments = {each.row.base_offset: each for each in segments}
        self._sides = {each.name: each for each in _sides(segments)}

    def stored(self, base_offset: int) -> StoredSegment | None:
        """The segment of that base offset, if it is to be read from the store."""
        return self._segments.get(base_offset)

    def list_dir(self, path: str) -> list[DirEntry]:
        """Files as they were when both were looked at."""
        if path != self.path:
            return super().list_dir(path)
        logs = [
            DirEntry(segment_name(base, LOG), False, each.row.size_bytes, each.row.modified_ms)
            for base, each in self._segments.items()
        ]
        sides = [
            DirEntry(name, False, each.part.size_bytes, each.segment.row.modified_ms)
            for name, each in self._sides.items()
            if name not in self._local
        ]
        return [*logs, *sides, *self._local.values()]

    def open_log(self, path: str) -> LogFile:
        """Open a file; FileMissing, DiskError. Of the store nothing is asked yet."""
        parsed = parse_segment_name(path.rpartition("/")[2])
        segment = None if parsed is None else self._segments.get(parsed.base_offset)
        if parsed is not None and parsed.suffix == LOG and segment is not None:
            return TierLog(segment)
        return super().open_log(path)

    def exists(self, path: str) -> bool:
        """True when either has such a file."""
        name = path.rpartition("/")[2]
        return name in self._local or name in self._sides

    def read_bytes(self, path: str) -> bytes:
        """The whole file. One of the store that is not what was copied counts as missing.

        Not so the index of aborted transactions, without which they would be shown: DamagedLog.
        """
        name = path.rpartition("/")[2]
        if name in self._local:
            return super().read_bytes(path)
        side = self._sides.get(name)
        data = None if side is None else side.segment.side(side.part)
        if data is not None:
            return data
        if side is not None and name.endswith(TXN_INDEX):
            raise DamagedLog(
                f"{side.segment.side_key}: the index of aborted transactions is lost, or not what "
                "was copied; isolationLevel=read_uncommitted reads all records"
            )
        raise FileMissing(path, "read", "there is no such file, or not as it was copied")


def stored_segment(files: Files, base_offset: int) -> StoredSegment | None:
    """The segment, if these files have it from a store."""
    return files.stored(base_offset) if isinstance(files, TierFiles) else None


def files_of_segment(segment: StoredSegment) -> TierFiles:
    """The files of one segment alone, for who reads a part of it."""
    keys, row = segment.keys, segment.row
    alone = Manifest(0, keys.topic, keys.topic_id, keys.partition, row.base_offset, (row,))
    return TierFiles(segment.place, alone)


def _gaps(rows: Sequence[RemoteSegment], local: Sequence[int]) -> Iterator[MissingOffsets]:
    begins = [*(row.base_offset for row in rows), *local]
    for row, begin in zip(rows, begins[1:], strict=False):
        if row.end_offset < begin:
            yield MissingOffsets(row.end_offset, begin)


def _sides(segments: Iterable[StoredSegment]) -> Iterator[_Side]:
    """The files beside the `.log`s; a snapshot has the name of its segment's end."""
    for segment in segments:
        for suffix, part in segment.row.parts.items():
            if suffix != LOG:
                is_end = suffix == SNAPSHOT
                at = segment.row.end_offset if is_end else segment.row.base_offset
                yield _Side(segment_name(at, suffix), segment, part)
