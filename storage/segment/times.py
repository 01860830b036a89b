"""Record times and arrivals of a segment, as far as known.

Learned from the segment's files once in a process, then kept in the `Segment`. Blocks where it has
to look: run it on a lane. DiskError, CorruptLog. Readers of a directory that have no `Segment`
estimate the same from a few bytes of each file (`pipeline.directories.segment_facts`).
"""

from protocol.records.batch import NO_TIMESTAMP
from storage.retention.plan import LogFacts, SegmentFacts
from storage.scan.batch_walk import batch_at
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import UNKNOWN, IndexRules, Segment
from storage.segment.trusted_indexes import TrustedIndexes
from storage.zones.zone_map import UNREAD


def knows_times(segment: Segment) -> bool:
    """True when the segment's last times are known without a look at its files."""
    if segment.max_timestamp == UNKNOWN:
        return False
    return _takes_appends(segment) or segment.last_arrival_ms != UNKNOWN


def learn_times(segment: Segment, limit: int, indexes: TrustedIndexes, rules: IndexRules) -> None:
    """Find the largest record time and the first and last arrival. Of an empty one: nothing."""
    if not limit:
        return
    indexes.largest_timestamp(segment, limit, rules)
    zones = indexes.of(segment, limit, rules).zones
    first = next(zones.zones(), None)
    if segment.first_arrival_ms == UNKNOWN:
        segment.first_arrival_ms = segment.mtime_ms if first is None else first.first_arrival_ms
    if not _takes_appends(segment):
        last = segment.arrival_by(zones)
        if zones.row_count and zones.zone(zones.row_count - 1).flags & UNREAD:
            last = NO_TIMESTAMP  # what is known is the modification time
        with indexes.gate:
            if not _takes_appends(segment) and segment.last_arrival_ms in {UNKNOWN, NO_TIMESTAMP}:
                segment.last_arrival_ms = last


def learn_first_times(
    segment: Segment, limit: int, indexes: TrustedIndexes, rules: IndexRules
) -> None:
    """Find what rolling by time counts from: the first batch's time, and its arrival."""
    if not limit:
        return
    if segment.first_timestamp == UNKNOWN:
        segment.first_timestamp = batch_at(segment.file(), 0, limit).max_timestamp
    if segment.first_arrival_ms == UNKNOWN:
        learn_times(segment, limit, indexes, rules)


def last_arrival_of(segment: Segment, rules: IndexRules) -> int:
    """The last arrival that the segment's zone map knows of: those of later segments begin there.

    Reads nothing but that file.
    """
    indexes = segment.indexes or segment.make_indexes(rules)
    return indexes.zones.last_arrival_ms


def facts_of(snapshot: LogSnapshot, first: int = 0) -> tuple[list[SegmentFacts], LogFacts]:
    """Facts for retention about a log whose segments' times are known. Reads no file.

    `first`: the number of the first segment that matters.
    """
    segments = [
        SegmentFacts(
            segment.base_offset,
            snapshot.end_of(index),
            segment.max_timestamp,
            _last_arrival(segment),
            segment.mtime_ms,
        )
        for index, segment in enumerate(snapshot.segments[first:], first)
    ]
    log = LogFacts(snapshot.log_start_offset, snapshot.high_watermark, snapshot.log_end_offset)
    return segments, log


def _takes_appends(segment: Segment) -> bool:
    return segment.held is not None and segment.indexes is not None


def _last_arrival(segment: Segment) -> int:
    return segment.arrival_by_zones if _takes_appends(segment) else segment.last_arrival_ms
