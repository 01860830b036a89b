"""Age of the oldest record that compaction has not seen, and since when it is overdue.

Unlike the choice of the next log (storage/retention/cleanability.py, KIP-354) this counts the
active segment, too: a log whose segment does not end is late all the same. But for
`learn_dirty_age` nothing here reads a file; times that were not looked up since the start are
unknown.
"""

from collections.abc import Iterator
from typing import NamedTuple

from protocol.records.batch import NO_TIMESTAMP
from storage.cleaner.cleanable_logs import CleanerOffsets, began_of, is_compacted
from storage.log.log import Log
from storage.retention.cleanability import UNLIMITED_MS, first_dirty_offset
from storage.segment.segment import UNKNOWN, Segment
from storage.segment.times import learn_first_times


class DirtyAge(NamedTuple):
    """Of one log, as of one moment. Times in wall ms."""

    oldest_ms: int
    """Of the dirty records whose times are known, the oldest: its own time or its arrival,
    whichever is earlier; -1: none. Of a segment that is clean in part, its first record's."""
    deadline_ms: int
    """Time when that record is overdue (ms); -1 without a bound or such a record."""
    is_known: bool
    """True when the times of all dirty segments are known."""

    def delay_ms(self, now_ms: int) -> int:
        """For how long the record has been overdue; 0 if it is not."""
        return max(0, now_ms - self.deadline_ms) if self.deadline_ms != NO_TIMESTAMP else 0


def has_bound(log: Log) -> bool:
    """True for a compacted topic with a bound on the wait of its records."""
    return is_compacted(log.config) and log.config.max_compaction_lag_ms != UNLIMITED_MS


def dirty_age(log: Log, offsets: CleanerOffsets) -> DirtyAge:
    """The oldest dirty record of a log."""
    segments = [segment for segment, _ in _dirty(log, offsets)]
    known = [began_of(segment) for segment in segments if _is_known(segment)]
    oldest = min((began for began in known if began > 0), default=NO_TIMESTAMP)
    deadline = NO_TIMESTAMP
    if oldest != NO_TIMESTAMP and has_bound(log):
        deadline = oldest + log.config.max_compaction_lag_ms
    return DirtyAge(oldest, deadline, len(known) == len(segments))


def learn_dirty_age(log: Log, offsets: CleanerOffsets, at_most: int) -> bool:
    """Look up the times of so many dirty segments; whether all are known now.

    DiskError, CorruptLog.
    """
    indexes, rules = log.search.lookup
    for segment, limit in _dirty(log, offsets):
        if _is_known(segment):
            continue
        if not at_most:
            return False
        at_most -= 1
        learn_first_times(segment, limit, indexes, rules)
    return True


def _dirty(log: Log, offsets: CleanerOffsets) -> Iterator[tuple[Segment, int]]:
    """Segments that hold anything at or above the first dirty offset, with their sizes."""
    snapshot = log.snapshot
    segments, end_offset = snapshot.segments, snapshot.log_end_offset
    checkpoint = offsets.first_dirty.get((log.topic, log.partition), -1)
    first_dirty = first_dirty_offset(checkpoint, snapshot.log_start_offset, end_offset)
    for index in range(len(segments) - 1, -1, -1):
        follows = segments[index + 1].base_offset if index + 1 < len(segments) else end_offset
        if follows <= first_dirty:
            return
        limit = snapshot.end_of(index)
        if limit:
            yield segments[index], limit


def _is_known(segment: Segment) -> bool:
    return UNKNOWN not in {segment.first_timestamp, segment.first_arrival_ms}
