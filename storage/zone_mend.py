"""Brings a segment's zone map in step with its log, keeping every row that can be proved.

A row with a good CRC whose zone begins at a batch of that offset stays, for arrival times cannot be
made again. What is missing is made from the records; its arrival is estimated between the last one
before it and the file's modification time, and flagged (time.md 3).
"""

from protocol.errors import DecodeError
from protocol.records.batch import CODEC_MASK, HEADER_BYTES, LOG_APPEND_TIME
from protocol.records.compression import codec_of, inflate
from protocol.records.scan import BatchRow
from protocol.records.walk import check_records
from storage.batch_walk import batch_at
from storage.errors import CorruptLog
from storage.log_scan import LogScan
from storage.segment import Segment
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zone_map import ARRIVAL_ESTIMATED, UNTIMED, ZoneMap, estimate_arrival
from storage.zone_map import LOG_APPEND_TIME as STAMPED


def mend_zones(segment: Segment, zones: ZoneMap, limit: int, end_offset: int) -> None:
    """Cut rows that do not fit the log up to `limit`, and add what is missing. In memory only."""
    zones.check()
    zones.truncate_to(end_offset)
    _cut_misplaced(segment, zones, limit)
    position, mapped_records = zones.resume_point()
    scan = LogScan(segment.file(), position, limit=limit)
    for chunk in scan.chunks():
        for row in chunk.rows:
            if mapped_records > 0:
                mapped_records -= row[6]
            else:
                _add(zones, chunk.data, row, chunk.position, segment.mtime_ms)


def _cut_misplaced(segment: Segment, zones: ZoneMap, limit: int) -> None:
    file = segment.file()
    for index in range(zones.row_count):
        zone = zones.zone(index)
        try:
            fits = batch_at(file, zone.position, limit).base_offset == zone.first_offset
        except CorruptLog:
            fits = False
        if not fits:
            zones.truncate_to(zones.zone(index - 1).first_offset if index else segment.base_offset)
            return


def _add(zones: ZoneMap, data: memoryview, row: BatchRow, begin: int, mtime_ms: int) -> None:
    attributes, count = row[7], row[6]
    flags = ARRIVAL_ESTIMATED | (STAMPED if attributes & LOG_APPEND_TIME else 0)
    body: memoryview | bytes | bytearray = data[row[0] + HEADER_BYTES : row[0] + row[5]]
    try:
        if attributes & CODEC_MASK:
            body = inflate(codec_of(attributes & CODEC_MASK), body)
        facts = check_records(body, count, row[3], INT64_MIN, INT64_MAX)
        earliest, latest = facts.min_timestamp, facts.max_timestamp
        flags |= UNTIMED if facts.untimed else 0
    except DecodeError:  # sound by its CRC, but not to be unpacked here: bounds that hide nothing
        earliest, latest = min(row[3], row[4]), row[4]
    arrival = estimate_arrival(row[4], zones.last_arrival_ms, mtime_ms)
    zones.add(row[1], begin + row[0], row[5], count, earliest, latest, arrival, flags)
