"""Arrivals of a range of offsets, by the zone maps alone: no record is read.

A record came between the first and the last arrival of its zone. Where these are estimates, since
their row was lost, the last one is the latest possible: the begin of the next zone that is known,
or the last write to the segment. Milliseconds.
"""

from typing import NamedTuple

from storage.search.search_clock import ARRIVAL
from storage.search.segment_access import SegmentAccess
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segments import index_of
from storage.zones.rows import ARRIVAL_ESTIMATED
from storage.zones.view import ZoneView


class ArrivalSpan(NamedTuple):
    """Offsets up to `end_offset`, from the end of the span before it on, and when they came."""

    end_offset: int
    first_ms: int
    last_ms: int


def arrivals_between(
    snapshot: LogSnapshot, look: SegmentAccess, first: int, end: int
) -> list[ArrivalSpan]:
    """The spans of the offsets from `first` to below `end`, in order.

    DiskError, CorruptLog; NotInMemory when the look may not wait and would have to.
    """
    spans: list[ArrivalSpan] = []
    segments = snapshot.segments
    for index in range(index_of(segments, first), len(segments)):
        segment, limit = segments[index], snapshot.end_of(index)
        if segment.base_offset >= end:
            break
        if not limit:
            continue
        is_last = index + 1 == len(segments)
        segment_end = snapshot.log_end_offset if is_last else segments[index + 1].base_offset
        zones, known = look.at(segment, limit, ARRIVAL).zones, 0
        for number in range(zones.holding_offset(first), zones.total):
            zone = zones.zone(number)
            if zone.first_offset >= end:
                break
            latest = zone.last_arrival_ms
            if zone.flags & ARRIVAL_ESTIMATED:
                if known <= number:
                    known = _next_known(zones, number)
                latest = segment.latest_arrival_ms
                if known < zones.total:
                    latest = zones.zone(known).first_arrival_ms
            zone_end = zones.end_offset(number, segment_end)
            spans.append(ArrivalSpan(zone_end, zone.first_arrival_ms, latest))
    return spans


def _next_known(zones: ZoneView, number: int) -> int:
    """The first zone behind this one whose arrival is no estimate, or the number of all."""
    numbers = range(number + 1, zones.total)
    known = (each for each in numbers if not zones.zone(each).flags & ARRIVAL_ESTIMATED)
    return next(known, zones.total)
