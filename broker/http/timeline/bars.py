"""The bars of the time page: a partition's segments, each with the times it spans by both clocks.

Where a log has more segments than bars were asked for, neighbours in the same state and place share
one; its times are the extremes of theirs. Times are read from zone maps, so never on the loop.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from broker.http.resources.segment_times import NO_TIME, TimeSpans
from storage.log.segment_tiers import SegmentPlace
from storage.retention.plan import SegmentDecision
from storage.segment.log_snapshot import LogSnapshot

if TYPE_CHECKING:
    from storage.log.log import Log

COLUMNS = (
    "base_offset",
    "segments",
    "size_bytes",
    "first_record_ms",
    "last_record_ms",
    "first_arrival_ms",
    "last_arrival_ms",
    "state",
    "place",
)
"""Names of a bar's numbers, in order. Times are -1 where there is none."""

CLOSED, ACTIVE, GOES, OVERDUE, COMPACTED = range(5)
STATES = ("closed", "active", "goes", "overdue", "compacted")
"""Meanings of a bar's state.

goes: leaves at the next round of retention. overdue: past its own deadline, but something in front
of it stays. compacted: compaction has seen it.
"""

PLACES = tuple(each.value for each in SegmentPlace)
"""Meanings of a bar's place: on the disk, in the tier's store, or in both."""

_PLACE_NUMBERS = {each: number for number, each in enumerate(SegmentPlace)}

Bar = list[int]


def bars_of(
    log: "Log",
    snapshot: LogSnapshot,
    decisions: Sequence[SegmentDecision],
    places: Sequence[SegmentPlace],
    spans: TimeSpans,
    *,
    at_most: int,
    first_dirty: int,
    now_ms: int,
) -> list[Bar]:
    """At most so many bars, and a few more where states or places change; oldest first.

    `first_dirty`: offsets below it are compacted. DiskError, CorruptLog.
    """
    states = _states(snapshot, decisions, first_dirty, now_ms)
    bars = [
        [*_bar(log, snapshot, index, spans), state, _PLACE_NUMBERS[place]]
        for index, (state, place) in enumerate(zip(states, places, strict=True))
    ]
    if len(bars) <= at_most:
        return bars
    return list(_fewer(bars, at_most))


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


def _bar(log: "Log", snapshot: LogSnapshot, index: int, spans: TimeSpans) -> Bar:
    """The zone map's facts about one segment; the largest record time is the segment's own.

    State and place follow.
    """
    segment, limit = snapshot.segments[index], snapshot.end_of(index)
    is_active = index == len(snapshot.segments) - 1
    found = spans.of(log, segment, limit, is_active=is_active)
    return [
        segment.base_offset,
        1,
        limit,
        found.first_record_ms,
        segment.max_timestamp if limit else NO_TIME,
        found.first_arrival_ms,
        found.last_arrival_ms,
    ]


def _fewer(bars: Sequence[Bar], at_most: int) -> Iterator[Bar]:
    """Neighbours in the same state and place joined."""
    count = len(bars)

    def kind(numbered: tuple[int, Bar]) -> tuple[int, int, int]:
        index, (*_, state, place) = numbered
        return index * at_most // count, state, place

    for (_, state, place), alike in groupby(enumerate(bars), kind):
        base, segments, size, *times, _, _ = zip(*(bar for _, bar in alike), strict=True)
        yield [
            base[0],
            sum(segments),
            sum(size),
            *map(_extreme, times, (min, max, min, max)),
            state,
            place,
        ]


def _extreme(times: Iterable[int], choose: Callable[..., int]) -> int:
    """Of the times that there are."""
    return choose((each for each in times if each >= 0), default=NO_TIME)
