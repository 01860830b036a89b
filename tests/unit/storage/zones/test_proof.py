"""A zone is true when it begins at its batch, counts its records, and holds all their times."""

import pytest

from storage.errors import CorruptLog
from storage.scan.batch_walk import BatchPlace, batches
from storage.timestamps import INT64_MAX, INT64_MIN
from storage.zones.gaps import GapTimes
from storage.zones.proof import ZoneWalk, allows, begin_of
from storage.zones.rows import (
    ARRIVAL_ESTIMATED,
    UNREAD,
    Zone,
    latest_arrival,
    pack_row,
    sound_zones,
)
from tests.support.records.logs import append, open_log

COUNT_AT = 57
"""Where a batch's header has the number of its records."""


class Bytes:
    """A log in memory."""

    path = "/log"

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_at(self, position: int, size: int) -> bytes:
        return self.data[position : position + size]


def written(*counts: int) -> tuple[Bytes, list[BatchPlace]]:
    """Batches with so many records each; those with none were emptied by compaction."""
    log = open_log()
    for count in counts:
        append(log, *range(1000, 1000 + max(count, 1)))
    segment = log.snapshot.active
    data = bytearray(segment.file().read_at(0, segment.size_bytes))
    places = list(batches(Bytes(bytes(data)), 0, len(data)))
    for place, count in zip(places, counts, strict=True):
        at = place.position + COUNT_AT
        data[at : at + 4] = count.to_bytes(4)
    file = Bytes(bytes(data))
    return file, list(batches(file, 0, len(data)))


def test_a_zone_begins_at_the_batch_of_its_offset() -> None:
    file, places = written(2, 3, 1)
    size = len(file.data)

    assert begin_of(file, places[1].position, 2, size) == places[1]
    assert begin_of(file, places[1].position, 3, size) is None
    with pytest.raises(CorruptLog):
        begin_of(file, places[1].position + 5, 2, size)
    with pytest.raises(CorruptLog):
        begin_of(file, size, 6, size)


@pytest.mark.parametrize(
    ("count", "own", "missing"),
    [(5, 2, 0), (4, 2, -1), (6, 4, 0), (7, 5, -1), (99, 5, 91), (0, 0, 0)],
)
def test_a_zone_goes_on_for_as_many_records_as_it_counts(
    count: int, own: int, missing: int
) -> None:
    file, places = written(2, 3, 1, 0, 2)
    walk = ZoneWalk(file, 0, count, len(file.data))

    assert list(walk) == places[:own]
    assert walk.missing == missing
    assert walk.following == (places[own] if own < len(places) else None)


def test_an_end_that_is_cut_off_is_told_apart_from_one_that_is_met() -> None:
    file, places = written(2, 3)
    walk = ZoneWalk(file, 0, 5, places[1].end_position - 1)

    with pytest.raises(CorruptLog):
        list(walk)
    assert walk.missing == 3


@pytest.mark.parametrize(
    ("low", "high", "is_allowed"),
    [(10, 20, True), (9, 20, False), (10, 21, False), (15, 15, True), (-1, -1, True)],
)
def test_bounds_hold_every_time(low: int, high: int, *, is_allowed: bool) -> None:
    assert allows(GapTimes(10, 20, 0), low, high) is is_allowed
    assert allows(GapTimes(10, 20, UNREAD), low, high)
    assert allows(GapTimes(INT64_MIN, INT64_MAX, 0), low, high)


def test_zones_end_before_the_first_bad_row() -> None:
    rows = [Zone(number, 100 * number, 1, 0, 5, 6, 7, 7) for number in range(3)]
    data = bytearray(b"".join(pack_row(row) for row in rows))
    assert sound_zones(bytes(data)) == (rows, None)

    data[-1] ^= 1
    zones, damage = sound_zones(bytes(data), 1000)

    assert [zone.first_offset for zone in zones] == [1000, 1001]
    assert damage is not None


def test_an_estimated_arrival_may_have_been_the_last_write() -> None:
    assert latest_arrival(100, 0, 250) == 100
    assert latest_arrival(100, ARRIVAL_ESTIMATED, 250) == 250
    assert latest_arrival(300, ARRIVAL_ESTIMATED, 250) == 300
