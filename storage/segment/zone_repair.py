"""Brings a segment's zone map in step with its log, keeping every row that can be proved.

A row with a good CRC whose zone begins at a batch of that offset stays, for arrival times cannot be
made again. What is missing is made from the records; its arrival is estimated between the last one
that is known before it and the file's modification time, and flagged (time.md 3). Of a segment in
the store its row tells both.
"""

from protocol.errors import DecodeError
from protocol.records.batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME, NO_TIMESTAMP
from protocol.records.compression import codec_of, inflate
from protocol.records.mistimed import Limits
from protocol.records.scan import BatchRow
from protocol.records.walk import RecordFacts, check_records
from storage.errors import CorruptIndex, CorruptLog
from storage.scan.batch_walk import BatchPlace, last_batch
from storage.scan.log_scan import LogScan
from storage.segment.arrival_floor import arrival_floor
from storage.segment.segment import Segment
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.validation.dirty_timestamps import FAR_FUTURE_MS, Action, look_over, zone_flags
from storage.zones.proof import ZoneWalk, begin_of
from storage.zones.zone_map import ARRIVAL_ESTIMATED, UNREAD, UNTIMED, ZoneMap, estimate_arrival
from storage.zones.zone_map import LOG_APPEND_TIME as STAMPED

MENDED_AT_ONCE = 8 * 1024 * 1024  # bytes of log that are read to account for them


def is_covered(segment: Segment, zones: ZoneMap, limit: int, indexed: int) -> bool:
    """True when the zones account for every batch up to `limit`; `indexed`: a batch near the end.

    CorruptIndex when the last zone is not what its row says; DiskError, CorruptLog.
    """
    return _first_uncovered(segment, zones, limit, indexed) is None


def cover(segment: Segment, zones: ZoneMap, limit: int, indexed: int) -> None:
    """Account for batches behind the last zone, as a Kafka that ran in the directory leaves them.

    A few are looked into, many become one zone that may hold any time, until a reader needs to know
    (`look_into_unread`). In memory only. Errors as above.
    """
    zones.check()
    if limit - zones.resume_point()[0] <= MENDED_AT_ONCE:
        mend_zones(segment, zones, limit, INT64_MAX)
        zones.close_zone()
    rest = _first_uncovered(segment, zones, limit, indexed)
    if rest is not None:
        end = _end_offset(segment, limit, indexed)
        zones.add_unread(rest.base_offset, rest.position, end, segment.mtime_ms)


def look_into_unread(segment: Segment, zones: ZoneMap, limit: int) -> None:
    """Read what nobody looked into yet, and what follows. In memory only.

    DiskError; CorruptLog when it cannot all be read.
    """
    zones.check()
    first = next((zone for zone in zones.zones() if zone.flags & UNREAD), None)
    mend_zones(segment, zones, limit, INT64_MAX if first is None else first.first_offset)
    zones.close_zone()
    if not is_covered(segment, zones, limit, zones.resume_point()[0]):
        raise CorruptLog(segment.file().path, "a batch is damaged: its arrival is unknown")


def _first_uncovered(
    segment: Segment, zones: ZoneMap, limit: int, indexed: int
) -> BatchPlace | None:
    position, mapped_records = zones.resume_point()
    unread_end = _unread_end(zones)
    if unread_end is not None and unread_end == _end_offset(segment, limit, indexed):
        return None
    if zones.row_count:
        last = zones.zone(zones.row_count - 1)
        if begin_of(segment.file(), position, last.first_offset, limit) is None:
            raise CorruptIndex(zones.path, f"no zone begins at {position}")
    walk = ZoneWalk(segment.file(), position, mapped_records, limit)
    for _ in walk:
        continue
    if walk.missing:
        raise CorruptIndex(zones.path, f"the zone at {position} counts its records wrong")
    return walk.following


def _end_offset(segment: Segment, limit: int, indexed: int) -> int:
    last = last_batch(segment.file(), indexed, limit)
    assert last is not None
    return last.last_offset + 1


def mend_zones(segment: Segment, zones: ZoneMap, limit: int, end_offset: int) -> None:
    """Cut rows that do not fit the log up to `limit`, and add what is missing. In memory only."""
    zones.check()
    zones.truncate_to(end_offset)
    _cut_misplaced(segment, zones, limit)
    if _add_missing(segment, zones, limit):
        # Where compaction left fewer records than offsets, the zone seems to end before the cut
        # that took some of them.
        zones.truncate_to(zones.zone(zones.row_count - 1).first_offset)
        _add_missing(segment, zones, limit)


def _add_missing(segment: Segment, zones: ZoneMap, limit: int) -> bool:
    """Adds batches behind the last row; True where that row counts records that are not there."""
    if not zones.row_count:
        zones.raise_floor(arrival_floor(segment))
    position, mapped_records = zones.resume_point()
    unread_end = _unread_end(zones)
    if unread_end is not None:  # it counts offsets
        mapped_records = 0
    scan = LogScan(segment.file(), position, limit=limit)
    for chunk in scan.chunks():
        for row in chunk.rows:
            if mapped_records > 0:
                mapped_records -= row[6]
            elif row[6] and (unread_end is None or row[1] >= unread_end):
                _add(segment, zones, chunk.data, row, chunk.position)
    return mapped_records > 0


def _unread_end(zones: ZoneMap) -> int | None:
    """The offset behind the last row where nobody looked into that."""
    if not zones.row_count:
        return None
    last = zones.zone(zones.row_count - 1)
    return last.first_offset + last.record_count if last.flags & UNREAD else None


def _cut_misplaced(segment: Segment, zones: ZoneMap, limit: int) -> None:
    file = segment.file()
    for index in range(zones.row_count):
        zone = zones.zone(index)
        try:
            fits = begin_of(file, zone.position, zone.first_offset, limit) is not None
        except CorruptLog:
            fits = False
        if not fits:
            zones.truncate_to(zones.zone(index - 1).first_offset if index else segment.base_offset)
            return


def _dirty_flags(
    body: memoryview | bytes | bytearray, row: BatchRow, facts: RecordFacts, mtime_ms: int
) -> int:
    """Flags for times after the file's last change: they are dirty, whatever their writer."""
    if facts.max_timestamp <= mtime_ms + FAR_FUTURE_MS:
        return 0
    limits = Limits(mtime_ms, INT64_MIN, INT64_MAX, INT64_MIN, mtime_ms + FAR_FUTURE_MS)
    _, edges = look_over(body, row[6], row[3], limits, Action.ACCEPTED)
    return zone_flags(facts.min_timestamp, facts.max_timestamp, limits, edges)


def _estimate(segment: Segment, zones: ZoneMap, max_timestamp: int, end: int) -> int:
    """Estimated arrival of the batch that ends there. Of the last one a store's row has it."""
    if segment.away is not None and end == segment.size_bytes:
        max_timestamp = NO_TIMESTAMP
    return estimate_arrival(max_timestamp, zones.last_arrival_ms, segment.latest_arrival_ms)


def _add(segment: Segment, zones: ZoneMap, data: memoryview, row: BatchRow, begin: int) -> None:
    attributes, count = row[7], row[6]
    flags = ARRIVAL_ESTIMATED | (STAMPED if attributes & LOG_APPEND_TIME else 0)
    body: memoryview | bytes | bytearray = data[row[0] + HEADER_BYTES : row[0] + row[5]]
    try:
        if attributes & CODEC_MASK:
            body = inflate(codec_of(attributes & CODEC_MASK), body)
        facts = check_records(body, count, row[3], INT64_MIN, INT64_MAX)
        earliest, latest = facts.min_timestamp, facts.max_timestamp
        flags |= UNTIMED if facts.untimed else 0
        flags |= _dirty_flags(body, row, facts, segment.mtime_ms)
    except DecodeError:  # sound by its CRC, but not to be unpacked here: bounds that hide nothing
        earliest, latest = min(row[3], row[4]), row[4]
    position, size = begin + row[0], row[5]
    arrival = _estimate(segment, zones, row[4], position + size)
    zones.add(row[1], position, size, count, earliest, latest, arrival, flags)
