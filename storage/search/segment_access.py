"""Segment access of a search, blocking or not.

An access that must not wait is for the event loop: it sees indexes that were loaded and verified
before, and bytes in the page cache, and reads and unpacks little of them. Whatever else it would
take is `NotInMemory`; the search is then repeated on a lane, where it may take its time.
"""

from typing import NamedTuple

from protocol.errors import DecodeError
from protocol.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    BatchHeader,
    crc_matches,
    read_header,
)
from storage.env import File
from storage.errors import CorruptLog
from storage.scan.batch_walk import BatchPlace, Readable
from storage.search.search_clock import ARRIVAL, EARLIER, RECORD, SearchClock
from storage.segment.segment import UNKNOWN, Indexes, IndexRules, Segment
from storage.segment.trusted_indexes import TrustedIndexes
from storage.validation.unpacking import TooMuchWork, Work, inflate_within
from storage.zones.rows import UNREAD, UNTIMED
from storage.zones.view import ZoneView

QUICK_BYTES = 2 * 1024 * 1024  # read in one look that must not wait: well under a millisecond
QUICK_PACKED_BYTES = 64 * 1024  # of a compressed batch
QUICK_UNPACKED_BYTES = 1024 * 1024  # unless the caller says otherwise


class NotInMemory(Exception):  # noqa: N818 - what happened, not a fault
    """The answer takes the disk or too long: ask where waiting is allowed."""


class SegmentView(NamedTuple):
    """A segment up to `limit` bytes, as a search sees it."""

    segment: Segment
    limit: int
    file: Readable
    indexes: Indexes
    zones: ZoneView


class SegmentAccess:
    """The segments of a log as one search reads them."""

    __slots__ = (
        "_indexes",
        "_inflate_limit",
        "_may_ask",
        "_may_wait",
        "_rules",
        "_work",
        "bytes_left",
        "scanned_bytes",
        "scanned_zones",
    )

    def __init__(
        self,
        indexes: TrustedIndexes,
        rules: IndexRules,
        inflate_limit: int,
        *,
        may_wait: bool = True,
        may_ask: bool = True,
        work: Work | None = None,
    ) -> None:
        """`inflate_limit`: bytes that one batch may unpack to; `work`: all of them together.

        Without `may_ask` it waits for the disk, and for nothing that the tier's store has.
        """
        self._work = Work(QUICK_UNPACKED_BYTES, 1) if work is None and not may_wait else work
        self._indexes = indexes
        self._rules = rules
        self._may_wait = may_wait
        self._may_ask = may_ask
        self._inflate_limit = inflate_limit
        self.bytes_left = QUICK_BYTES
        """Bytes that a look which must not wait may still read."""
        self.scanned_zones = self.scanned_bytes = 0
        """Zones that were read so far, and bytes of those that ranges took."""

    def at(self, segment: Segment, limit: int, clock: SearchClock) -> SegmentView:
        """The segment, its indexes verified. DiskError, CorruptLog, NotInMemory."""
        if self._waits_for(segment):
            trusted = self._indexes
            way = trusted.of if clock is RECORD else trusted.with_known_zones
            indexes, file = way(segment, limit, self._rules), segment.file()
            return SegmentView(segment, limit, file, indexes, indexes.zones.view())
        loaded = segment.indexes
        if loaded is None or not segment.verified:
            raise NotInMemory
        offsets, times, zone_map = loaded
        if not (offsets.is_loaded and times.is_loaded and zone_map.is_loaded):
            raise NotInMemory
        zones = zone_map.view()
        if zones.has_flags(UNREAD):
            raise NotInMemory
        self._indexes.used(segment)
        return SegmentView(segment, limit, CachedFile(segment.file(), self), loaded, zones)

    def again(self, segment: Segment, limit: int, clock: SearchClock) -> SegmentView:
        """Opens the segment as `at`, with rebuilt indexes: the present ones were found wrong.
        Raises NotInMemory.
        """
        if not self._waits_for(segment):
            raise NotInMemory
        self._indexes.rebuild(segment, limit, self._rules)
        return self.at(segment, limit, clock)

    def may_hold(self, segment: Segment, limit: int, clock: SearchClock, timestamp: int) -> bool:
        """True when the segment may hold a record of `timestamp` or later by this clock."""
        if clock is RECORD and segment.max_timestamp != UNKNOWN:
            return segment.max_timestamp >= timestamp
        if clock is not RECORD and not self._came_by(segment, limit, timestamp):
            return False
        if clock is ARRIVAL:
            return True
        return self.largest_timestamp(segment, limit) >= timestamp or (
            clock is EARLIER and self._has_untimed(segment, limit)
        )

    def largest_timestamp(self, segment: Segment, limit: int) -> int:
        """The segment's largest record time, -1 if no record has one. Raises NotInMemory."""
        if segment.max_timestamp != UNKNOWN:
            return segment.max_timestamp
        if not self._waits_for(segment):
            raise NotInMemory
        return self._indexes.largest_timestamp(segment, limit, self._rules)

    def records_of(
        self, batch: memoryview, header: BatchHeader, path: str, position: int
    ) -> memoryview | bytes | bytearray:
        """The batch's records, unpacked. The batch is at `position`. Raises NotInMemory.

        CorruptLog when it is damaged; TooMuchWork when it unpacks to more than may be.
        """
        limit = self._inflate_limit
        is_packed = bool(header.attributes & CODEC_MASK)
        if is_packed and not self._may_wait and len(batch) > QUICK_PACKED_BYTES:
            raise NotInMemory
        if not crc_matches(batch, 0, header):
            raise CorruptLog(path, f"the batch at {position} has a wrong CRC")
        try:
            return inflate_within(
                header.codec, batch[HEADER_BYTES:], limit_bytes=limit, work=self._work
            )
        except TooMuchWork:
            if self._may_wait:
                raise
            raise NotInMemory from None
        except DecodeError as error:
            raise CorruptLog(path, f"the batch at {position}: {error}") from error

    def batch_at(
        self, file: Readable, place: BatchPlace
    ) -> tuple[BatchHeader, memoryview | bytes | bytearray]:
        """The batch's header and its records, unpacked. CorruptLog when it is damaged."""
        batch = memoryview(file.read_at(place.position, place.size_bytes))
        header = read_header(batch)
        return header, self.records_of(batch, header, file.path, place.position)

    def _waits_for(self, segment: Segment) -> bool:
        return self._may_wait and (self._may_ask or segment.away is None)

    def _came_by(self, segment: Segment, limit: int, timestamp: int) -> bool:
        """True when a record of the segment may have arrived at `timestamp` or later."""
        if segment.held is not None and segment.indexes is not None:
            return segment.arrival_by_zones >= timestamp
        if segment.last_arrival_ms >= 0:
            return segment.last_arrival_ms >= timestamp
        return self.at(segment, limit, RECORD).indexes.zones.last_arrival_ms >= timestamp

    def _has_untimed(self, segment: Segment, limit: int) -> bool:
        known = segment.untimed
        if known is not None and (known[0] or limit <= known[1]):
            return known[0]
        zones = self.at(segment, limit, EARLIER).zones
        found = zones.has_flags(UNTIMED)
        if not zones.has_flags(UNREAD):  # else nobody knows
            segment.untimed = found, limit
        return found


class CachedFile:
    """A file of which only what is in the page cache is read, and not much of that."""

    __slots__ = ("_file", "_look", "path")

    def __init__(self, file: File, look: SegmentAccess) -> None:
        """Counts what is read in `look`."""
        self._file = file
        self._look = look
        self.path = file.path

    def read_at(self, position: int, size: int) -> memoryview:
        """The bytes, or NotInMemory."""
        self._look.bytes_left -= size
        if self._look.bytes_left >= 0:
            buffer = memoryview(bytearray(size))
            count = self._file.read_into_if_cached(position, buffer)
            if count is not None:
                return buffer[:count]
        raise NotInMemory
