"""The bars of the time page: a partition's segments, each with the times it spans by both clocks.

Where a log has more segments than bars were asked for, neighbours in the same state share one; its
times are the extremes of theirs. Times are read from zone maps, so never on the loop.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from broker.http.segment_times import TimeSpan, TimeSpans
from storage.reader import limit_of
from storage.retention import SegmentDecision
from storage.snapshot import LogSnapshot

if TYPE_CHECKING:
    from storage.log import Log

COLUMNS = (
    "base_offset",
    "segments",
    "size_bytes",
    "first_record_ms",
    "last_record_ms",
    "first_arrival_ms",
    "last_arrival_ms",
    "state",
)
"""What the numbers of a bar are, in order. Times are -1 where there is none."""

CLOSED, ACTIVE, GOES, OVERDUE, COMPACTED = range(5)
STATES = ("closed", "active", "goes", "overdue", "compacted")
"""What the last number of a bar means.

goes: leaves at the next round of retention. overdue: past its own deadline, but something in front
of it stays. compacted: compaction has seen it.
"""

Bar = list[int]


def bars_of(
    log: "Log",
    snapshot: LogSnapshot,
    decisions: Sequence[SegmentDecision],
    spans: TimeSpans,
    *,
    at_most: int,
    first_dirty: int,
    now_ms: int,
) -> list[Bar]:
    """At most so many bars, and a few more where states change; oldest first.

    `first_dirty`: what lies below this offset is compacted. DiskError, CorruptLog.
    """
    segments = snapshot.segments
    states = list(_states(snapshot, decisions, first_dirty, now_ms))
    count = max(1, len(segments))

    def place(index: int) -> tuple[int, int]:
        return index * at_most // count if count > at_most else index, states[index]

    bars = []
    for (_, state), alike in groupby(range(len(segments)), place):
        indexes = list(alike)
        told = [_span(log, snapshot, each, spans) for each in indexes]
        size = sum(limit_of(snapshot, each) for each in indexes)
        bars.append([segments[indexes[0]].base_offset, len(indexes), size, *_joined(told), state])
    return bars


def _states(
    snapshot: LogSnapshot, decisions: Sequence[SegmentDecision], first_dirty: int, now_ms: int
) -> Iterator[int]:
    last = len(snapshot.segments) - 1
    for index, decision in enumerate(decisions):
        if decision.goes:
            yield GOES
        elif decision.deadline_ms is not None and decision.deadline_ms < now_ms:
            yield OVERDUE
        elif index == last:
            yield ACTIVE
        else:
            is_clean = snapshot.segments[index + 1].base_offset <= first_dirty
            yield COMPACTED if is_clean else CLOSED


def _span(log: "Log", snapshot: LogSnapshot, index: int, spans: TimeSpans) -> TimeSpan:
    """What the zone map says; the largest record time is the segment's own."""
    is_active = index == len(snapshot.segments) - 1
    limit = limit_of(snapshot, index)
    found = spans.of(log, snapshot.segments[index], limit, is_active=is_active)
    return found._replace(last_record_ms=snapshot.segments[index].max_timestamp if limit else -1)


def _joined(spans: Sequence[TimeSpan]) -> tuple[int, int, int, int]:
    """The extremes of the times that there are."""
    return (
        min((each.first_record_ms for each in spans if each.first_record_ms >= 0), default=-1),
        max((each.last_record_ms for each in spans), default=-1),
        min((each.first_arrival_ms for each in spans if each.first_arrival_ms >= 0), default=-1),
        max((each.last_arrival_ms for each in spans), default=-1),
    )
