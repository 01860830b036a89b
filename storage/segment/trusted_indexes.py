"""Index and zone files are hints: compared with the log before they are used, else rebuilt.

On the first use of a segment's indexes in a process: the order of all entries, the last entries
against the batches that they speak of, that no later batch has a larger time, and that no entry is
of an offset behind the end. At every use: the entry of the offset index against the batch at its
position. The time index is entered one entry early, so that one wrong entry cannot make a search
begin too late. What fails is rebuilt.
"""

from contextlib import suppress

from storage.errors import CorruptIndex, CorruptLog, DiskError
from storage.index.offset_search import indexed_batch
from storage.locks import Lock
from storage.scan.batch_walk import BatchPlace, find_offset, last_batch
from storage.segment.index_rebuild import has_writer, may_replace, rebuild_indexes
from storage.segment.segment import UNKNOWN, IndexCache, Indexes, IndexRules, Segment
from storage.segment.zone_repair import cover, is_covered, look_into_unread
from storage.zones.rows import UNREAD
from storage.zones.search import find_time


class TrustedIndexes:
    """Hands out the indexes of a log directory's segments, verified. Any thread may ask."""

    __slots__ = ("_cache", "gate", "rebuilt")

    def __init__(self) -> None:
        """Nothing is in memory."""
        self.gate = Lock()
        """Taken while a segment gets other indexes, or a writer who keeps those that it has."""
        self._cache = IndexCache()
        self.rebuilt = 0
        """Number of segments whose indexes were found wrong and rebuilt."""

    def of(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        """The segment's indexes, compared with its log up to `limit`. DiskError, CorruptLog."""
        indexes = segment.indexes
        if indexes is None or not segment.verified:
            indexes = self._verified(segment, limit, rules)
        self.used(segment)
        return indexes

    def used(self, segment: Segment) -> None:
        """The segment's indexes were just looked at: they stay in memory for a while."""
        if segment.held is None and segment.synced:
            oldest = self._cache.used(segment)
            if oldest is not None:
                self._drop(oldest)

    def _drop(self, segment: Segment) -> None:
        with self.gate:
            if segment.synced and not has_writer(segment):
                segment.indexes = None
                segment.verified = False

    def forget(self, segment: Segment) -> None:
        """The segment is gone."""
        self._cache.forget(segment)

    def find_offset(
        self, segment: Segment, limit: int, rules: IndexRules, offset: int
    ) -> BatchPlace | None:
        """The first batch of the segment whose last offset is at least `offset`, or None.

        Begins at an entry of the index; one that is false is a reason to rebuild them all.
        """
        file = segment.file()
        entry = self.of(segment, limit, rules).offsets.lookup(offset)
        if not entry.position:
            return find_offset(file, 0, limit, offset)
        first = indexed_batch(file, entry, limit)
        if first is None:
            self.rebuild(segment, limit, rules)
            return find_offset(file, 0, limit, offset)
        if first.last_offset >= offset:
            return first
        return find_offset(file, first.end_position, limit, offset)

    def largest_timestamp(self, segment: Segment, limit: int, rules: IndexRules) -> int:
        """The segment's largest record time in ms, -1 if no record has one."""
        if segment.max_timestamp == UNKNOWN:
            self.of(segment, limit, rules)
        return segment.max_timestamp

    def _verified(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        indexes = self._indexes_of(segment, rules)
        try:
            indexes.offsets.check()
            indexes.times.check()
            if segment.away is not None and indexes.zones.check() is None:
                segment.verified = True  # each has the CRC that it was copied with
                return indexes
            if indexes.zones.check() is not None or not _leads_to_a_batch(segment, indexes, limit):
                return self.rebuild(segment, limit, rules)
            indexes = self._covered(segment, indexes, limit, rules)
            if not self._agree(segment, indexes, limit):
                return self.rebuild(segment, limit, rules)
        except (CorruptIndex, CorruptLog):
            return self.rebuild(segment, limit, rules)
        segment.verified = True
        return indexes

    def _indexes_of(self, segment: Segment, rules: IndexRules) -> Indexes:
        made = segment.make_indexes(rules)
        with self.gate:
            segment.indexes = segment.indexes or made
            return segment.indexes

    def _covered(
        self, segment: Segment, indexes: Indexes, limit: int, rules: IndexRules
    ) -> Indexes:
        """With zones that account for the whole segment; others' are not changed for that."""
        indexed = indexes.offsets.last_entry.position
        if (
            not limit
            or segment.held is not None
            or is_covered(segment, indexes.zones, limit, indexed)
        ):
            return indexes
        zones = segment.make_indexes(rules).zones
        cover(segment, zones, limit, indexed)
        with self.gate:
            if may_replace(segment, limit):
                segment.indexes = indexes._replace(zones=zones)
            return segment.indexes or indexes

    def _agree(self, segment: Segment, indexes: Indexes, limit: int) -> bool:
        """True when the time index's last entry is true; sets the segment's largest time."""
        if segment.max_timestamp != UNKNOWN:
            return True
        largest = _largest(segment, indexes, limit)
        if largest is None:
            return False
        with self.gate:
            if segment.max_timestamp == UNKNOWN:  # else a writer knows more by now
                segment.since_indexed = limit - indexes.offsets.last_entry.position
                segment.max_timestamp, segment.max_timestamp_offset = largest
        return True

    def with_known_zones(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        """As `of`; of a closed segment the zones that nobody looked into were read by then.

        That reads the segment when its zone map was lost. DiskError, CorruptLog.
        """
        indexes = self.of(segment, limit, rules)
        if segment.held is not None or not indexes.zones.view().has_flags(UNREAD):
            return indexes
        zones = segment.make_indexes(rules).zones
        look_into_unread(segment, zones, limit)
        known = indexes._replace(zones=zones)
        with self.gate:
            if may_replace(segment, limit):
                with suppress(DiskError):
                    if segment.synced:  # else the next sync does, behind the log's
                        zones.flush()
                segment.indexes = known
        return known

    def rebuild(self, segment: Segment, limit: int, rules: IndexRules) -> Indexes:
        """Rebuild the segment's indexes, unless they are the writer's. DiskError, CorruptLog."""
        if segment.indexes is not None and has_writer(segment):
            return segment.indexes  # in memory: nobody else may replace them
        self.rebuilt += 1
        return rebuild_indexes(segment, limit, rules, self.gate)


def _leads_to_a_batch(segment: Segment, indexes: Indexes, limit: int) -> bool:
    """True when the last entry of the offset index is true."""
    offsets = indexes.offsets
    if not offsets.entries:
        return True
    return indexed_batch(segment.file(), offsets.last_entry, limit) is not None


def _is_without_times(segment: Segment, indexes: Indexes, limit: int) -> bool:
    """True when the one entry is KIP-33's for a segment without record times (time.md 8)."""
    offsets, times, zones = indexes
    if times.entries != 1:
        return False
    last = last_batch(segment.file(), offsets.last_entry.position, limit)
    is_end = last is not None and times.last_entry.offset == last.last_offset + 1
    return is_end and find_time(segment.file(), zones.view(), 0, limit, 0) is None


def _largest(segment: Segment, indexes: Indexes, limit: int) -> tuple[int, int] | None:
    """The largest time, -1 without any, and the last offset of its batch; None: it is not so."""
    offsets, times, _ = indexes
    file, zones = segment.file(), indexes.zones.view()
    if not times.entries:
        return (-1, -1) if find_time(file, zones, 0, limit, 0) is None else None
    largest = times.last_entry.timestamp
    start = offsets.lookup(times.search_offset(largest)).position
    place = find_time(file, zones, start, limit, largest)
    if place is None and _is_without_times(segment, indexes, limit):
        return -1, -1
    if place is None or place.max_timestamp != largest:
        return None
    if find_time(file, zones, place.end_position, limit, largest + 1) is not None:
        return None
    if not _is_within(segment, indexes, limit):
        return None
    return largest, place.last_offset


def _is_within(segment: Segment, indexes: Indexes, limit: int) -> bool:
    """True when the time index's last entry is of an offset that exists, or the next one.

    An entry behind the end would refuse those that appends bring.
    """
    offsets, times, _ = indexes
    last = times.last_entry.offset
    if last <= offsets.last_entry.offset + 1:
        return True
    batch = last_batch(segment.file(), offsets.last_entry.position, limit)
    return batch is not None and last <= batch.last_offset + 1
