"""Snapshot of a log for readers: its offsets and segments at one moment, and small frozen results.

A `LogSnapshot` is replaced as a whole by one assignment and never changed. Bytes behind
`end_position` of the last segment may exist already; they are not part of the snapshot.
"""

from typing import NamedTuple

from storage.segment.segment import Segment
from storage.validation.dirty_timestamps import DirtyTimes

NO_OFFSET = -1


class Place(NamedTuple):
    """Begin of a batch: its segment, by base offset, and the byte position in its `.log`."""

    base_offset: int
    position: int


class Tail(NamedTuple):
    """The batch that was appended last: its base offset, and where it begins."""

    offset: int
    base_offset: int
    """Of its segment."""
    position: int


class LogSnapshot(NamedTuple):
    """One moment of a log. `segments` is never empty; the last one is active.

    Those that lie only in the tier's store come first, `first_local` of them.
    """

    log_start_offset: int
    log_end_offset: int
    high_watermark: int
    last_stable_offset: int
    segments: tuple[Segment, ...]
    end_position: int
    """Size of the active segment in bytes."""
    total_bytes: int
    """Bytes appended since the log was opened."""
    watermark_place: Place | None
    """Position of the high watermark when it is below the end; None when it is the end."""
    tail: Tail | None = None
    """Next read of a client that follows the log; None until something was appended."""
    first_local: int = 0
    """Number of the first segment that is in the directory."""

    @property
    def local_segments(self) -> tuple[Segment, ...]:
        """Segments in the log's directory, the active one last."""
        return self.segments[self.first_local :]

    @property
    def local_start_offset(self) -> int:
        """The first offset that is in the log's directory."""
        return max(self.log_start_offset, self.segments[self.first_local].base_offset)

    @property
    def active(self) -> Segment:
        """The segment that takes appends."""
        return self.segments[-1]

    def end_of(self, number: int) -> int:
        """End of the segment with this number, in bytes."""
        segments = self.segments
        return self.end_position if number == len(segments) - 1 else segments[number].size_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of all `.log` files, those in the tier's store included."""
        return sum(s.size_bytes for s in self.segments[:-1]) + self.end_position

    @property
    def local_bytes(self) -> int:
        """Bytes of the `.log` files in the directory."""
        return sum(s.size_bytes for s in self.local_segments[:-1]) + self.end_position


class AppendResult(NamedTuple):
    """Result of an append. For a duplicate: the offsets of the batch it repeats."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 on CreateTime topics; for a duplicate the old batch's largest timestamp."""
    log_start_offset: int
    duplicate: bool
    end_offset: int
    """Log end offset after the append."""
    waits_for_disk: bool
    """The answer promises durability: it may go out once `end_offset` is durable."""
    skew_ms: int | None = None
    """Arrival of the batch minus its latest record time, in ms; None without any time."""
    dirty: DirtyTimes | None = None
    """Bad record times; None when there were none."""


class TimestampOffset(NamedTuple):
    """An answer to a search by time: the record's timestamp in ms, its offset, its epoch."""

    timestamp: int
    offset: int
    leader_epoch: int
