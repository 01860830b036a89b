"""Proves the rows of a segment's zone map against its batches (time.md 3).

A zone begins at a batch with its offset, counts the records up to the next one, and its bounds hold
every record time in between: a search may leave out a zone by its bounds. Arrival is known to
nobody but the zone map itself; it never runs backwards in a log.

Unlike other readers of a zone map (`storage.zones.proof` has the rule that they share) this one has
unpacked every record, and holds the bounds against the times that producers claimed.
"""

from protocol.records.batch import NO_TIMESTAMP
from storage.verify.batch import ProvenBatch
from storage.verify.report import PartitionReport
from storage.zones.gaps import Gap, GapTimes, gap_of
from storage.zones.proof import allows
from storage.zones.rows import UNREAD, sound_zones


class ZoneProof:
    """The rows of one `.zones`."""

    def __init__(
        self,
        file: str,
        base_offset: int,
        data: bytes,
        report: PartitionReport,
        arrival_floor_ms: int,
    ) -> None:
        """`data`: the whole file. `arrival_floor_ms`: the last arrival before this segment."""
        self._file = file
        self._report = report
        self._zones, damage = sound_zones(data, base_offset)
        if damage is not None:  # ends the map for every reader
            report.add("wrong", file, damage)
        self.last_arrival_ms = arrival_floor_ms
        self._current = -1
        self._records = 0
        self._uncovered = 0
        self._is_misplaced = False
        self._bounds = GapTimes(NO_TIMESTAMP, NO_TIMESTAMP, 0)

    def add(self, batch: ProvenBatch) -> None:
        """The next batch."""
        following = self._current + 1
        if following < len(self._zones) and self._zones[following].position <= batch.position:
            self._begin(batch)
        if not self._is_covered():
            self._uncovered += batch.record_count
            return
        self._records += batch.record_count
        self._check_bounds(batch)

    def gap_at(self, position: int) -> Gap | None:
        """Times that no record of the next batch has, which begins there, as its zone says."""
        index = self._current
        if index + 1 < len(self._zones) and self._zones[index + 1].position <= position:
            index += 1
        if index < 0:
            return None
        zone = self._zones[index]
        return gap_of(GapTimes(zone.min_timestamp, zone.max_timestamp, zone.flags))

    def finish(self, *, is_open: bool) -> None:
        """Checks the end. The last zone of an open segment is in memory still."""
        self._end()
        if self._uncovered and not is_open:
            self._report.add("wrong", self._file, f"{self._uncovered} records are in no zone")

    def _begin(self, batch: ProvenBatch) -> None:
        self._end()
        self._current += 1
        zone = self._zones[self._current]
        self._bounds = GapTimes(zone.min_timestamp, zone.max_timestamp, zone.flags)
        self._records = 0
        self._is_misplaced = (zone.position, zone.first_offset) != (
            batch.position,
            batch.base_offset,
        )
        if self._is_misplaced:
            self._wrong(f"no batch with that offset begins at {zone.position}")
        if not self.last_arrival_ms <= zone.first_arrival_ms <= zone.last_arrival_ms:
            self._wrong(f"arrival runs backwards, {self.last_arrival_ms} came before")
        self.last_arrival_ms = max(self.last_arrival_ms, zone.last_arrival_ms)

    def _end(self) -> None:
        """The zone's records are all there."""
        if self._current < 0 or self._is_misplaced:
            return
        expected = self._zones[self._current].record_count
        if self._records != expected:
            self._wrong(f"counts {expected} records where {self._records} are there")
        else:
            self._report.proved.zones += 1

    def _is_covered(self) -> bool:
        """True when the batch belongs to the zone: the last one ends with its count of records."""
        if self._current < 0:
            return False
        is_last = self._current == len(self._zones) - 1
        return not is_last or self._records < self._zones[self._current].record_count

    def _check_bounds(self, batch: ProvenBatch) -> None:
        zone = self._zones[self._current]
        low, high = batch.min_claimed, batch.max_claimed
        if zone.flags & UNREAD or not batch.is_read:
            return
        if not allows(self._bounds, low, high):
            self._wrong(
                f"times from {low} to {high} at offset {batch.base_offset} leave its bounds, "
                f"{zone.min_timestamp} to {zone.max_timestamp}"
            )
        elif batch.in_gap:
            self._wrong(
                f"{batch.in_gap} times at offset {batch.base_offset} are where it says there is "
                "none"
            )

    def _wrong(self, why: str) -> None:
        zone = self._zones[self._current]
        self._report.add(
            "wrong", self._file, f"zone {self._current} (offset {zone.first_offset}): {why}"
        )
