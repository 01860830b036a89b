"""Records between two times, on a snapshot and by any clock (time.md 3).

A zone that is wholly inside is counted from its row; only zones at an edge, or with times on both
sides of one, are read. A question reads `SCANNED_BYTES` of log at most: records beyond that are
reported as possible ones, and first and last offset still enclose all of them.
"""

from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import LOG_APPEND_TIME as STAMPED_BATCH
from protocol.records.walk import find_between
from storage.errors import CorruptIndex, CorruptLog
from storage.scan.batch_walk import BatchPlace, Readable, batches
from storage.search.search_clock import ARRIVAL, EARLIER, RECORD, SearchClock, time_of
from storage.search.segment_access import SegmentAccess, SegmentView
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segments import index_of
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.rows import (
    ARRIVAL_ESTIMATED,
    LIFTED,
    LOG_APPEND_TIME,
    UNREAD,
    UNTIMED,
    Zone,
)
from storage.zones.search import zone_window

SCANNED_BYTES = 256 * 1024 * 1024


class TimeRange(NamedTuple):
    """The fetchable records with a time from `from_ms` to before `to_ms` by `clock`."""

    clock: SearchClock
    from_ms: int
    to_ms: int
    first_offset: int | None = None
    """The first of them; None when there are none. If not `is_exact`, none is before it."""
    last_offset: int | None = None
    """The last of them, likewise."""
    records: int = 0
    """Number of records, transaction markers included; if not `is_exact`, a lower bound."""
    records_at_most: int = 0
    undecided: int = 0
    """By arrival: records of zones that an edge falls into. Some may belong to the other side."""
    estimated: int = 0
    """Number of counted records with an estimated arrival: their rows were lost."""
    zones_counted: int = 0
    """Zones that were counted from their rows."""
    zones_scanned: int = 0
    """Zones whose records were read."""

    @property
    def is_exact(self) -> bool:
        """True when the number of records is exact."""
        return self.records == self.records_at_most

    @property
    def is_empty(self) -> bool:
        """True when it is proved that there are none."""
        return not self.records_at_most


class _Found(NamedTuple):
    """Some records of the range: how many, the first offset and the last."""

    records: int
    first: int
    last: int


def range_between(  # noqa: PLR0917 - called in one place
    snapshot: LogSnapshot,
    look: SegmentAccess,
    from_ms: int,
    to_ms: int,
    clock: SearchClock,
    last_fetchable: int,
) -> TimeRange:
    """Records in [from_ms, to_ms), at or after the log start and below `last_fetchable`.

    Negative times are no times: no range holds them. May read much: run it on a lane. DiskError;
    CorruptLog when a batch that has to be read is damaged.
    """
    from_ms = max(from_ms, 0)
    total = TimeRange(clock, from_ms, to_ms)
    if from_ms >= to_ms:
        return total
    segments, start = snapshot.segments, snapshot.log_start_offset
    ends = (*(segment.base_offset for segment in segments[1:]), snapshot.log_end_offset)
    for index in range(index_of(segments, start), len(segments)):
        segment, limit = segments[index], snapshot.end_of(index)
        if segment.base_offset >= last_fetchable:
            break
        if not limit or not look.may_hold(segment, limit, clock, from_ms):
            continue
        case = _RangeCase(look, clock, from_ms, to_ms, start, last_fetchable, ends[index])
        try:
            total = case.add(total, look.at(segment, limit, clock))
        except CorruptIndex:
            total = case.add(total, look.again(segment, limit, clock))
    return total


class _RangeCase(NamedTuple):
    """One question to one segment, which ends before the offset `end_offset`."""

    look: SegmentAccess
    clock: SearchClock
    from_ms: int
    to_ms: int
    start_offset: int
    last_fetchable: int
    end_offset: int

    def add(self, total: TimeRange, view: SegmentView) -> TimeRange:
        """`total`, and what the segment has."""
        unresolved: int | None = None
        for index in self._candidates(view):
            zone = view.zones.zone(index)
            end = view.zones.end_position(index, view.limit)
            if self._is_inside(view, index, zone):
                total, is_resolved = self._count(total, view, index, zone)
                unresolved = None if is_resolved else index
            elif self.look.scanned_bytes + end - zone.position > SCANNED_BYTES:
                total = self._leave(total, view, index, zone)
            else:
                found = self._scan(view, zone, end)
                total = _joined(total, zone, found, scanned=1)
                unresolved = None if found.records else unresolved
        if unresolved is not None:
            found = self._scan_zone(view, unresolved)
            total = total._replace(last_offset=found.last)
        return total._replace(undecided=total.undecided + self._undecided(view))

    def _candidates(self, view: SegmentView) -> "list[int]":
        """Numbers of the zones that may hold something, in order."""
        zones, first = view.zones, 0
        if self.start_offset > zones.base_offset:
            first = zones.holding_offset(self.start_offset)
        found: list[int] = []
        for low, high, flags, begin, stop in self._spans(view):
            index = max(begin, first)
            while (index := zones.next_between(index, low, high, flags)) < stop:
                zone = zones.zone(index)
                if zone.position >= view.limit or zone.first_offset >= self.last_fetchable:
                    return found
                found.append(index)
                index += 1
        return found

    def _spans(self, view: SegmentView) -> list[tuple[int, int, int, int, int]]:
        """Record times, flags, and numbers of zones from and to: where to look for candidates."""
        zones = view.zones
        if self.clock is RECORD:
            return [(self.from_ms, self.to_ms - 1, 0, 0, zones.total)]
        begin, stop = zones.arrived_from(self.from_ms), zones.arrived_from(self.to_ms)
        if self.clock is EARLIER:
            return [
                (self.from_ms, INT64_MAX, UNTIMED, begin, stop),
                (self.from_ms, self.to_ms - 1, 0, stop, zones.total),
            ]
        if stop < zones.total:  # stamped batches of it may have come before the end of the range
            edge = zones.zone(stop)
            stop += bool(edge.flags & LOG_APPEND_TIME) and edge.first_arrival_ms < self.to_ms
        return [(INT64_MIN, INT64_MAX, 0, begin, stop)]

    def _is_inside(self, view: SegmentView, index: int, zone: Zone) -> bool:
        """True when the row proves that all its records are in the range, and may be fetched."""
        is_whole = (
            not zone.flags & UNREAD
            and zone.first_offset >= self.start_offset
            and view.zones.end_offset(index, self.end_offset) <= self.last_fetchable
        )
        bounds = _bounds(self.clock, zone) if is_whole else None
        return bounds is not None and self.from_ms <= bounds[0] and bounds[1] < self.to_ms

    def _count(
        self, total: TimeRange, view: SegmentView, index: int, zone: Zone
    ) -> tuple[TimeRange, bool]:
        """With the zone as its row has it; whether the last offset is known by that."""
        is_dense = view.zones.is_dense(index, self.end_offset)
        first = zone.first_offset
        if not is_dense and total.first_offset is None:
            first = self._scan_zone(view, index).first
        last = view.zones.end_offset(index, self.end_offset) - 1
        found = _Found(zone.record_count, first, last)
        return _joined(total, zone, found, counted=1), is_dense

    def _leave(self, total: TimeRange, view: SegmentView, index: int, zone: Zone) -> TimeRange:
        """With the zone as one that may hold something and is not read."""
        first = max(zone.first_offset, self.start_offset)
        last = min(view.zones.end_offset(index, self.end_offset), self.last_fetchable) - 1
        at_most = min(zone.record_count, last - first + 1)
        return total._replace(
            first_offset=first if total.first_offset is None else total.first_offset,
            last_offset=last,
            records_at_most=total.records_at_most + at_most,
        )

    def _undecided(self, view: SegmentView) -> int:
        """Records of zones that an edge falls into, of which no batch says when it came."""
        if self.clock is RECORD:
            return 0
        undecided: dict[int, int] = {}
        for edge in (self.from_ms, self.to_ms):
            index = view.zones.arrived_from(edge)
            zone = view.zones.zone(index) if index < view.zones.total else None
            if zone is not None and zone.first_arrival_ms < edge:
                undecided[index] = 0 if zone.flags & LOG_APPEND_TIME else zone.record_count
        return sum(undecided.values())

    def _scan_zone(self, view: SegmentView, index: int) -> _Found:
        return self._scan(view, view.zones.zone(index), view.zones.end_position(index, view.limit))

    def _scan(self, view: SegmentView, zone: Zone, end: int) -> _Found:
        """Records of the range in the zone's batches."""
        self.look.scanned_bytes += end - zone.position
        self.look.scanned_zones += 1
        window = zone_window(view.file, zone, end)
        count, first, last = 0, -1, -1
        for place in batches(window, zone.position, end):
            if place.last_offset < self.start_offset:
                continue
            if place.base_offset >= self.last_fetchable:
                break
            found = self._in_batch(window, place, zone)
            if found.records:
                first = found.first if first < 0 else first
                count, last = count + found.records, found.last
        return _Found(count, first, last)

    def _in_batch(self, window: Readable, place: BatchPlace, zone: Zone) -> _Found:
        low, high, with_untimed = self._wanted(place, zone)
        if high < low or (place.max_timestamp < low and not with_untimed):
            return _Found(0, -1, -1)
        header, records = self.look.batch_at(window, place)
        try:
            found, first, _, last = find_between(
                records,
                header.record_count,
                header.base_offset,
                header.base_timestamp,
                low,
                high,
                self.start_offset,
                self.last_fetchable - 1,
                with_untimed,
            )
        except DecodeError as error:
            raise CorruptLog(window.path, f"the batch at {place.position}: {error}") from error
        return _Found(found, first, last)

    def _wanted(self, place: BatchPlace, zone: Zone) -> tuple[int, int, bool]:
        """The claimed times that belong to the range, and whether unclaimed ones do."""
        everything, nothing = (INT64_MIN, INT64_MAX, True), (0, -1, False)
        if place.attributes & STAMPED_BATCH:
            at = time_of(self.clock, place.max_timestamp, zone, is_stamped=True)
            return everything if self.from_ms <= at < self.to_ms else nothing
        if self.clock is RECORD:
            return self.from_ms, self.to_ms - 1, False
        came_before_end = zone.last_arrival_ms < self.to_ms
        if self.clock is ARRIVAL:
            return everything if came_before_end else nothing
        if came_before_end:
            return self.from_ms, INT64_MAX, True
        return self.from_ms, self.to_ms - 1, False


def _bounds(clock: SearchClock, zone: Zone) -> tuple[int, int] | None:
    """Times that enclose those of all its records by this clock; None if the row has none."""
    first, last = zone.first_arrival_ms, zone.last_arrival_ms
    if zone.flags & LOG_APPEND_TIME:
        is_between = clock is ARRIVAL or not zone.flags & (LIFTED | ARRIVAL_ESTIMATED)
        return (first, last) if is_between else None
    if clock is ARRIVAL:
        return last, last
    low, high = zone.min_timestamp, zone.max_timestamp
    if clock is RECORD:
        return None if zone.flags & UNTIMED else (low, high)
    if zone.flags & UNTIMED:
        return (last if low == high == -1 else min(low, last)), last
    return min(low, last), min(high, last)


def _joined(
    total: TimeRange, zone: Zone, found: _Found, *, counted: int = 0, scanned: int = 0
) -> TimeRange:
    total = total._replace(
        zones_counted=total.zones_counted + counted, zones_scanned=total.zones_scanned + scanned
    )
    if not found.records:
        return total
    is_estimated = bool(zone.flags & ARRIVAL_ESTIMATED) and total.clock is not RECORD
    return total._replace(
        first_offset=found.first if total.first_offset is None else total.first_offset,
        last_offset=found.last,
        records=total.records + found.records,
        records_at_most=total.records_at_most + found.records,
        estimated=total.estimated + (found.records if is_estimated else 0),
    )
