"""Facts for retention about the segments in a partition's directory, from a few bytes of each.

Of a closed segment the last entry of its time index, the last row of its zone map and the file's
date; of the one that is being written the zones behind the last entry of the time index, and the
headers of the last zone. Reads only, so a broker may be at work; also in a directory of Kafka's,
which has no zone maps, and whose index files are long and empty at their end while it runs.

Unlike `storage.segment.times`, which has a broker's segments and their proved indexes in memory,
nothing here was opened before or is repaired: a file that is wrong tells less.
"""

from contextlib import suppress
from struct import Struct
from typing import NamedTuple

from protocol.records.batch import NO_TIMESTAMP
from storage.env import File, FileSystem
from storage.errors import CorruptLog, FileMissing
from storage.files.layout import LOG, OFFSET_INDEX, TIME_INDEX, ZONES, segment_name
from storage.files.partition_listing import PartitionListing, look_at
from storage.index.offset_search import OffsetSearch, indexed_batch
from storage.index.sparse_index import used_bytes
from storage.index.time_index import TimeIndex
from storage.retention.plan import LogFacts, SegmentFacts
from storage.scan.batch_walk import BatchPlace, batches, find_timestamp
from storage.zones.proof import begin_of
from storage.zones.rows import (
    LOG_APPEND_TIME,
    ROW_BYTES,
    UNREAD,
    Zone,
    latest_arrival,
    sound_zones,
)

_ANY_SIZE = 1 << 31
_TIME_ENTRY = Struct(">qi")
_MOST_ZONES = 1 << 15
"""Rows that are looked at: those of two GiB."""


class PartitionFacts(NamedTuple):
    """The segments of a partition, oldest first, and its offsets."""

    segments: list[SegmentFacts]
    log: LogFacts


class HeldRecord(NamedTuple):
    """The record whose time a segment is judged by."""

    offset: int
    timestamp_ms: int
    producer_id: int
    key: bytes | None


def partition_facts(fs: FileSystem, path: str, start_offset: int) -> PartitionFacts:
    """Facts of the directory `path`; the log starts at `start_offset` or later. DiskError."""
    listing = look_at(fs, path)
    bases = listing.bases
    segments: list[SegmentFacts] = []
    end_offset = start_offset
    for base in bases:
        with suppress(FileMissing):  # retention was quicker
            facts, end_offset = _facts(fs, path, listing, base, is_last=base == bases[-1])
            segments.append(facts)
    start = max(start_offset, segments[0].base_offset) if segments else start_offset
    return PartitionFacts(segments, LogFacts(start, end_offset, end_offset))


def find_record(fs: FileSystem, path: str, base_offset: int, time_ms: int) -> HeldRecord | None:
    """The first record of the segment with that time or a later one; None if it is not there."""
    from protocol.records.batch import read_header
    from protocol.records.record import iter_records

    file = fs.open(f"{path}/{segment_name(base_offset, LOG)}", write=False)
    try:
        place = _first_batch(fs, path, base_offset, file, time_ms)
        if place is None:
            return None
        batch = memoryview(file.read_at(place.position, place.size_bytes))
    finally:
        file.close()
    header = read_header(batch)
    for record in iter_records(batch):
        if record.timestamp >= time_ms:
            return HeldRecord(record.offset, record.timestamp, header.producer_id, record.key)
    return None


def arrived_after(fs: FileSystem, path: str, offset: int) -> int | None:
    """A time that the record did not come before, by the zone maps; None when they do not tell.

    Of the segment that is being written, the last zone is not in the file yet: what is in it came
    after what the file has.
    """
    for base in reversed([each for each in look_at(fs, path).bases if each <= offset]):
        try:
            rows = fs.read_bytes(f"{path}/{segment_name(base, ZONES)}")
        except FileMissing:
            continue
        zones, _ = sound_zones(rows)
        for zone in reversed(zones):
            relative = offset - base - zone.first_offset
            if relative >= 0 and not zone.flags & UNREAD:
                is_in_it = relative < zone.record_count
                return zone.first_arrival_ms if is_in_it else zone.last_arrival_ms
    return None


def _first_batch(
    fs: FileSystem, path: str, base_offset: int, file: File, time_ms: int
) -> BatchPlace | None:
    """The first batch of the `.log` with that largest time or a later one."""
    from storage.zones.proved_rows import SeenLog, proved_rows
    from storage.zones.search import find_time
    from storage.zones.view import ZoneView

    limit = file.size()
    rows = proved_rows(
        fs, f"{path}/{segment_name(base_offset, ZONES)}", SeenLog(file, base_offset, limit)
    )
    if rows is None:
        return find_timestamp(file, 0, limit, time_ms)
    zones = ZoneView(base_offset, rows, len(rows), None)
    return find_time(file, zones, 0, limit, time_ms)


def _facts(
    fs: FileSystem, path: str, listing: PartitionListing, base: int, *, is_last: bool
) -> tuple[SegmentFacts, int]:
    """The segment's facts, and the offset after it as far as this was looked for."""
    entry = listing.logs[base]
    timed = _last_time(fs, f"{path}/{segment_name(base, TIME_INDEX)}")
    largest, end_offset = (NO_TIMESTAMP if timed is None else timed.timestamp_ms), base
    if is_last or timed is None:
        behind, end_offset = _tail(fs, path, base, entry.size_bytes, timed)
        largest = max(largest, behind)
    arrival = _last_arrival(fs, f"{path}/{segment_name(base, ZONES)}", entry.mtime_ms)
    if is_last and arrival != NO_TIMESTAMP:
        arrival = max(arrival, entry.mtime_ms)  # the open zone is not in the file yet
    return SegmentFacts(base, entry.size_bytes, largest, arrival, entry.mtime_ms), end_offset


class _TimeEntry(NamedTuple):
    timestamp_ms: int
    relative_offset: int


def _last_time(fs: FileSystem, path: str) -> _TimeEntry | None:
    """The last entry of the index; None when it has none, or cannot be believed."""
    size = TimeIndex.ENTRY_BYTES
    try:
        data = _tail_bytes(fs, path, size)
        if data and not any(data):  # reserved by a Kafka at work
            whole = fs.read_bytes(path)
            used = used_bytes(whole, size)
            data = whole[max(0, used - size) : used]
    except FileMissing:
        return None
    is_whole = len(data) == size and any(data)
    return _TimeEntry(*_TIME_ENTRY.unpack(data)) if is_whole else None


def _last_arrival(fs: FileSystem, path: str, modified_ms: int) -> int:
    try:
        zones, _ = sound_zones(_tail_bytes(fs, path, ROW_BYTES))
    except FileMissing:
        return NO_TIMESTAMP
    if not zones or zones[0].flags & UNREAD:
        return NO_TIMESTAMP
    return latest_arrival(zones[0].last_arrival_ms, zones[0].flags, modified_ms)


def _tail_bytes(fs: FileSystem, path: str, row_bytes: int, *, most: int = 1) -> bytes:
    """The last whole rows of a file, so many at most."""
    file = fs.open(path, write=False)
    try:
        rows = file.size() // row_bytes
        begin = max(0, rows - most) * row_bytes
        return file.read_at(begin, rows * row_bytes - begin) if rows else b""
    finally:
        file.close()


def _tail(
    fs: FileSystem, path: str, base: int, limit: int, timed: _TimeEntry | None
) -> tuple[int, int]:
    """The largest time that the indexes do not tell, and the offset after the last whole batch.

    A broker at work has the newest entries of each index in memory, of the time index more than of
    the other, while thousands of batches follow those in the file. Its zone map is nearly
    complete, and tells their times. Kafka's indexes are complete, and it has no zone map.
    """
    zones_path = f"{path}/{segment_name(base, ZONES)}"
    since = timed if fs.exists(zones_path) else _TimeEntry(NO_TIMESTAMP, _ANY_SIZE)
    file = fs.open(f"{path}/{segment_name(base, LOG)}", write=False)
    try:
        begin = _position_of(fs, path, base, file, limit, since)
        zones = _zones_from(fs, zones_path, begin)
        if zones and _begins_at(file, zones[-1], base, limit):
            largest, end_offset = _walked(file, zones[-1].position, limit, base)
            return max(largest, *(zone.max_timestamp for zone in zones)), end_offset
        return _walked(file, begin, limit, base)
    finally:
        file.close()


def _position_of(  # noqa: PLR0917 - private, called by position
    fs: FileSystem, path: str, base: int, file: File, limit: int, entry: _TimeEntry | None
) -> int:
    """Position of the last indexed batch that may have the entry's record; 0 without an entry."""
    if entry is None:
        return 0
    offsets = OffsetSearch(fs, f"{path}/{segment_name(base, OFFSET_INDEX)}", base)
    place = indexed_batch(file, offsets.last_up_to(base + entry.relative_offset), limit)
    return 0 if place is None else place.position


def _zones_from(fs: FileSystem, path: str, position: int) -> list[Zone]:
    """The zones from the one that holds `position` to the last; none unless all tell the times."""
    try:
        rows = _tail_bytes(fs, path, ROW_BYTES, most=_MOST_ZONES)
    except FileMissing:
        return []
    found, damage = sound_zones(rows)
    holding = sum(zone.position <= position for zone in found) - 1
    if holding < 0 or damage is not None:
        return []
    behind = found[holding:]
    has_times = not any(zone.flags & (UNREAD | LOG_APPEND_TIME) for zone in behind)
    return behind if has_times else []


def _begins_at(file: File, zone: Zone, base: int, limit: int) -> bool:
    """True for a zone of this log: a crash may have left rows of what was cut off."""
    with suppress(CorruptLog):
        return begin_of(file, zone.position, base + zone.first_offset, limit) is not None
    return False


def _walked(file: File, position: int, limit: int, base: int) -> tuple[int, int]:
    end_offset, largest = base, NO_TIMESTAMP
    with suppress(CorruptLog):  # a batch that is being written
        for place in batches(file, position, limit):
            largest = max(largest, place.max_timestamp)
            end_offset = place.last_offset + 1
    return largest, end_offset
