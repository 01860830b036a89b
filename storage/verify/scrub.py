"""Looks for rot in closed segments while the broker is at work: reads, compares, changes nothing.

A segment's `.log` is read whole, every batch with its CRC and its records, and its indexes and
zones are compared with it (`storage.verify.segment`). Cached pages are read from the page
cache, since consumers get these; the rest is read from the disk and not kept in the cache. A
segment that is replaced or removed meanwhile was not what it seemed: what was found in it does not
count.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from storage.env import File, FileSystem
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.checkpoints import decode_rows, encode_rows, numbers
from storage.files.layout import LOG, SEGMENT_SUFFIXES, PartitionName
from storage.log.log import Log
from storage.segment.segment import Segment
from storage.segment.verified_ranges import SOUND, UNKNOWN
from storage.verify.report import Finding, PartitionReport
from storage.verify.segment import SegmentProof, WholeLog

CHUNK_BYTES = 1024 * 1024


def scrubbable(log: Log) -> list[tuple[Segment, int]]:
    """The segments that nobody writes to any more, each with the base offset of the next one."""
    segments = log.snapshot.local_segments
    pairs = pairwise(segments)
    return [(each, following.base_offset) for each, following in pairs if each.synced]


class SegmentScrub:
    """One look at one segment."""

    def __init__(self, log: Log, segment: Segment, following: int) -> None:
        """Opens nothing. `following` is the base offset of the next segment."""
        self._log = log
        self._segment = segment
        self._following = following
        self.findings: tuple[Finding, ...] = ()
        """Faults, once all steps are done; empty when there are none."""

    def steps(self) -> Iterator[int]:
        """Reads the segment; after each piece, how many bytes it had. Blocks. DiskError."""
        log, segment = self._log, self._segment
        report = PartitionReport(f"{log.topic}-{log.partition}", log.files.path)
        whole = WholeLog(
            log.files.fs,
            report,
            None,
            log.epochs,
            lambda _: None,
            chunk_bytes=CHUNK_BYTES,
            passing=PassingRead,
        )
        try:
            yield from SegmentProof(
                whole,
                segment.base_offset,
                _beside(log.files.fs, segment),
                following=self._following,
                is_open=False,
            ).steps()
        except FileMissing:
            if self._is_what_it_seemed():
                raise
            return
        faults = tuple(each for each in report.findings if each.severity != "note")
        if self._is_what_it_seemed():
            self.findings = faults
            is_damaged = any(each.severity == "damage" for each in faults)
            segment.sound = UNKNOWN if is_damaged else SOUND

    def _is_what_it_seemed(self) -> bool:
        segment = self._segment
        return not segment.is_removed and segment in self._log.snapshot.local_segments


def _beside(fs: FileSystem, segment: Segment) -> list[str]:
    return [
        suffix
        for suffix in SEGMENT_SUFFIXES
        if suffix != LOG and fs.exists(segment.path_of(suffix))
    ]


class PassingRead:
    """A file whose bytes, where the page cache did not hold them, do not stay there."""

    __slots__ = ("_file", "path")

    def __init__(self, file: File) -> None:
        self._file = file
        self.path = file.path

    def read_into(self, position: int, buffer: memoryview) -> int:
        """As `File.read_into`."""
        was_cached = self._file.read_into_if_cached(position, buffer[:1]) is not None
        count = self._file.read_into(position, buffer)
        if not was_cached:
            self._file.let_go(position, count)
        return count

    def read_at(self, position: int, size: int) -> bytes:
        """As `File.read_at`."""
        return self._file.read_at(position, size)


class ScrubPlace(NamedTuple):
    """Progress of a pass over all logs."""

    began_ms: int
    """Wall time of its begin; -1 before the first one."""
    done: PartitionName | None
    """The last log that was read whole; None at the begin."""
    is_over: bool


NEVER = ScrubPlace(-1, None, is_over=True)
_NAMES = 3


class ScrubFile:
    """File of the progress, so that a restart continues a pass. Damage is a new begin."""

    def __init__(self, fs: FileSystem, path: str) -> None:
        """Nothing is read."""
        self._fs = fs
        self._path = path

    def load(self) -> ScrubPlace:
        """The progress that `save` stored last. DiskError."""
        try:
            rows = decode_rows(self._path, self._fs.read_text(self._path), columns=_NAMES)
            (row,) = rows
            partition, began_ms = numbers(self._path, row[1:])
        except (FileMissing, CorruptCheckpoint, ValueError):
            return NEVER
        done = None if row[0] == "-" else PartitionName(row[0], partition)
        return ScrubPlace(began_ms, done, is_over=done is None)

    def save(self, place: ScrubPlace) -> None:
        """Durably. DiskError: the old one stays."""
        topic, partition = ("-", 0) if place.done is None or place.is_over else place.done
        rows = [(topic, partition, place.began_ms)]
        self._fs.write_atomically(self._path, encode_rows(rows))
