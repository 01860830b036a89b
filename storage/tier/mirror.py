"""The closed local part of a log that compaction rewrites, on its way to the store.

A rewritten segment lacks what a later one has, and a later one lacks the tombstones of what was
removed before. So the store never gets some of them: all that was closed at one moment is copied,
one segment after the other, and one change of the manifest names it. Whoever restores then has the
log as it was at that moment, and no key is lost in between. What was copied and not named yet is
not copied again in this process.
"""

from collections.abc import Mapping
from typing import NamedTuple

from protocol.checksum import crc32c
from storage.env import File
from storage.errors import CorruptLog
from storage.files.layout import LOG
from storage.log.compaction_state import CleanPart
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.tier.eligible import closed_part, overlapping
from storage.tier.manifests.manifest import Manifest, RemoteSegment

CHUNK_BYTES = 1024 * 1024


class Closed(NamedTuple):
    """A closed local segment, and the offset behind it."""

    segment: Segment
    end_offset: int


class SameCopies:
    """The local segments that the store has as they are. One thread at a time."""

    def __init__(self) -> None:
        """None is known."""
        self._unique: dict[Segment, str] = {}
        """Its copy, as far as one is known; empty: the store has another one, or none."""

    def copied(self, segment: Segment, row: RemoteSegment) -> None:
        """The store has the segment as it is now: closed ones do not change."""
        self._unique[segment] = row.unique

    def keep(self, segments: tuple[Segment, ...]) -> None:
        """Forget all others."""
        self._unique = {each: self._unique[each] for each in segments if each in self._unique}

    def has(self, closed: Closed, rows: Mapping[int, RemoteSegment]) -> bool:
        """True when one of a manifest's rows, by base offset, is a copy of the segment.

        Where this process did not make the copy, the segment is read once. DiskError.
        """
        segment, end_offset = closed
        row = rows.get(segment.base_offset)
        if row is None or (row.end_offset, row.size_bytes) != (end_offset, segment.size_bytes):
            return False
        if segment not in self._unique:
            is_same = _crc_of(segment.file(), segment.size_bytes) == row.parts[LOG].crc
            self._unique[segment] = row.unique if is_same else ""
        return self._unique[segment] == row.unique


class Mirror:
    """One log's. One thread at a time."""

    def __init__(self, log: Log) -> None:
        """Nothing is to be copied."""
        self.same = SameCopies()
        """The local segments of which the manifest has a copy."""
        self._log = log
        self._part: tuple[Closed, ...] = ()
        self._cleaned = CleanPart()
        self._copies: dict[Segment, RemoteSegment] = {}

    def next(self, manifest: Manifest, cleaned: CleanPart) -> Closed | None:
        """The next segment to be copied; None when there is none.

        What is closed at the first call is the part until `begin_again` or `named`. `cleaned`: how
        far compaction had been before this call. DiskError.
        """
        if not self._part:
            self._cleaned = cleaned
            self._part = self._closed(manifest)
            self.same.keep(self._log.snapshot.local_segments)
        rows = by_base(manifest)
        for each in self._part:
            if each.segment not in self._copies and not self.same.has(each, rows):
                return each
        return None

    def _closed(self, manifest: Manifest) -> tuple[Closed, ...]:
        """The part; empty while it ends before the store does. Whoever led before may have merged
        segments whose second half is not synced here: the first half would take their place.
        """
        part = tuple(Closed(*each) for each in closed_part(self._log.snapshot))
        is_whole = bool(part) and part[-1].end_offset >= manifest.end_offset
        return part if is_whole else ()

    def copied(self, closed: Closed, row: RemoteSegment) -> None:
        """The segment is in the store, and not named yet."""
        self._copies[closed.segment] = row

    def begin_again(self, manifest: Manifest) -> tuple[RemoteSegment, ...]:
        """A segment of the part is gone: what is closed now is the part. Copies that it lacks."""
        self._part = ()
        staying = self._log.snapshot.local_segments
        gone = {each: row for each, row in self._copies.items() if each not in staying}
        self._copies = {each: row for each, row in self._copies.items() if each in staying}
        named = _uniques(manifest)
        return tuple(row for row in gone.values() if row.unique not in named)

    def rows(self, manifest: Manifest) -> tuple[RemoteSegment, ...]:
        """Copies that are to be named, all at once.

        None that is: the answer to an earlier change may have been lost.
        """
        part, named = {each.segment for each in self._part}, _uniques(manifest)
        start = self._log.snapshot.log_start_offset
        return tuple(
            row
            for each, row in self._copies.items()
            if each in part and row.end_offset > start and row.unique not in named
        )

    def cleaned(self, manifest: Manifest) -> CleanPart | None:
        """The compacted part of what the manifest is about to have; None: not known."""
        is_all = self._part or len(self._log.snapshot.local_segments) == 1
        return self._cleaned if is_all else manifest.cleaned

    def named(self, manifest: Manifest) -> tuple[RemoteSegment, ...]:
        """The manifest has all that `rows` gave. Copies that it does not name."""
        if not self._part:
            return ()
        named = _uniques(manifest)
        for segment, row in self._copies.items():
            if row.unique in named:
                self.same.copied(segment, row)
        left = tuple(row for row in self._copies.values() if row.unique not in named)
        self._part, self._copies = (), {}
        return left


def _uniques(manifest: Manifest) -> frozenset[str]:
    return frozenset(each.unique for each in manifest.segments)


def by_base(manifest: Manifest) -> Mapping[int, RemoteSegment]:
    """Its segments by base offset."""
    return {each.base_offset: each for each in manifest.segments}


def taken_by(rows: tuple[RemoteSegment, ...], manifest: Manifest) -> tuple[RemoteSegment, ...]:
    """Segments of the manifest whose places the rows take."""
    return tuple(
        before
        for row in rows
        for before in overlapping(manifest.segments, row.base_offset, row.end_offset)
    )


def _crc_of(file: File, size_bytes: int) -> int:
    crc = 0
    for at in range(0, size_bytes, CHUNK_BYTES):
        data = file.read_at(at, min(CHUNK_BYTES, size_bytes - at))
        if len(data) < min(CHUNK_BYTES, size_bytes - at):
            raise CorruptLog(file.path, f"it ends at {at + len(data)}")
        crc = crc32c(data, crc)
    return crc
