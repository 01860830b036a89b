"""Makes a segment's indexes from its log: offset and time index by the rules of appends (semantics
1.3, 1.7), the zone map by what is missing in it.

Recovery, a reader whose indexes fail, and a job that rebuilds them into another folder pass over
the log alike (`read`, `end`); they differ in what they do about its end and in who hears of it.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from protocol.records.scan import BatchRow
from storage.errors import CorruptLog
from storage.files.layout import SPAN
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.scan.log_scan import LogScan, ScannedChunk
from storage.segment.segment import Indexes, IndexRules, Segment
from storage.segment.zone_repair import mend_zones


class IndexRebuild:
    """Takes in a segment's batches from its begin, in order. The segment hears of it in the end."""

    __slots__ = ("_first_timestamp", "_last_indexed", "_max", "_rules", "_segment", "indexes")

    def __init__(self, segment: Segment, rules: IndexRules) -> None:
        """Start with empty indexes; the zone map stays what it was."""
        self._segment = segment
        self._rules = rules
        self.indexes = segment.make_indexes(rules)
        self.indexes.offsets.reset()
        self.indexes.times.reset()
        self._last_indexed = 0
        self._max = (-1, -1)
        self._first_timestamp = -1

    def read(self, scan: LogScan, taken: Callable[[ScannedChunk], None] | None = None) -> None:
        """Take in all that the scan, which begins at 0, finds sound; `taken` gets each chunk after.

        DiskError.
        """
        for chunk in scan.chunks():
            self.add(chunk.rows, chunk.position)
            if taken is not None:
                taken(chunk)

    def end(self, scan: LogScan, *, closed: bool) -> Indexes:
        """The indexes for what was read, the zone map in step with it. Nobody hears of it yet."""
        self._complete(scan.end_position, scan.next_offset, closed=closed)
        mend_zones(self._segment, self.indexes.zones, scan.end_position, scan.next_offset)
        return self.indexes

    def add(self, rows: list[BatchRow], begin: int) -> None:
        """Take in batches whose positions count from `begin`."""
        offsets, times, _ = self.indexes
        interval, last_indexed = self._rules.interval_bytes, self._last_indexed - begin
        largest, largest_offset = self._max
        if rows and not begin + rows[0][0]:
            self._first_timestamp = rows[0][4]
        for row in rows:
            if row[4] > largest:
                largest, largest_offset = row[4], row[2]
            if row[0] - last_indexed > interval:
                last_indexed = row[0]
                self._index(offsets, times, row, begin, largest, largest_offset)
        self._last_indexed = begin + last_indexed
        self._max = largest, largest_offset

    def finish(self, size_bytes: int, end_offset: int, *, closed: bool) -> Indexes:
        """All batches were given: tell the segment its times; a closed one gets its last entry.

        The zone map stays what it was.
        """
        self._complete(size_bytes, end_offset, closed=closed)
        self.tell(size_bytes)
        return self.indexes

    def _complete(self, size_bytes: int, end_offset: int, *, closed: bool) -> None:
        if closed and size_bytes:
            add_last_time(
                self.indexes.times,
                *self._max,
                end_offset,
                self._segment.mtime_ms,
                times_next=self._rules.times_next,
            )

    def tell(self, size_bytes: int) -> None:
        """Tell the segment its times."""
        segment = self._segment
        segment.first_timestamp = self._first_timestamp
        segment.max_timestamp, segment.max_timestamp_offset = self._max
        segment.since_indexed = size_bytes - self._last_indexed

    def _index(  # noqa: PLR0917 - private, called by position
        self,
        offsets: OffsetIndex,
        times: TimeIndex,
        row: BatchRow,
        begin: int,
        largest: int,
        largest_offset: int,
    ) -> None:
        if offsets.is_full or times.is_full:
            return
        offsets.append(row[2], begin + row[0])
        times.maybe_append(largest, row[2] + 1 if self._rules.times_next else largest_offset)


def add_last_time(
    times: TimeIndex,
    timestamp: int,
    offset: int,
    end_offset: int,
    mtime_ms: int,
    *,
    times_next: bool,
) -> None:
    """The last entry of a closed segment. As KIP-33 writes it, also when no record has a time.

    Such a segment then has its modification time for the base of the next one (time.md 8).
    """
    if times_next:
        offset = end_offset
        timestamp = mtime_ms if timestamp < 0 else timestamp
    if timestamp > times.last_entry.timestamp:
        times.maybe_append(timestamp, offset, skip_full_check=True)


def rebuild_indexes(
    segment: Segment,
    limit: int,
    rules: IndexRules,
    gate: AbstractContextManager[object] | None = None,
) -> Indexes:
    """The segment's indexes rebuilt for the log up to `limit`; a closed one's are written, too.

    In the `gate` they become the segment's, unless a writer has begun there meanwhile: then the
    writer's are answered. CorruptLog when the log is damaged before the limit; DiskError.
    """
    base = segment.base_offset
    scan = LogScan(segment.file(), limit=limit, next_offset=base, below=base + SPAN)
    rebuild = IndexRebuild(segment, rules)
    rebuild.read(scan)
    if scan.end_position < limit:
        raise CorruptLog(segment.file().path, f"at {scan.end_position} {scan.fault}")
    closed = segment.held is None
    rebuild.end(scan, closed=closed)
    with gate or nullcontext():
        if not may_replace(segment, limit):
            return segment.indexes or rebuild.indexes
        rebuild.tell(limit)
        segment.indexes, segment.verified = rebuild.indexes, True
        if closed:
            write_indexes(rebuild.indexes)
    return rebuild.indexes


def has_writer(segment: Segment) -> bool:
    """True when the segment takes appends, so that its indexes are the writer's."""
    return segment.held is not None and segment.indexes is not None


def may_replace(segment: Segment, limit: int) -> bool:
    """True when indexes that cover the log up to `limit` may become the segment's. In the gate.

    A writer may have begun there since `limit` was looked at, and may have gone on from it, too.
    """
    return segment.size_bytes == limit and not has_writer(segment)


def write_indexes(indexes: Indexes) -> None:
    """Bring the files up to date; the last zone closes."""
    indexes.zones.close_zone()
    for index in indexes:
        index.flush()
