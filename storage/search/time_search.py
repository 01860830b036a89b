"""From a time to an offset, on a snapshot and by any clock (semantics.md 5.2, 5.3; time.md 3).

The whole behaviour has a one-line model: the smallest offset, at or after the log start, whose time
by the clock is at least T. Segments, zones and batch headers only narrow down where to look; the
answer is read from the records of a batch whose CRC was checked. One zone of a segment is read,
however dirty the others are; a second one only where the log start cuts the first.
"""

from collections.abc import Callable

from protocol.errors import DecodeError
from protocol.records.batch import (
    LOG_APPEND_TIME,
    BatchHeader,
    crc_matches,
    read_header,
)
from protocol.records.walk import find_between
from protocol.records.walk import find_timestamp as find_record
from storage.errors import CorruptIndex, CorruptLog
from storage.index.offset_search import indexed_batch
from storage.scan.batch_walk import BatchPlace, batch_at, find_offset, find_timestamp
from storage.search.search_clock import ARRIVAL, EARLIER, RECORD, SearchClock, time_of
from storage.search.segment_access import SegmentAccess, SegmentView
from storage.segment.log_snapshot import LogSnapshot, TimestampOffset
from storage.segment.segment import Segment
from storage.segment.segments import index_of
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.proof import begin_of
from storage.zones.rows import UNTIMED, Zone

_Found = TimestampOffset | None


def first_at_or_after(
    snapshot: LogSnapshot,
    look: SegmentAccess,
    timestamp: int,
    *,
    last_fetchable: int,
    clock: SearchClock = RECORD,
) -> TimestampOffset | None:
    """The first record with a time of at least `timestamp` ms; None if it is not below
    `last_fetchable`. DiskError; CorruptLog when the batch that would answer is damaged.

    Negative times are no times: they are not found, and looked for as 0.
    """
    timestamp = max(timestamp, 0)
    segments, start = snapshot.segments, snapshot.log_start_offset
    for index in range(index_of(segments, start), len(segments)):
        segment = segments[index]
        if segment.base_offset >= last_fetchable:
            break
        limit = snapshot.end_of(index)
        if not limit or not look.may_hold(segment, limit, clock, timestamp):
            continue
        found = _first_in(look, segment, limit, clock, timestamp, start)
        if found is not None:
            return found if found.offset < last_fetchable else None
    return None


def first_with_largest(snapshot: LogSnapshot, look: SegmentAccess) -> TimestampOffset | None:
    """The first record with the largest record time at or after the log start; None if none has.

    KIP-734. Segments are looked into from the largest time down; one that the log start cuts, or
    in which a batch was emptied, may lack the record that its largest time is of.
    """
    segments, start = snapshot.segments, snapshot.log_start_offset
    candidates = []
    for index in range(index_of(segments, start), len(segments)):
        limit = snapshot.end_of(index)
        if limit:
            candidates.append((look.largest_timestamp(segments[index], limit), -index))
    best: TimestampOffset | None = None
    for largest, negative_index in sorted(candidates, reverse=True):
        segment, limit = segments[-negative_index], snapshot.end_of(-negative_index)
        is_whole = segment is not snapshot.active and segment.base_offset >= start
        floor = 0
        if best is not None:
            if largest < best.timestamp:
                break
            floor = best.timestamp + (segment.base_offset > best.offset)

        if is_whole and segment.largest is not None:
            known = TimestampOffset(*segment.largest)
            best = known if known.timestamp >= floor else best
            continue

        def at_least(timestamp: int, segment: Segment = segment, limit: int = limit) -> _Found:
            return _first_in(look, segment, limit, RECORD, timestamp, start)

        found = _latest(at_least, floor, largest)
        if found is not None:
            best = found
            if is_whole:  # none of it changes any more
                segment.largest = found
    return best


def _latest(at_least: Callable[[int], _Found], low: int, high: int) -> _Found:
    """The first record with the largest time from `low` to `high`, by halving what is between."""
    best, asked = None, high
    while low <= high:
        found = at_least(asked)
        if found is None:
            high = asked - 1
        else:
            best, low = found, found.timestamp + 1
        asked = (low + high + 1) // 2
    return best


def _first_in(  # noqa: PLR0917 - private, called by position
    look: SegmentAccess,
    segment: Segment,
    limit: int,
    clock: SearchClock,
    timestamp: int,
    min_offset: int,
) -> _Found:
    try:
        return _Search(look, look.at(segment, limit, clock), clock, timestamp, min_offset).run()
    except CorruptIndex:
        view = look.again(segment, limit, clock)
        return _Search(look, view, clock, timestamp, min_offset).run()


class _Search:
    """One question to one segment."""

    __slots__ = ("_clock", "_look", "_min_offset", "_timestamp", "_view")

    def __init__(
        self,
        look: SegmentAccess,
        view: SegmentView,
        clock: SearchClock,
        timestamp: int,
        min_offset: int,
    ) -> None:
        self._look = look
        self._view = view
        self._clock = clock
        self._timestamp = timestamp
        self._min_offset = min_offset

    def run(self) -> _Found:
        zones, clock = self._view.zones, self._clock
        index = 0
        if self._min_offset > zones.base_offset:
            index = zones.holding_offset(self._min_offset)
        if clock is not RECORD:
            index = max(index, zones.arrived_from(self._timestamp))
        low = INT64_MIN if clock is ARRIVAL else self._timestamp
        wanted_flags = UNTIMED if clock is EARLIER else 0
        while (index := zones.next_between(index, low, INT64_MAX, wanted_flags)) < zones.total:
            zone = zones.zone(index)
            if zone.position >= self._view.limit:
                break
            found = self._first_in_zone(zone, zones.end_position(index, self._view.limit))
            if found is not None:
                return found
            index += 1
        return None

    def _first_in_zone(self, zone: Zone, end: int) -> _Found:
        self._look.scanned_zones += 1
        file, timestamp = self._view.file, self._timestamp
        every = self._looks_at_every(zone)
        place = self._begin(zone, end, every=every)
        while place is not None:
            if every or place.max_timestamp >= timestamp:
                found = self._first_in_batch(place, zone)
                if found is not None:
                    return found
            position = place.end_position
            if position >= end:
                break
            if every:
                place = batch_at(file, position, end)
            else:
                place = find_timestamp(file, position, end, timestamp)
        return None

    def _begin(self, zone: Zone, end: int, *, every: bool) -> BatchPlace | None:
        """The first batch of the zone that matters: indexes lead there, and are not trusted."""
        file, min_offset = self._view.file, self._min_offset
        offset = min_offset
        if not every:
            offset = max(self._view.indexes.times.search_offset(self._timestamp), min_offset)
        place = self._indexed(zone, end, offset)
        if place.last_offset >= min_offset:
            return place
        return find_offset(file, place.end_position, end, min_offset)

    def _indexed(self, zone: Zone, end: int, offset: int) -> BatchPlace:
        """The batch of the zone from which `offset` is looked for. CorruptIndex."""
        file, position = self._view.file, zone.position
        if offset > zone.first_offset:
            entry = self._view.indexes.offsets.lookup(offset)
            if position < entry.position < end:
                place = indexed_batch(file, entry, end)
                if place is None:
                    raise CorruptIndex(file.path, f"not the batch of {entry}")
                return place
        try:
            place = begin_of(file, position, zone.first_offset, end)
        except CorruptLog as error:
            raise CorruptIndex(file.path, f"no batch at {position}: {error}") from error
        if place is None:
            raise CorruptIndex(file.path, f"no zone begins at {position}")
        return place

    def _looks_at_every(self, zone: Zone) -> bool:
        """True when any batch may hold it. By record time headers tell; of times unclaimed not."""
        if self._clock is RECORD:
            return False
        return self._clock is ARRIVAL or bool(zone.flags & UNTIMED)

    def _first_in_batch(self, place: BatchPlace, zone: Zone) -> _Found:
        file = self._view.file
        batch = memoryview(file.read_at(place.position, place.size_bytes))
        header = read_header(batch)
        if header.attributes & LOG_APPEND_TIME:
            at = time_of(self._clock, header.max_timestamp, zone, is_stamped=True)
            if at < self._timestamp:
                return None
            if not crc_matches(batch, 0, header):
                raise CorruptLog(file.path, f"the batch at {place.position} has a wrong CRC")
            offset = self._first_offset(batch, header, place)
            return None if offset is None else TimestampOffset(at, offset, header.leader_epoch)
        records = self._look.records_of(batch, header, file.path, place.position)
        try:
            found = self._first_in_records(records, header)
        except DecodeError as error:
            raise CorruptLog(file.path, f"the batch at {place.position}: {error}") from error
        if found is None:
            return None
        at = time_of(self._clock, found[1], zone, is_stamped=False)
        return TimestampOffset(at, found[0], header.leader_epoch)

    def _first_offset(
        self, batch: memoryview, header: BatchHeader, place: BatchPlace
    ) -> int | None:
        """Of a batch that the broker stamped: compaction may have left gaps in it, or nothing."""
        least = max(header.base_offset, self._min_offset)
        if header.record_count == header.last_offset_delta + 1:
            return least
        path = self._view.file.path
        records = self._look.records_of(batch, header, path, place.position)
        try:
            found = find_record(
                records, header.record_count, header.base_offset, header.base_timestamp,
                INT64_MIN, least,
            )  # fmt: skip
        except DecodeError as error:
            raise CorruptLog(path, f"the batch at {place.position}: {error}") from error
        return None if found is None else found[0]

    def _first_in_records(
        self, records: memoryview | bytes | bytearray, header: BatchHeader
    ) -> tuple[int, int] | None:
        """Offset and claimed time. Zones were chosen by arrival, so the claim decides alone."""
        count, offset, base = header.record_count, header.base_offset, header.base_timestamp
        if self._clock is RECORD:
            return find_record(records, count, offset, base, self._timestamp, self._min_offset)
        low = INT64_MIN if self._clock is ARRIVAL else self._timestamp
        found, first_offset, first_time, _ = find_between(
            records, count, offset, base, low, INT64_MAX, self._min_offset, INT64_MAX, True
        )
        return (first_offset, first_time) if found else None
