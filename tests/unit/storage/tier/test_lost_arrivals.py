"""Arrivals of segments in the store whose side object is lost: what the manifest has of them."""

from collections.abc import Callable

import pytest

from storage.files.layout import ZONES
from storage.search.arrivals import ArrivalSpan
from storage.search.search_clock import ARRIVAL
from storage.tier.names import SIDE
from tests.support.records.logs import append, make_durable
from tests.support.tier.restore_world import clock_of
from tests.support.tier.tier_world import KEYS, TierWorld

OLD = 1_000_000_000_000
HOUR = 3_600_000
BATCHES = 3


class LoadedHistory(TierWorld):
    """Two segments that the store has and one in the directory: records of long ago.

    Each has a zone for each of its batches, which came an hour apart.
    """

    def __init__(self) -> None:
        super().__init__(segment_bytes=100_000, horolog_zone_ms=0)
        self.began = clock_of(self).now_ms()
        for segment in range(3):
            for number in range(BATCHES):
                append(self.log, OLD + number, value=b"x" * 5000)
                clock_of(self).advance(HOUR)
            self.log.roll()
            make_durable(self.log)
            if segment < 2:
                self.copy_all()

    def lose_side(self, number: int) -> None:
        row = self.tiered.manifest.segments[number]
        self.store.delete([KEYS.segment(row.base_offset, row.unique, SIDE)])
        self.reopen()

    def hours(self, *offsets: int) -> list[int]:
        """Arrivals of these offsets, in hours from the begin."""
        times = [self.log.search.times_at(offset) for offset in offsets]
        return [(each.arrival_ms - self.began) // HOUR for each in times if each is not None]

    def first_from(self, hour: int) -> int | None:
        found = self.log.search.first_at_or_after(self.began + hour * HOUR, clock=ARRIVAL)
        return None if found is None else found.offset


@pytest.fixture
def world() -> LoadedHistory:
    """Those of the store have left the directory."""
    world = LoadedHistory()
    assert world.drop_all() == 2
    return world


def test_they_are_those_of_its_first_batch_and_of_its_last(world: LoadedHistory) -> None:
    assert world.hours(*range(6)) == [0, 1, 2, 3, 4, 5]
    world.lose_side(1)
    assert world.hours(*range(9)) == [0, 1, 2, 3, 3, 5, 6, 7, 8]
    assert [world.first_from(hour) for hour in (2, 3, 4, 5, 6)] == [2, 3, 5, 5, 6]


def test_what_came_at_the_latest_is_what_the_manifest_has(world: LoadedHistory) -> None:
    row = world.tiered.manifest.segments[1]
    world.lose_side(1)
    segment = world.log.snapshot.segments[1]
    segment.mtime_ms += 1000 * HOUR  # as a copy of a directory has it
    spans = world.log.search.arrivals_between(3, 6)
    last_ms = row.last_arrival_ms
    assert spans[-1] == ArrivalSpan(6, last_ms, last_ms)
    assert {span.last_ms for span in spans} == {last_ms}


@pytest.mark.parametrize("is_start_last", [False, True])
def test_those_of_the_directory_begin_where_the_store_ends(*, is_start_last: bool) -> None:
    world = LoadedHistory()
    steps: list[Callable[[], object]] = [world.reopen, world.drop_all]
    for step in reversed(steps) if is_start_last else steps:
        step()
    segment = world.log.snapshot.segments[2]
    assert segment.base_offset == 6
    assert world.log.snapshot.first_local == 2
    world.env.fs.remove(segment.path_of(ZONES))
    segment.indexes, segment.verified = None, False  # it leaves the memory, too
    assert world.hours(6, 7, 8) == [5, 5, 5]
