"""All zones of a segment as of one moment: the closed ones and the one that is being filled.

What a search by time asks of them. Zones are numbered from 0; together they account for every batch
of the segment, each from its position to the next one's.
"""

from typing import NamedTuple

from storage.zones.columns import ZoneColumns, floor_of, reach_of
from storage.zones.rows import UNREAD, Zone


class ZoneView(NamedTuple):
    """The first `closed` rows of `columns`, and the open zone if there is one."""

    base_offset: int
    columns: ZoneColumns
    closed: int
    open_zone: Zone | None

    @property
    def total(self) -> int:
        """Number of zones."""
        return self.closed + (self.open_zone is not None)

    def zone(self, index: int) -> Zone:
        """The zone number `index`, below `total`."""
        if index == self.closed and self.open_zone is not None:
            return self.open_zone
        offset, *rest = self.columns.row(index)
        return Zone(offset + self.base_offset, *rest)

    def end_position(self, index: int, limit: int) -> int:
        """End of the zone in a segment of `limit` bytes."""
        index += 1
        if index < self.closed:
            return min(self.columns.positions[index], limit)
        if index == self.closed and self.open_zone is not None:
            return min(self.open_zone.position, limit)
        return limit

    def end_offset(self, index: int, log_end: int) -> int:
        """The offset after the zone in a segment that ends before `log_end`."""
        index += 1
        if index < self.closed:
            return min(self.columns.offsets[index] + self.base_offset, log_end)
        if index == self.closed and self.open_zone is not None:
            return min(self.open_zone.first_offset, log_end)
        return log_end

    def is_dense(self, index: int, log_end: int) -> bool:
        """True when it holds a record for each of its offsets, so that its count can be used."""
        zone = self.zone(index)
        ends = zone.first_offset + zone.record_count
        return not zone.flags & UNREAD and ends == self.end_offset(index, log_end)

    def holding_position(self, position: int) -> int:
        """The last zone that begins at or before `position`, or -1."""
        if self.open_zone is not None and position >= self.open_zone.position:
            return self.closed
        return self.columns.holding_position(position, self.closed)

    def holding_offset(self, offset: int) -> int:
        """The zone with `offset`, or the one before if there is none; 0 before the first."""
        if self.open_zone is not None and offset >= self.open_zone.first_offset:
            return self.closed
        return max(self.columns.holding_offset(offset - self.base_offset, self.closed), 0)

    def arrived_from(self, arrival_ms: int) -> int:
        """The first zone whose last arrival is not before `arrival_ms`, or `total`."""
        index = self.columns.arrived_from(arrival_ms, self.closed)
        is_later = self.open_zone is not None and self.open_zone.last_arrival_ms < arrival_ms
        return index + (index == self.closed and is_later)

    def next_between(self, first: int, low: int, high: int, wanted_flags: int = 0) -> int:
        """The first zone from `first` on that may hold a record time from `low` to `high` ms.

        Both included; `total` if none may. One that has one of the `wanted_flags` always may.
        """
        if first < self.closed:
            index = self.columns.next_between(first, self.closed, low, high, wanted_flags)
            if index < self.closed:
                return index
        zone = self.open_zone
        if zone is None or first > self.closed:
            return self.total
        return self.closed if _may_hold(zone, low, high, wanted_flags) else self.total

    def has_flags(self, wanted_flags: int) -> bool:
        """True when one of the zones has one of the flags."""
        zone = self.open_zone
        if zone is not None and zone.flags & wanted_flags:
            return True
        return bool(self.columns.all_flags & wanted_flags)


def _may_hold(zone: Zone, low: int, high: int, wanted_flags: int) -> bool:
    if zone.flags & wanted_flags:
        return True
    floor = floor_of(zone.flags, zone.min_timestamp, zone.first_arrival_ms)
    return reach_of(zone.flags, zone.max_timestamp, zone.last_arrival_ms) >= low and floor <= high
