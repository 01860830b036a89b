"""Delays of records: arrival - record time, from the rows of the zone map (time.md 3).

Nothing of the log is read. A row has bounds, not the delay of each record: none of a zone's records
came less late than `first arrival - largest time`, none later than `last arrival - smallest time`.
So there are two histograms, and the true one is between them. On LogAppendTime topics the rows hold
the claimed times, so there, too, this is what the way to the broker cost. Milliseconds.
"""

from bisect import bisect_left
from typing import NamedTuple

from storage.search.search_clock import RECORD
from storage.search.segment_access import SegmentAccess
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segments import index_of
from storage.zones.rows import ARRIVAL_ESTIMATED, Zone

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
BOUNDS_MS = (
    -7 * DAY, -DAY, -HOUR, -MINUTE, -SECOND, 0, 10, 100, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE,
    HOUR, DAY, 7 * DAY, 30 * DAY, 365 * DAY,
)  # fmt: skip


class SkewBucket(NamedTuple):
    """Records up to `up_to_ms` late, and later than the bucket before; None: the rest.

    Negative is early: the record's time is after its arrival.
    """

    up_to_ms: int | None
    records_by_least: int
    """Number of records whose least possible delay is in the bucket."""
    records_by_most: int
    """Number of records whose greatest possible delay is in the bucket."""


class TimeSkew(NamedTuple):
    """The delays of the records of a log, but those whose zone has none or lost its arrival."""

    records: int
    unknown_records: int
    """Records of zones with an estimated arrival, or in which no record claims a time."""
    least_ms: int | None
    most_ms: int | None
    earliest_zone_offset: int | None
    """First offset of the zone with the least delay, where times in the future are."""
    latest_zone_offset: int | None
    """First offset of the zone with the greatest delay."""
    buckets: tuple[SkewBucket, ...]


def skew_of(snapshot: LogSnapshot, look: SegmentAccess) -> TimeSkew:
    """The delays in all zones of the log. DiskError, CorruptLog.

    Reads zone files, 52 bytes for each 64 KiB of the log: run it on a lane.
    """
    tally = _Tally()
    segments = snapshot.segments
    for index in range(index_of(segments, snapshot.log_start_offset), len(segments)):
        limit = snapshot.end_of(index)
        if not limit:
            continue
        zones = look.at(segments[index], limit, RECORD).zones
        for number in range(zones.total):
            zone = zones.zone(number)
            if zone.position >= limit or zone.first_offset >= snapshot.log_end_offset:
                break
            if zones.end_offset(number, snapshot.log_end_offset) > snapshot.log_start_offset:
                tally.add(zone)
    return tally.result()


class _Tally:
    def __init__(self) -> None:
        self._by_least = [0] * (len(BOUNDS_MS) + 1)
        self._by_most = [0] * (len(BOUNDS_MS) + 1)
        self._records = self._unknown = 0
        self._least: tuple[int, int] | None = None
        self._most: tuple[int, int] | None = None

    def add(self, zone: Zone) -> None:
        records = zone.record_count
        is_untimed = zone.min_timestamp == -1 == zone.max_timestamp
        if is_untimed or zone.flags & ARRIVAL_ESTIMATED:
            self._unknown += records
            return
        least = zone.first_arrival_ms - zone.max_timestamp
        most = zone.last_arrival_ms - zone.min_timestamp
        self._records += records
        self._by_least[bisect_left(BOUNDS_MS, least)] += records
        self._by_most[bisect_left(BOUNDS_MS, most)] += records
        if self._least is None or least < self._least[0]:
            self._least = least, zone.first_offset
        if self._most is None or most > self._most[0]:
            self._most = most, zone.first_offset

    def result(self) -> TimeSkew:
        least_ms, earliest = self._least or (None, None)
        most_ms, latest = self._most or (None, None)
        bounds: tuple[int | None, ...] = (*BOUNDS_MS, None)
        return TimeSkew(
            self._records,
            self._unknown,
            least_ms,
            most_ms,
            earliest,
            latest,
            tuple(map(SkewBucket, bounds, self._by_least, self._by_most)),
        )
