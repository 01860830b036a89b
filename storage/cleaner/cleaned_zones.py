"""The zone map of a compacted segment: arrival times carried over, zone by zone (time.md 3).

Arrival times cannot be made again, so no zone of the old segments is divided: a new zone is one or
more of them, with the arrivals of the first and the last, and holds stamped batches or others. Old
zones of which nothing stayed vanish. Record times are those of what stayed.
"""

from bisect import bisect_right
from collections.abc import Sequence

from protocol.records.batch import NO_TIMESTAMP
from storage.zones.gaps import GAP_BITS
from storage.zones.rows import pack_row
from storage.zones.zone_map import (
    ARRIVAL_ESTIMATED,
    LOG_APPEND_TIME,
    MIN_TIMED_ZONE_BYTES,
    UNREAD,
    UNTIMED,
    Zone,
    estimate_arrival,
)

Bounds = tuple[int, int]  # first and last arrival


class CleanedZones:
    """Takes in what stayed of the batches, in order; `rows` are the bytes of the new file."""

    def __init__(self, base_offset: int, *, zone_bytes: int, zone_ms: int) -> None:
        """No zone yet, of a segment with that base offset."""
        self.rows = bytearray()
        self._base_offset = base_offset
        self._zone_bytes = zone_bytes
        self._zone_ms = zone_ms
        self._sources: Sequence[Zone] = ()
        self._starts: list[int] = []
        self._source = -1
        self._mtime_ms = 0
        self._last_arrival = 0
        self._open: Zone | None = None
        self._open_bytes = 0

    def begin_source(self, zones: Sequence[Zone], mtime_ms: int) -> None:
        """The batches that follow are of another old segment, which has these zones."""
        self._sources = zones
        self._starts = [zone.position for zone in zones]
        self._source = -1
        self._mtime_ms = mtime_ms

    def add(  # noqa: PLR0917 - once a batch
        self,
        old_position: int,
        offset: int,
        position: int,
        size_bytes: int,
        count: int,
        min_timestamp: int,
        max_timestamp: int,
        *,
        is_untimed: bool,
        is_stamped: bool,
    ) -> None:
        """Adds a batch that stayed: its old and new position, and the times that its records
        claim.
        """
        self._come_to(old_position)
        flags = (UNTIMED if is_untimed else 0) | (LOG_APPEND_TIME if is_stamped else 0)
        (first, last), marks = self._arrivals(max_timestamp)
        zone = self._open
        if zone is None:
            zone = Zone(
                offset - self._base_offset, position, 0, 0, NO_TIMESTAMP, NO_TIMESTAMP, first, last
            )
            self._open_bytes = 0
        low = min_timestamp
        if _is_without(min_timestamp, max_timestamp) or not (
            _is_without(zone.min_timestamp, zone.max_timestamp)
            or min_timestamp < zone.min_timestamp
        ):
            low = zone.min_timestamp
        self._open = Zone(
            zone.first_offset,
            zone.position,
            zone.record_count + count,
            zone.flags | flags | marks,
            low,
            max(zone.max_timestamp, max_timestamp),
            zone.first_arrival_ms,
            max(zone.last_arrival_ms, last),
        )
        self._open_bytes += size_bytes
        self._last_arrival = self._open.last_arrival_ms

    def finish(self) -> bytes:
        """No more batches: the bytes of all rows."""
        self._close()
        return bytes(self.rows)

    def _come_to(self, old_position: int) -> None:
        """Find the old zone; where a new one begins, the zone that is being filled may end."""
        source = self._source
        if source + 1 >= len(self._starts) or old_position < self._starts[source + 1]:
            return
        self._source = bisect_right(self._starts, old_position) - 1
        zone = self._open
        if zone is not None and (
            self._open_bytes >= self._zone_bytes
            or (
                self._open_bytes >= MIN_TIMED_ZONE_BYTES
                and zone.last_arrival_ms - zone.first_arrival_ms >= self._zone_ms
            )
            or (zone.flags ^ self._sources[self._source].flags) & LOG_APPEND_TIME
        ):
            self._close()

    def _arrivals(self, max_timestamp: int) -> tuple[Bounds, int]:
        """First and last arrival of the old zone, and what its flags say beyond the records."""
        floor = self._last_arrival
        if self._source < 0:
            guess = estimate_arrival(max_timestamp, floor, self._mtime_ms)
            return (guess, guess), ARRIVAL_ESTIMATED
        source = self._sources[self._source]
        bounds = max(source.first_arrival_ms, floor), max(source.last_arrival_ms, floor)
        return bounds, source.flags & ~(UNTIMED | LOG_APPEND_TIME | UNREAD | GAP_BITS)

    def _close(self) -> None:
        if self._open is not None:
            self.rows += pack_row(self._open)
            self._open = None


def _is_without(min_timestamp: int, max_timestamp: int) -> bool:
    return min_timestamp == NO_TIMESTAMP == max_timestamp
