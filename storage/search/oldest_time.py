"""The oldest record, by record time, of those that a queue has not finished.

By the zone maps: in a zone without a finished record the least time of its row is that of a record
that waits. Only a zone in which some are finished is read, and only if nothing older is known, so
many at the most as the caller allows for. Least times of closed segments are remembered. Records
without a time have no age. Milliseconds.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import BatchHeader
from storage.env import Buffer
from storage.errors import CorruptIndex, CorruptLog
from storage.scan.batch_walk import find_offset
from storage.scan.located_records import located
from storage.search.search_clock import ARRIVAL
from storage.search.segment_access import NotInMemory, SegmentAccess, SegmentView
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Segment
from storage.segment.segments import index_of
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.columns import floor_of
from storage.zones.rows import Zone
from storage.zones.search import zone_window
from storage.zones.view import ZoneView

NONE_LEFT = INT64_MAX
"""Least time of no record."""

Range = tuple[int, int]
"""Offsets, both ends included."""


class UnfinishedOffsets(NamedTuple):
    """Offsets that a queue has not finished: all from `first` on, but for some."""

    first: int
    clean_from: int
    """Nothing is finished from here on."""
    finished: Callable[[], Sequence[Range]]
    """Ranges between the two that are finished, in order."""


class Looks(NamedTuple):
    """Segment access of one search."""

    local: SegmentAccess
    away: SegmentAccess
    """To segments in the tier's store: one that does not wait."""


class OldestTime(NamedTuple):
    """The least time."""

    record_ms: int | None
    """None where no record has a time."""
    is_exact: bool
    """False where more would have to be read."""


def oldest_time(
    snapshot: LogSnapshot, looks: Looks, wanted: UnfinishedOffsets, most_zones: int
) -> OldestTime:
    """The least time of what is not finished; `most_zones` are read. DiskError, CorruptLog.

    What a look that may not wait cannot see is left out.
    """
    search = _LeastTime(looks, wanted, most_zones)
    segments = snapshot.segments
    first = max(wanted.first, snapshot.log_start_offset)
    for index in reversed(range(index_of(segments, first), len(segments))):
        is_last = index + 1 == len(segments)
        end = snapshot.log_end_offset if is_last else segments[index + 1].base_offset
        limit = snapshot.end_of(index)
        if limit and end > first:
            try:
                search.add(segments[index], limit, end, is_closed=not is_last)
            except NotInMemory:
                search.is_exact = False
    found = None if search.best == NONE_LEFT else search.best
    return OldestTime(found, search.is_exact)


class _LeastTime:
    def __init__(self, looks: Looks, wanted: UnfinishedOffsets, most_zones: int) -> None:
        self.best = NONE_LEFT
        self.is_exact = True
        self._looks = looks
        self._wanted = wanted
        self._zones_left = most_zones
        self._ranges: Sequence[Range] | None = None

    def add(self, segment: Segment, limit: int, end: int, *, is_closed: bool) -> None:
        """Looks at a segment that ends before the offset `end`."""
        wanted = self._wanted
        is_whole = segment.base_offset >= max(wanted.first, wanted.clean_from)
        if is_whole and segment.least_timestamp is not None:
            self.best = min(self.best, segment.least_timestamp)
            return
        look = self._looks.local if segment.away is None else self._looks.away
        view = look.at(segment, limit, ARRIVAL)
        try:
            least, is_its_own = self._least_of(look, view, end)
        except CorruptIndex:
            again = look.again(segment, limit, ARRIVAL)
            least, is_its_own = self._least_of(look, again, end)
        if is_closed and is_whole and is_its_own:
            segment.least_timestamp = least
        self.best = min(self.best, least)

    def _least_of(self, look: SegmentAccess, view: SegmentView, end: int) -> tuple[int, bool]:
        """The least time in a segment, and True when it is that; else no more was to be read.

        It is a bound then, or more than the best one where that is enough.
        """
        zones, first = view.zones, self._wanted.first
        begin = zones.holding_offset(first)
        floors = _floors(zones, begin)
        best = NONE_LEFT
        while floors and (floor := min(floors)) < best:
            number = floors.index(floor)
            floors[number] = NONE_LEFT
            zone, zone_end = zones.zone(begin + number), zones.end_offset(begin + number, end)
            if floor >= 0 and self._is_clean(zone.first_offset, zone_end):
                best = floor
            elif floor >= self.best:
                return best, False
            elif not self._zones_left:
                self.is_exact = False
                return floor, False
            else:
                self._zones_left -= 1
                zone_limit = zones.end_position(begin + number, view.limit)
                best = min(best, self._read(look, view, zone, zone_limit))
        return best, True

    def _is_clean(self, first: int, end: int) -> bool:
        wanted = self._wanted
        if first < wanted.first:
            return False
        if first >= wanted.clean_from:
            return True
        ranges = self._finished
        place = bisect_right(ranges, first, key=lambda each: each[0])
        behind = place < len(ranges) and ranges[place][0] < end
        return not behind and not (place and ranges[place - 1][1] >= first)

    @property
    def _finished(self) -> Sequence[Range]:
        if self._ranges is None:
            self._ranges = self._wanted.finished()
        return self._ranges

    def _read(self, look: SegmentAccess, view: SegmentView, zone: Zone, end: int) -> int:
        """The least time of the zone's records that are not finished."""
        window, position, least = zone_window(view.file, zone, end), zone.position, NONE_LEFT
        while position < end:
            place = find_offset(window, position, end, self._wanted.first)
            if place is None:
                break
            header, records = look.batch_at(window, place)
            try:
                least = min(least, self._least_in(records, header))
            except DecodeError as error:
                raise CorruptLog(window.path, f"the batch at {place.position}: {error}") from error
            position = place.end_position
        return least

    def _least_in(self, records: Buffer, header: BatchHeader) -> int:
        offsets, times, *_ = located(records, header, places=False)
        least, begin = NONE_LEFT, bisect_left(offsets, self._wanted.first)
        for first, last in self._finished:
            if last < header.base_offset:
                continue
            if first > header.last_offset:
                break
            least = min(least, _least(times, begin, bisect_left(offsets, first)))
            begin = max(begin, bisect_right(offsets, last))
        return min(least, _least(times, begin, len(times)))


def _least(times: "array[int]", begin: int, end: int) -> int:
    found = min(times[begin:end], default=NONE_LEFT)
    return (
        found
        if found >= 0
        else min((each for each in times[begin:end] if each >= 0), default=NONE_LEFT)
    )


def _floors(zones: ZoneView, begin: int) -> "array[int]":
    """Least times of the zones from a number on: where records have none, NONE_LEFT.

    Of stamps that may be anything the first arrival is the likely one.
    """
    floors = array("q", zones.columns.floors[begin : zones.closed])
    if zones.total > zones.closed:
        zone = zones.zone(zones.closed)
        floors.append(floor_of(zone.flags, zone.min_timestamp, zone.first_arrival_ms))
    if floors and min(floors) < 0:
        for number, floor in enumerate(floors):
            if floor == INT64_MIN:
                floors[number] = zones.zone(begin + number).first_arrival_ms
            elif floor < 0 and zones.zone(begin + number).max_timestamp < 0:
                floors[number] = NONE_LEFT
    return floors
