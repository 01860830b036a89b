"""From a time to an offset, on a snapshot (semantics 5.2, 5.3).

The whole behaviour has a one-line model: the smallest offset, at or after the log start, whose
timestamp is at least T. Segments, time index, zones and batch headers only narrow down where to
look; the answer is read from the records of a batch whose CRC was checked.
"""

from collections.abc import Callable

from protocol.errors import DecodeError
from protocol.records.batch import HEADER_BYTES, LOG_APPEND_TIME, crc_matches, read_header
from protocol.records.compression import inflate
from protocol.records.walk import find_timestamp as find_record
from storage.batch_walk import BatchPlace
from storage.errors import CorruptLog
from storage.index_trust import TrustedIndexes, find_time
from storage.reader import limit_of
from storage.segment import IndexRules, Segment
from storage.segments import index_of
from storage.snapshot import LogSnapshot, TimestampOffset

_Found = TimestampOffset | None


def first_at_or_after(
    snapshot: LogSnapshot,
    indexes: TrustedIndexes,
    rules: IndexRules,
    timestamp: int,
    *,
    last_fetchable: int,
    inflate_limit: int,
) -> TimestampOffset | None:
    """The first record with a time of at least `timestamp` ms; None if it is not below
    `last_fetchable`. DiskError; CorruptLog when the batch that would answer is damaged.
    """
    first = index_of(snapshot.segments, snapshot.log_start_offset)
    for index in range(first, len(snapshot.segments)):
        segment, limit = snapshot.segments[index], limit_of(snapshot, index)
        if not limit or segment.base_offset >= last_fetchable:
            continue
        if indexes.largest_timestamp(segment, limit, rules) < timestamp:
            continue
        found = _first_in(
            segment, limit, indexes, rules, timestamp, snapshot.log_start_offset, inflate_limit
        )
        if found is not None:
            return found if found.offset < last_fetchable else None
    return None


def first_with_largest(
    snapshot: LogSnapshot, indexes: TrustedIndexes, rules: IndexRules, *, inflate_limit: int
) -> TimestampOffset | None:
    """The first record with the largest time at or after the log start; None if none has one.

    KIP-734. Segments are looked into from the largest time down; only one that the log start cuts
    may lack the record that its largest time is of.
    """
    candidates = []
    for index in range(
        index_of(snapshot.segments, snapshot.log_start_offset), len(snapshot.segments)
    ):
        limit = limit_of(snapshot, index)
        if limit:
            largest = indexes.largest_timestamp(snapshot.segments[index], limit, rules)
            candidates.append((largest, -index))
    best: TimestampOffset | None = None
    for largest, negative_index in sorted(candidates, reverse=True):
        floor = 0 if best is None else best.timestamp + 1
        if largest < floor:
            break
        segment, limit = snapshot.segments[-negative_index], limit_of(snapshot, -negative_index)

        def at_least(timestamp: int, segment: Segment = segment, limit: int = limit) -> _Found:
            start = snapshot.log_start_offset
            return _first_in(segment, limit, indexes, rules, timestamp, start, inflate_limit)

        best = _latest(at_least, floor, largest) or best
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
    segment: Segment,
    limit: int,
    indexes: TrustedIndexes,
    rules: IndexRules,
    timestamp: int,
    min_offset: int,
    inflate_limit: int,
) -> TimestampOffset | None:
    place = indexes.find_time(segment, limit, rules, timestamp, min_offset)
    while place is not None:
        found = _first_in_batch(segment, place, timestamp, min_offset, inflate_limit)
        if found is not None:
            return found
        zones = indexes.of(segment, limit, rules).zones
        place = find_time(segment, zones, place.end_position, limit, timestamp)
    return None


def _first_in_batch(
    segment: Segment, place: BatchPlace, timestamp: int, min_offset: int, inflate_limit: int
) -> TimestampOffset | None:
    file = segment.file()
    batch = memoryview(file.read_at(place.position, place.size_bytes))
    try:
        header = read_header(batch)
        if not crc_matches(batch, 0, header):
            raise CorruptLog(file.path, f"the batch at {place.position} has a wrong CRC")
        if header.attributes & LOG_APPEND_TIME:
            offset = max(header.base_offset, min_offset)
            if offset > header.last_offset:
                return None
            return TimestampOffset(header.max_timestamp, offset, header.leader_epoch)
        found = find_record(
            inflate(header.codec, batch[HEADER_BYTES:], limit_bytes=inflate_limit),
            header.record_count,
            header.base_offset,
            header.base_timestamp,
            timestamp,
            min_offset,
        )
    except DecodeError as error:
        raise CorruptLog(file.path, f"the batch at {place.position}: {error}") from error
    if found is None:
        return None
    return TimestampOffset(found[1], found[0], header.leader_epoch)
