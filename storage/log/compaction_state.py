"""State of a log's compaction: kept at the log, for the cleaner and for readers of the state."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from config.topic import TopicConfig
from protocol.records.batch import NO_TIMESTAMP
from storage.retention.cleanability import SegmentAge, Verdict
from storage.segment.segment import Segment


class UnfinishedSwap(Protocol):
    """A replacement of segments that counts, and whose names could not all be changed yet."""

    old: tuple[Segment, ...]

    def finish(self) -> None:
        """Bring the names in step. DiskError: call it again."""


class CleanPart(NamedTuple):
    """The part of a log in which compaction has been; its next run goes on behind it."""

    end_offset: int = 0
    """The first dirty offset; 0: no run has ended there."""
    horizon_ms: int = NO_TIMESTAMP
    """Time when the first tombstone that stayed may go; -1 without one."""


class RemotePart(Protocol):
    """The part of a log in the tier's store, as compaction changes it."""

    def settle(self) -> None:
        """Finds out what became of the last change. Blocks. StorageError."""

    def finish_leaving(self) -> tuple[Segment, ...]:
        """Takes out of the directory some segments that are about to go; none once all are gone.

        Holds the writer gate. DiskError.
        """

    def replace(self, old: Sequence[Segment], new: Segment) -> None:
        """Puts a segment in the place of neighbours there. Blocks. StorageError: it is not."""

    def show(self) -> None:
        """Has the log read what is there. Holds the writer gate."""


class Judged(NamedTuple):
    """A cleanability, and the state of the log that it was found from."""

    segments: tuple[Segment, ...]
    config: TopicConfig
    start_offset: int
    first_dirty: int | None
    until_ms: int
    """Up to this moment, and in it, time changes nothing."""
    verdict: Verdict


@dataclass(slots=True)
class Compaction:
    """State of a log's compaction."""

    is_running: bool = False
    """A run is under way, or a swap is not finished: no segment leaves the log otherwise."""
    unfinished: UnfinishedSwap | None = None
    """A swap that counts, and whose names could not all be changed yet."""
    is_stuck: bool = False
    """Files of a run that failed could not be removed: only the next start can settle that."""
    ages: tuple[Sequence[Segment], Sequence[SegmentAge]] | None = None
    """The segments as they were at the last look, and the ages of all but the last one."""
    judged: Judged | None = None
    """The last verdict that nothing but what it was found from, and time, can change."""

    def finish_swap(self) -> tuple[Segment, ...]:
        """Bring the names of an unfinished swap in step, outside of a run; the segments that go.

        Blocks. DiskError: call it again.
        """
        swap = self.unfinished
        if swap is None:
            return ()
        swap.finish()
        self.unfinished, self.is_running = None, False
        return swap.old

    def forget_segments(self) -> None:
        """Segments leave: what was found from them counts no more, and would keep them open."""
        self.ages = self.judged = None
