"""The rule by which a row of a zone map is true of the `.log` beside it (time.md 3).

A zone begins at a batch of its offset (`begin_of`), goes on for as many records as it counts
(`ZoneWalk`), and its bounds hold the times of all of them (`allows`). Who asks decides how much
of this is looked at, and what follows when it is not so.
"""

from collections.abc import Iterator

from protocol.records.batch import NO_TIMESTAMP
from storage.scan.batch_walk import BatchPlace, Readable, batch_at, batches
from storage.zones.gaps import GapTimes
from storage.zones.rows import UNREAD


def begin_of(file: Readable, position: int, first_offset: int, limit: int) -> BatchPlace | None:
    """The batch that a zone begins with, by its header; None when it has another offset.

    CorruptLog when no batch begins there.
    """
    place = batch_at(file, position, limit)
    return place if place.base_offset == first_offset else None


class ZoneWalk:
    """The batches of one zone in order, by their headers. An iterator; it raises CorruptLog.

    Batches without records that follow the last record belong to the zone.
    """

    __slots__ = ("_batches", "following", "missing")

    def __init__(self, file: Readable, position: int, record_count: int, limit: int) -> None:
        """Begin at the zone's position; nothing is read."""
        self._batches = batches(file, position, limit)
        self.missing = record_count
        """Records that the row counts and the walk has not passed; below 0: it counts too few."""
        self.following: BatchPlace | None = None
        """The first batch with records behind the zone, once the walk is over; None at the end."""

    def __iter__(self) -> Iterator[BatchPlace]:
        """The batches up to the end of the zone."""
        for place in self._batches:
            if self.missing <= 0 < place.record_count:
                self.following = place
                return
            self.missing -= place.record_count
            yield place


def allows(row: GapTimes, low: int, high: int) -> bool:
    """True when the row's bounds hold record times from `low` to `high` (ms).

    Both -1 are no time at all; a row that nobody looked into allows any.
    """
    if row.flags & UNREAD or low == NO_TIMESTAMP == high:
        return True
    return row.low <= low and high <= row.high
