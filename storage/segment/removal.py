"""Takes segments out of a log's directory: renamed at once, off the disk later and in steps.

The log has raised its start offset, durably, before a file is renamed: so whatever mixture of old
and new names a crash leaves, the next start removes the segments before the start offset
and finds no hole. Files keep the suffix `.deleted` for `file.delete.delay.ms`, for readers
that hold a snapshot from before; those find them under either name, or look at a later snapshot
once the files are gone.
"""

import heapq
from collections.abc import Iterable, Sequence
from itertools import count
from typing import NamedTuple

from storage.env import Clock
from storage.errors import DiskError, FileMissing
from storage.files.layout import DELETED, SEGMENT_SUFFIXES, SNAPSHOT
from storage.locks import Lock
from storage.segment.segment import Segment

STEP_SEGMENTS = 16
RETRY_SECONDS = 60.0
SUFFIXES = (*SEGMENT_SUFFIXES, SNAPSHOT)


class RemovalStep(NamedTuple):
    """Result of one step of a removal. `has_more`: more segments are before the start offset."""

    segments: tuple[Segment, ...]
    start_offset: int
    has_more: bool


def wholly_before(segments: Sequence[Segment], start_offset: int) -> tuple[Segment, ...]:
    """The segments that end at or before the offset; never the last one."""
    keep = 0
    while keep + 1 < len(segments) and segments[keep + 1].base_offset <= start_offset:
        keep += 1
    return tuple(segments[:keep])


def rename_away(segments: Iterable[Segment], suffixes: Sequence[str] = SUFFIXES) -> None:
    """Give the files of the segments their `.deleted` names; durable once the directory is synced.

    DiskError: some have the new names, some the old; calling it again goes on.
    """
    for segment in segments:
        files = segment.files
        segment.is_removed = segment.synced = True
        for suffix in suffixes:
            path = files.name_of(segment.base_offset, suffix)
            files.forget(path, segment.generation)
            try:
                files.fs.rename(path, path + DELETED)
            except FileMissing:
                continue


class RemovedSegments:
    """The renamed segments whose files still have to go. Used from lanes, several at a time."""

    __slots__ = ("_clock", "_due", "_gate", "_numbers")

    def __init__(self, clock: Clock) -> None:
        """None yet."""
        self._clock = clock
        self._gate = Lock()
        self._due: list[tuple[float, int, Segment]] = []
        self._numbers = count()

    def __len__(self) -> int:
        """Number of segments that wait."""
        return len(self._due)

    def bury(self, segments: Iterable[Segment], delay_ms: int) -> None:
        """Their files may go so many milliseconds from now."""
        due = self._clock.monotonic() + delay_ms / 1000
        for segment in segments:
            self._put(due, segment)

    def step(self, *, hurry: bool = False) -> bool:
        """Remove the files of some segments that are due; whether more are due. Blocks.

        `hurry`: all are due, since the disk is short of space.

        DiskError: that segment is tried again in a minute.
        """
        now = self._clock.monotonic()
        for _ in range(STEP_SEGMENTS):
            segment = self._take(now, hurry=hurry)
            if segment is None:
                return False
            try:
                _remove_files(segment)
            except DiskError:
                self._put(now + RETRY_SECONDS, segment)
                raise
        with self._gate:
            return self._is_due(now, hurry=hurry)

    def _put(self, due: float, segment: Segment) -> None:
        with self._gate:
            heapq.heappush(self._due, (due, next(self._numbers), segment))

    def _take(self, now: float, *, hurry: bool) -> Segment | None:
        with self._gate:
            return heapq.heappop(self._due)[2] if self._is_due(now, hurry=hurry) else None

    def _is_due(self, now: float, *, hurry: bool) -> bool:
        return bool(self._due) and (hurry or self._due[0][0] <= now)


def _remove_files(segment: Segment) -> None:
    files = segment.files
    for suffix in SUFFIXES:
        path = files.name_of(segment.base_offset, suffix + DELETED)
        files.forget(path, segment.generation)
        try:
            files.fs.remove(path)
        except FileMissing:
            continue
