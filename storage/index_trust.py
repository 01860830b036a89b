"""Index and zone files are hints: compared with the log before they are believed, else made anew.

On the first use of a segment's indexes in a process: the order of all entries, the last entries
against the batches that they speak of, and that no later batch has a larger time. At every use: the
entry of the offset index against the batch at its position. The time index is entered one entry
early, so that one wrong entry cannot make a search begin too late. What fails is rebuilt.
"""

from bisect import bisect_right
from collections.abc import Iterator

from storage.batch_walk import BatchPlace, batch_at, find_offset, find_timestamp
from storage.errors import CorruptIndex, CorruptLog
from storage.index_rebuild import rebuild_indexes
from storage.segment import UNKNOWN, IndexCache, Indexes, IndexRules, Segment
from storage.time_index import TimeIndex
from storage.zone_map import ARRIVAL_ESTIMATED, LOG_APPEND_TIME, Zone, ZoneMap


class TrustedIndexes:
    """Hands out the indexes of a log directory's segments, verified. Any thread may ask."""

    __slots__ = ("_cache", "rebuilt")

    def __init__(self) -> None:
        """Nothing is in memory."""
        self._cache = IndexCache()
        self.rebuilt = 0
        """How many segments' indexes were found wanting and made anew."""

    def of(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        """The segment's indexes, compared with its log up to `limit`. DiskError, CorruptLog."""
        indexes = segment.indexes
        if indexes is None or not segment.verified:
            indexes = self._verified(segment, limit, rules)
        if segment.held is None and segment.synced:
            self._cache.used(segment)
        return indexes

    def forget(self, segment: Segment) -> None:
        """The segment is gone."""
        self._cache.forget(segment)

    def find_offset(
        self, segment: Segment, limit: int, rules: IndexRules, offset: int
    ) -> BatchPlace | None:
        """The first batch of the segment whose last offset is at least `offset`, or None."""
        file = segment.file()
        entry = self.of(segment, limit, rules).offsets.lookup(offset)
        if not entry.position:
            return find_offset(file, 0, limit, offset)
        if entry.position < limit:
            try:
                first = batch_at(file, entry.position, limit)
            except CorruptLog:
                first = None
            if first is not None and first.last_offset == entry.offset:
                if first.last_offset >= offset:
                    return first
                return find_offset(file, first.end_position, limit, offset)
        self._rebuild(segment, limit, rules)
        return find_offset(file, 0, limit, offset)

    def find_time(
        self, segment: Segment, limit: int, rules: IndexRules, timestamp: int, offset: int
    ) -> BatchPlace | None:
        """The first batch that ends at or after `offset` and has a time from `timestamp` on."""
        indexes = self.of(segment, limit, rules)
        start = max(search_offset(indexes.times, timestamp), offset)
        place = self.find_offset(segment, limit, rules, start)
        if place is None:
            return None
        return find_time(segment, indexes.zones, place.position, limit, timestamp)

    def largest_timestamp(self, segment: Segment, limit: int, rules: IndexRules) -> int:
        """The segment's largest record time in ms, -1 if no record has one."""
        if segment.max_timestamp == UNKNOWN:
            self.of(segment, limit, rules)
        return segment.max_timestamp

    def _verified(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        indexes = segment.indexes or segment.make_indexes(rules)
        segment.indexes = indexes
        try:
            indexes.offsets.check()
            indexes.times.check()
            if indexes.zones.check() is not None or not _agree(segment, indexes, limit):
                return self._rebuild(segment, limit, rules)
        except (CorruptIndex, CorruptLog):
            return self._rebuild(segment, limit, rules)
        segment.verified = True
        return indexes

    def _rebuild(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        if segment.held is not None and segment.indexes is not None:
            return segment.indexes  # the writer's, in memory: nobody else may replace them
        self.rebuilt += 1
        indexes = rebuild_indexes(segment, limit, rules)
        segment.indexes = indexes
        segment.verified = True
        return indexes


def search_offset(times: TimeIndex, timestamp: int) -> int:
    """Where a search for `timestamp` begins: no record before it has that time or a later one.

    Of the greatest entry at most T - 1, which is right for both meanings of an entry (time.md 8),
    the one before.
    """
    entries = times.entries
    index = bisect_right(range(entries), timestamp - 1, key=lambda i: times.entry(i).timestamp) - 2
    return times.entry(index).offset if index >= 0 else times.base_offset


def find_time(
    segment: Segment, zones: ZoneMap, position: int, limit: int, timestamp: int
) -> BatchPlace | None:
    """The first batch from `position` on whose largest time is at least `timestamp`, or None.

    Zones that cannot hold one are passed over unread; the last one never is.
    """
    file = segment.file()
    before: Zone | None = None
    for zone in _zones_from(zones, position):
        if before is not None and _may_hold(before, zone, timestamp):
            begin, end = max(before.position, position), min(zone.position, limit)
            place = find_timestamp(file, begin, end, timestamp) if begin < end else None
            if place is not None:
                return place
        before = zone
    begin = position if before is None else max(before.position, position)
    return find_timestamp(file, begin, limit, timestamp)


def _zones_from(zones: ZoneMap, position: int) -> Iterator[Zone]:
    count = zones.row_count
    first = bisect_right(range(count), position, key=lambda i: zones.zone(i).position) - 1
    return zones.zones(max(first, 0))


def _may_hold(zone: Zone, following: Zone, timestamp: int) -> bool:
    if zone.first_offset + zone.record_count != following.first_offset:
        return True  # something between them is not accounted for
    if zone.flags & LOG_APPEND_TIME:  # the row has the claimed times, readers see the arrival
        return bool(zone.flags & ARRIVAL_ESTIMATED) or zone.last_arrival_ms >= timestamp
    return zone.max_timestamp >= timestamp


def _agree(segment: Segment, indexes: Indexes, limit: int) -> bool:
    """Whether the last entries are true; tells the segment its largest time on the way."""
    offsets, times, zones = indexes
    last = offsets.last_entry
    if offsets.entries and (
        last.position >= limit
        or batch_at(segment.file(), last.position, limit).last_offset != last.offset
    ):
        return False
    if segment.max_timestamp != UNKNOWN:
        return True
    segment.since_indexed = limit - last.position
    if not times.entries:
        segment.max_timestamp = -1
        return find_time(segment, zones, 0, limit, 0) is None
    largest = times.last_entry.timestamp
    start = find_offset(
        segment.file(),
        offsets.lookup(search_offset(times, largest)).position,
        limit,
        segment.base_offset,
    )
    if start is None:
        return False
    place = find_time(segment, zones, start.position, limit, largest)
    if place is None or place.max_timestamp != largest:
        return False
    segment.max_timestamp = largest
    segment.max_timestamp_offset = place.last_offset
    return find_time(segment, zones, place.end_position, limit, largest + 1) is None
