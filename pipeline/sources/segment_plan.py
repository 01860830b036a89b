"""Stretches of a segment to read: pruned by offset, record time and arrival.

A zone map bounds both times from both sides, as far as its rows are proved (`proved_rows`). Where
there is none, as in a directory of Kafka's, the time index bounds a search from below, and its last
entry may pass over the whole segment. Whatever contradicts itself is ignored, and more is read:
pruning never leaves out what belongs there.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pipeline.directories.log_files import FILES, Files, LogFile
from pipeline.directories.tier_files import stored_segment
from pipeline.sources.bounds import ANY, OffsetBounds, Range
from storage.errors import CorruptIndex, CorruptLog
from storage.files.layout import OFFSET_INDEX, TIME_INDEX, ZONES, segment_name
from storage.index.offset_search import OffsetSearch, indexed_batch
from storage.index.time_index import TimeIndex
from storage.scan.batch_walk import batches
from storage.zones.columns import ZoneColumns
from storage.zones.gaps import GAP_BITS, GapTimes, gap_of
from storage.zones.proved_rows import SeenLog, proved_rows
from storage.zones.rows import ARRIVAL_ESTIMATED, LIFTED, LOG_APPEND_TIME, UNREAD, UNTIMED

JOINED_GAP_BYTES = 256 * 1024
"""Gap between two stretches up to which it is read as well."""

_INDEX_BYTES = 1 << 31


class PlannedSegment(NamedTuple):
    """A segment as the directory shows it, and where it ends by what is known beside it."""

    directory: str
    base_offset: int
    size_bytes: int
    end_offset: int
    """The base of the next one; of the last one, where reading ends."""
    is_closed: bool
    modified_ms: int = 0
    files: Files = FILES
    """Place of its files."""

    def path(self, suffix: str) -> str:
        """Of one of its files."""
        return f"{self.directory}/{segment_name(self.base_offset, suffix)}"


class Stretch(NamedTuple):
    """Whole batches that follow each other."""

    start: int
    """Byte position; a batch begins there."""
    end: int
    first_offset: int
    """No offset in it is smaller."""
    end_offset: int
    """Nor as large as this."""


def stretches(
    facts: PlannedSegment, file: LogFile, bounds: OffsetBounds, zones: ZoneColumns | None
) -> list[Stretch]:
    """Stretches that may hold records within the bounds, in order; `file` is the segment's log."""
    if not _meets(facts, bounds.offsets):
        return []
    if zones is not None:
        return list(_joined(_by_zones(facts, zones, bounds)))
    start = _entry(facts, file, bounds)
    if start is None:
        return []
    return [Stretch(start[0], facts.size_bytes, start[1], facts.end_offset)]


def cut(
    facts: PlannedSegment, file: LogFile, stretch: Stretch, most_bytes: int
) -> Iterator[Stretch]:
    """The stretch in pieces of about so many bytes, where the offset index knows a batch."""
    rest = stretch
    too_large = most_bytes + most_bytes // 2
    index = _offsets(facts) if rest.end - rest.start > too_large else None
    while index is not None and rest.end - rest.start > too_large:
        entry = index.first_at_position(rest.start + most_bytes)
        place = indexed_batch(file, entry, facts.size_bytes)
        if place is None or not rest.start < place.position < rest.end:
            break
        yield rest._replace(end=place.position, end_offset=place.base_offset)
        rest = rest._replace(start=place.position, first_offset=place.base_offset)
    yield rest


def proved_zones(facts: PlannedSegment, file: LogFile) -> ZoneColumns | None:
    """The segment's zone map, in which a last row stands for what it does not account for."""
    log = SeenLog(file, facts.base_offset, facts.size_bytes)
    stored = stored_segment(facts.files, facts.base_offset)
    closed_end = None if stored is None else stored.row.end_offset
    return proved_rows(facts.files, facts.path(ZONES), log, closed_end=closed_end)


def _meets(facts: PlannedSegment, offsets: Range) -> bool:
    return facts.base_offset <= offsets.high and facts.end_offset > offsets.low


def _by_zones(facts: PlannedSegment, zones: ZoneColumns, bounds: OffsetBounds) -> Iterator[Stretch]:
    count = len(zones)
    low, high = bounds.times
    flags = UNREAD | (UNTIMED if low <= -1 <= high else 0)
    index = 0
    if bounds.offsets.low > facts.base_offset:
        index = max(0, zones.holding_offset(bounds.offsets.low - facts.base_offset, count))
    while (index := _next(zones, index, count, bounds.times, flags)) < count:
        first = facts.base_offset + zones.offsets[index]
        if first > bounds.offsets.high:
            return
        if _may_have_arrived(zones, index, bounds.arrivals) and (
            zones.flags[index] & flags or not _in_gap(zones, index, bounds.times)
        ):
            is_last = index + 1 == count
            end = facts.size_bytes if is_last else zones.positions[index + 1]
            after = facts.end_offset if is_last else facts.base_offset + zones.offsets[index + 1]
            yield Stretch(zones.positions[index], end, first, after)
        index += 1


def _next(zones: ZoneColumns, index: int, count: int, times: Range, flags: int) -> int:
    if times == ANY:
        return index
    return zones.next_between(index, count, times.low, times.high, flags)


def _in_gap(zones: ZoneColumns, index: int, times: Range) -> bool:
    """True when all of these times are in the zone's gap."""
    flags = zones.flags[index]
    if not flags & GAP_BITS or flags & LOG_APPEND_TIME:
        return False
    gap = gap_of(GapTimes(zones.lows[index], zones.highs[index], flags))
    return gap is not None and gap.first <= times.low and times.high <= gap.last


def _may_have_arrived(zones: ZoneColumns, index: int, arrivals: Range) -> bool:
    if arrivals == ANY or zones.flags[index] & (ARRIVAL_ESTIMATED | LIFTED | UNREAD):
        return True
    return (
        zones.last_arrivals[index] >= arrivals.low and zones.first_arrivals[index] <= arrivals.high
    )


def _joined(found: Iterator[Stretch]) -> Iterator[Stretch]:
    """Neighbours as one, and those with little between them."""
    before: Stretch | None = None
    for each in found:
        if before is not None and each.start - before.end <= JOINED_GAP_BYTES:
            before = before._replace(end=each.end, end_offset=each.end_offset)
            continue
        if before is not None:
            yield before
        before = each
    if before is not None:
        yield before


def _entry(facts: PlannedSegment, file: LogFile, bounds: OffsetBounds) -> tuple[int, int] | None:
    """Position and offset from which the segment has to be read; None: not at all."""
    begin = 0, facts.base_offset
    offset = max(facts.base_offset, bounds.offsets.low)
    if bounds.times.low > 0:
        from_time = _first_by_time(facts, file, bounds.times.low)
        if from_time is None:
            return None
        offset = max(offset, from_time)
    if offset == facts.base_offset:
        return begin
    place = indexed_batch(file, _offsets(facts).last_up_to(offset), facts.size_bytes)
    return begin if place is None else (place.position, place.base_offset)


def _first_by_time(facts: PlannedSegment, file: LogFile, low_ms: int) -> int | None:
    """An offset before which no record is as late as `low_ms`; None: none in the segment is.

    Unlike `TrustedIndexes.largest_timestamp` it has no zones to prove the last entry by: one that
    passes over the segment is believed when the headers behind it bear it out.
    """
    times = TimeIndex(facts.files, facts.path(TIME_INDEX), facts.base_offset, _INDEX_BYTES)
    try:
        if not times.entries:
            return facts.base_offset
        if not facts.is_closed or times.last_entry.timestamp >= low_ms:
            return times.search_offset(low_ms)
        last = times.last_entry
    except CorruptIndex:  # also one that Kafka has made longer than its entries
        return facts.base_offset
    entry = _offsets(facts).last_up_to(times.search_offset(last.timestamp))
    place = indexed_batch(file, entry, facts.size_bytes)
    begin = 0 if place is None else place.position
    try:
        largest = max(each.max_timestamp for each in batches(file, begin, facts.size_bytes))
    except (CorruptLog, ValueError):
        return facts.base_offset
    return None if largest == last.timestamp else facts.base_offset


def _offsets(facts: PlannedSegment) -> OffsetSearch:
    return OffsetSearch(facts.files, facts.path(OFFSET_INDEX), facts.base_offset)
