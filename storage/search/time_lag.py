"""Lag of a reader in time: from the record that it reads next to the newest one.

By arrival from the zone map alone: the number is what a straight line through the zone's first and
last arrival gives. By record time from the records themselves, with
the errors of the clients' clocks, which is why there are two. Milliseconds.
"""

from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import LOG_APPEND_TIME
from protocol.records.walk import find_between
from storage.errors import CorruptIndex, CorruptLog
from storage.scan.batch_walk import find_offset
from storage.search.search_clock import ARRIVAL, likely_arrival, time_of
from storage.search.segment_access import SegmentAccess, SegmentView
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Segment
from storage.segment.segments import index_of
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.rows import ARRIVAL_ESTIMATED, Zone
from storage.zones.search import zone_window


class OffsetTimes(NamedTuple):
    """Both times of the first record at or after an offset."""

    offset: int
    record_ms: int
    """Record time, or the broker's stamp; -1: it has no time."""
    arrival_ms: int
    is_estimated: bool
    """The arrival is an estimate, since its row was lost."""


class TimeLag(NamedTuple):
    """Lag of an offset behind the end of what may be fetched; zeros when nothing is ahead."""

    records: int
    """Offsets ahead, those that compaction has emptied included."""
    record_ms: int | None
    """By record time, at least 0; None when one of the two records has no time."""
    arrival_ms: int
    """By arrival."""


def times_at(snapshot: LogSnapshot, look: SegmentAccess, offset: int) -> OffsetTimes | None:
    """Both times of the first record at or after `offset`; None when there is none.

    DiskError, CorruptLog; NotInMemory when the look may not wait and would have to.
    """
    offset = max(offset, snapshot.log_start_offset)
    segments = snapshot.segments
    for index in range(index_of(segments, offset), len(segments)):
        limit = snapshot.end_of(index)
        if limit:
            found = _in_segment(look, segments[index], limit, offset)
            if found is not None:
                return found
    return None


def lag_at(snapshot: LogSnapshot, look: SegmentAccess, offset: int, last_fetchable: int) -> TimeLag:
    """The lag of a reader whose next offset is `offset`. Errors as of `times_at`.

    One before the log start counts from there: what is gone cannot be read any more.
    """
    offset = max(offset, snapshot.log_start_offset)
    if offset >= last_fetchable:
        return TimeLag(0, 0, 0)
    here = times_at(snapshot, look, offset)
    newest = times_at(snapshot, look, last_fetchable - 1)
    if here is None or newest is None or here.offset >= last_fetchable:
        return TimeLag(last_fetchable - offset, 0, 0)  # compaction has emptied what is ahead
    has_times = here.record_ms >= 0 and newest.record_ms >= 0
    return TimeLag(
        last_fetchable - offset,
        max(0, newest.record_ms - here.record_ms) if has_times else None,
        max(0, newest.arrival_ms - here.arrival_ms),
    )


def _in_segment(
    look: SegmentAccess, segment: Segment, limit: int, offset: int
) -> OffsetTimes | None:
    try:
        return _in_view(look, look.at(segment, limit, ARRIVAL), offset)
    except CorruptIndex:
        return _in_view(look, look.again(segment, limit, ARRIVAL), offset)


def _in_view(look: SegmentAccess, view: SegmentView, offset: int) -> OffsetTimes | None:
    zones = view.zones
    for index in range(zones.holding_offset(offset), zones.total):
        zone = zones.zone(index)
        if zone.position >= view.limit:
            break
        found = _in_zone(look, view, zone, zones.end_position(index, view.limit), offset)
        if found is not None:
            return found
    return None


def _in_zone(
    look: SegmentAccess, view: SegmentView, zone: Zone, end: int, offset: int
) -> OffsetTimes | None:
    window, position = zone_window(view.file, zone, end), zone.position
    while position < end:
        place = find_offset(window, position, end, offset)
        if place is None:
            return None
        header, records = look.batch_at(window, place)
        try:
            count, found, record_ms, _ = find_between(
                records,
                header.record_count,
                header.base_offset,
                header.base_timestamp,
                INT64_MIN,
                INT64_MAX,
                offset,
                INT64_MAX,
                True,
            )
        except DecodeError as error:
            raise CorruptLog(window.path, f"the batch at {place.position}: {error}") from error
        if count:
            is_estimated = bool(zone.flags & ARRIVAL_ESTIMATED)
            if header.attributes & LOG_APPEND_TIME:
                stamp = header.max_timestamp
                arrival_ms = time_of(ARRIVAL, stamp, zone, is_stamped=True)
                return OffsetTimes(found, stamp, arrival_ms, is_estimated)
            return OffsetTimes(found, record_ms, likely_arrival(zone, found), is_estimated)
        position = place.end_position
    return None
