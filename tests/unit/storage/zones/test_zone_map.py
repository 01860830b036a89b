"""The zone map: when zones close, what their rows say, and what a search may trust."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from storage.timestamps import INT64_MAX
from storage.zones.rows import LIFTED
from storage.zones.zone_map import (
    ARRIVAL_ESTIMATED,
    DIRTY_FUTURE,
    LOG_APPEND_TIME,
    ROW_BYTES,
    UNREAD,
    UNTIMED,
    Zone,
    ZoneMap,
    estimate_arrival,
)
from tests.support.disk.simdisk import SimFileSystem

PATH = "/00000000000000001000.zones"
BASE = 1000


def new_map(fs: SimFileSystem | None = None, arrival_floor_ms: int = 0) -> ZoneMap:
    zones = reopened(fs or SimFileSystem(), arrival_floor_ms)
    zones.reset()
    return zones


def reopened(fs: SimFileSystem, arrival_floor_ms: int = 0) -> ZoneMap:
    return ZoneMap(fs, PATH, BASE, arrival_floor_ms=arrival_floor_ms)


def add(
    zones: ZoneMap, number: int, *, size: int = 1000, at: int = 0, flags: int = 0,
    times: tuple[int, int] | None = None,
) -> None:  # fmt: skip
    """Batch `number` of ten records in batches of `size` bytes; times 100 a batch unless given."""
    low, high = times or (number * 100, number * 100 + 9)
    zones.add(BASE + number * 10, number * size, size, 10, low, high, at, flags)


def test_a_row_is_written_as_the_format_says() -> None:
    fs = SimFileSystem()
    zones = new_map(fs)
    zones.add(1003, 512, 700, 5, 100, 180, 5000, DIRTY_FUTURE)
    zones.add(1008, 1212, 300, 2, 90, 120, 5500, UNTIMED)
    zones.close_zone()
    zones.flush()
    row = struct.pack(">iiiiqqqq", 3, 512, 7, UNTIMED | DIRTY_FUTURE, 90, 180, 5000, 5500)
    assert fs.read_bytes(PATH) == row + struct.pack(">I", crc32c(row))
    assert ROW_BYTES == len(fs.read_bytes(PATH)) == 52


def test_a_zone_closes_at_its_size() -> None:
    zones = new_map()
    for number in range(65):
        add(zones, number)
    assert zones.row_count == 0
    add(zones, 65)
    assert zones.row_count == 1
    assert zones.open_zone is None
    assert zones.zone(0) == Zone(BASE, 0, 660, 0, 0, 6509, 0, 0)


def test_a_zone_with_4_kib_closes_once_a_second_of_arrival_has_passed() -> None:
    zones = new_map()
    for number in range(5):
        add(zones, number, at=10_000)
    add(zones, 5, at=10_999)
    assert zones.row_count == 0
    add(zones, 6, at=11_000)
    assert zones.row_count == 1
    assert zones.zone(0).last_arrival_ms == 10_999
    assert zones.open_zone is not None
    assert zones.open_zone.first_offset == BASE + 60


def test_a_small_zone_stays_open_however_long() -> None:
    zones = new_map()
    for number in range(5):
        add(zones, number, size=819, at=number * 100_000)  # 4095 bytes
    assert zones.row_count == 0


def test_arrival_never_runs_backwards() -> None:
    zones = new_map(arrival_floor_ms=5000)
    add(zones, 0, at=4000)
    add(zones, 1, at=6000)
    add(zones, 2, at=5500)
    assert zones.open_zone is not None
    assert (zones.open_zone.first_arrival_ms, zones.open_zone.last_arrival_ms) == (5000, 6000)
    assert zones.last_arrival_ms == 6000


def test_batches_without_time_leave_the_bounds_alone() -> None:
    zones = new_map()
    add(zones, 0, times=(-1, -1), flags=UNTIMED)
    assert zones.open_zone is not None
    assert zones.open_zone[4:6] == (-1, -1)
    add(zones, 1, times=(50, 60))
    add(zones, 2, times=(-1, -1))
    assert zones.open_zone[4:6] == (50, 60)
    add(zones, 3, times=(-70, 10))
    assert zones.open_zone[4:6] == (-70, 60)


def test_an_index_that_is_closed_lives_on_in_its_file() -> None:
    fs = SimFileSystem()
    zones = new_map(fs)
    for number in range(200):
        add(zones, number, at=number)
    zones.close_zone()
    expected = list(zones.zones())
    zones.unload()
    again = reopened(fs)
    assert again.check() is None
    assert list(again.zones()) == list(zones.zones()) == expected
    assert again.last_arrival_ms == 199
    assert again.resume_point() == (expected[-1].position, expected[-1].record_count)
    with pytest.raises(IndexError):
        again.zone(len(expected))


def test_an_unloaded_map_goes_on_where_it_was() -> None:
    fs = SimFileSystem()
    zones = new_map(fs)
    add(zones, 0, size=70_000, at=77)
    zones.unload()
    zones.add(BASE + 10, 70_000, 100, 1, 1, 1, 50)
    zones.close_zone()
    zones.flush()
    assert [zone.first_arrival_ms for zone in reopened(fs).zones()] == [77, 77]


def three_rows(fs: SimFileSystem) -> None:
    zones = new_map(fs)
    for number in range(3):
        add(zones, number, size=70_000, at=number * 10)
    zones.flush()


@pytest.mark.parametrize(
    ("row", "byte"), [(0, 0), (1, 20), (2, 51), (1, 48)], ids=["first", "time", "crc", "crc too"]
)
def test_a_bad_row_ends_what_can_be_trusted(row: int, byte: int) -> None:
    fs = SimFileSystem()
    three_rows(fs)
    file = fs.open(PATH)
    place = row * ROW_BYTES + byte
    file.write_at(place, bytes([file.read_at(place, 1)[0] ^ 0x40]))
    zones = reopened(fs)
    damage = zones.check()
    assert damage is not None
    assert f"row {row}" in damage
    assert zones.row_count == row
    zones.add(BASE + row * 10, row * 70_000, 70_000, 10, 1, 2, 99, ARRIVAL_ESTIMATED)
    zones.flush()
    again = reopened(fs)
    assert again.check() is None
    assert again.row_count == row + 1
    assert again.zone(row).flags == ARRIVAL_ESTIMATED


def test_a_torn_last_row_is_dropped_and_told() -> None:
    fs = SimFileSystem()
    three_rows(fs)
    fs.open(PATH).truncate(2 * ROW_BYTES + 30)
    zones = reopened(fs)
    assert zones.check() is not None
    assert zones.row_count == 2


def test_a_row_that_runs_backwards_is_not_believed() -> None:
    fs = SimFileSystem()
    three_rows(fs)
    data = fs.read_bytes(PATH)
    fs.write_atomically(PATH, data + data[:ROW_BYTES])
    zones = reopened(fs)
    assert "backwards" in (zones.check() or "")
    assert zones.row_count == 3


def test_a_missing_file_is_a_map_without_zones() -> None:
    zones = reopened(SimFileSystem(), arrival_floor_ms=7)
    assert zones.check() is None
    assert list(zones.zones()) == []
    assert zones.resume_point() == (0, 0)
    assert zones.last_arrival_ms == 7


def test_a_map_without_zones_still_gets_its_file() -> None:
    fs = SimFileSystem()
    new_map(fs).flush()
    assert fs.read_bytes(PATH) == b""


def test_truncation_drops_zones_that_reach_past_the_cut() -> None:
    fs = SimFileSystem()
    three_rows(fs)  # offsets 1000-1009, 1010-1019, 1020-1029
    zones = reopened(fs)
    zones.truncate_to(1030)
    assert zones.row_count == 3
    zones.truncate_to(1025)
    assert zones.row_count == 2
    assert zones.resume_point() == (70_000, 10)
    zones.truncate_to(1010)
    assert zones.row_count == 1
    assert len(fs.read_bytes(PATH)) == ROW_BYTES
    zones.truncate_to(0)
    assert zones.row_count == 0


def places(
    zones: ZoneMap, low: int, high: int = INT64_MAX, first: int = 0, flags: int = 0
) -> list[int]:
    """First offsets, less the base, of the zones that may hold such a time."""
    view, found = zones.view(), []
    index = view.next_between(first, low, high, flags)
    while index < view.total:
        found.append(view.zone(index).first_offset - BASE)
        index = view.next_between(index + 1, low, high, flags)
    return found


def test_one_dirty_time_costs_one_zone() -> None:
    zones = new_map()
    for number in range(10):
        dirty = (2**62, 2**62) if number == 3 else None
        add(zones, number, size=70_000, times=dirty)
    assert places(zones, 800) == [30, 80, 90]
    assert places(zones, 400, 599) == [40, 50]
    assert places(zones, 800, first=4) == [80, 90]


def test_the_zone_of_a_position_and_of_an_offset() -> None:
    zones = new_map()
    for number in range(5):
        add(zones, number, size=70_000)
    zones.add(BASE + 50, 350_000, 10, 4, 0, 0, 0)  # still open
    view = zones.view()
    assert [view.holding_position(at) for at in (0, 69_999, 70_000, 349_999, 350_000)] == [
        0, 0, 1, 4, 5
    ]  # fmt: skip
    assert [view.holding_offset(BASE + at) for at in (-5, 0, 9, 10, 49, 50, 99)] == [
        0, 0, 0, 1, 4, 5, 5
    ]  # fmt: skip
    assert [view.end_position(index, 350_010) for index in (0, 4, 5)] == [70_000, 350_000, 350_010]
    assert [view.is_dense(index, BASE + end) for index, end in ((4, 54), (5, 54), (5, 55))] == [
        True, True, False
    ]  # fmt: skip


def test_arrival_leads_to_the_zone_in_which_it_falls() -> None:
    zones = new_map()
    for number in range(6):
        add(zones, number, size=40_000, at=number * 100)  # two batches a zone
    zones.add(BASE + 60, 240_000, 10, 1, 0, 0, 600)  # still open
    view = zones.view()
    assert [view.arrived_from(at) for at in (0, 100, 101, 300, 500, 501, 600, 601)] == [
        0, 0, 1, 1, 2, 3, 3, 4
    ]  # fmt: skip
    zones.close_zone()
    assert [zones.view().arrived_from(at) for at in (501, 600, 601)] == [3, 3, 4]


def test_stamped_batches_have_zones_of_their_own_whose_times_are_their_arrivals() -> None:
    zones = new_map()
    add(zones, 0, at=1000, times=(50, 60))
    add(zones, 1, at=2000, times=(1, 9000), flags=LOG_APPEND_TIME)
    add(zones, 2, at=3000, times=(1, 9000), flags=LOG_APPEND_TIME)
    add(zones, 3, at=4000, times=(70, 80))
    assert [zone.flags & LOG_APPEND_TIME for zone in zones.zones()] == [0, LOG_APPEND_TIME, 0]
    assert places(zones, 2500, 2600) == [10]
    assert places(zones, 3001) == []
    assert places(zones, 1, 1999) == [0, 30]


def test_stamps_that_the_clock_took_back_are_not_hidden() -> None:
    zones = new_map(arrival_floor_ms=5000)
    add(zones, 0, size=70_000, at=4000, flags=LOG_APPEND_TIME)
    add(zones, 1, size=70_000, at=6000, flags=LOG_APPEND_TIME)
    assert [zone.flags & LIFTED for zone in zones.zones()] == [LIFTED, 0]
    assert places(zones, 4000, 4000) == [0]
    estimated = LOG_APPEND_TIME | ARRIVAL_ESTIMATED
    zones.add(BASE + 20, 140_000, 70_000, 1, 0, 0, 7000, estimated)
    assert places(zones, 4000, 4000) == [0, 20]
    assert places(zones, 8000) == [20]


def test_what_nobody_looked_into_may_hold_any_time() -> None:
    fs = SimFileSystem()
    zones = new_map(fs)
    add(zones, 0, size=70_000, at=10)
    zones.add_unread(BASE + 10, 70_000, BASE + 5000, 99)
    zones.add(BASE + 5000, 900_000, 70_000, 1, 7, 7, 50)
    assert places(zones, 2**60) == [10]
    assert places(zones, 0, 0) == [0, 10]
    zones.flush()
    unread = reopened(fs).zone(1)
    assert (unread.record_count, unread.first_arrival_ms, unread.last_arrival_ms) == (4990, 99, 99)
    assert unread.flags & (UNREAD | ARRIVAL_ESTIMATED | UNTIMED) == unread.flags
    assert [zone.last_arrival_ms for zone in zones.zones()] == [10, 99, 99]


def test_zones_with_a_flag_may_be_asked_for_whatever_their_times() -> None:
    zones = new_map()
    for number in range(300):
        add(zones, number, size=70_000, flags=UNTIMED if number in {5, 200, 299} else 0)
    assert places(zones, 2**40, flags=UNTIMED) == [50, 2000, 2990]
    assert zones.view().has_flags(UNTIMED)
    assert not zones.view().has_flags(LOG_APPEND_TIME)


def test_a_lost_arrival_is_estimated_between_its_bounds() -> None:
    assert estimate_arrival(50, 10, 100) == 50
    assert estimate_arrival(5, 10, 100) == 10
    assert estimate_arrival(2**62, 10, 100) == 100
    assert estimate_arrival(-1, 10, 100) == 100
    assert estimate_arrival(50, 100, 10) == 100, "arrival never runs backwards"


batches = st.lists(
    st.tuples(
        st.integers(1, 40_000),  # size
        st.integers(1, 50),  # records
        st.integers(-1, 5000),  # time
        st.integers(0, 800),  # spread of the times
        st.integers(-500, 3000),  # arrival step
    ),
    min_size=1,
    max_size=60,
)


@given(batches, st.integers(-1, 6000), st.integers(0, 20_000))
def test_no_zone_hides_what_lies_in_it(
    sizes: list[tuple[int, int, int, int, int]], wanted: int, came_from: int
) -> None:
    fs = SimFileSystem()
    zones = new_map(fs)
    offset, position, arrival, last = BASE, 0, 10_000, 0
    log = []
    for size, count, low, spread, step in sizes:
        arrival += step
        last = max(last, arrival)
        high = low + spread if low >= 0 else -1
        zones.add(offset, position, size, count, low, high, arrival)
        log.append((offset, position, high, last))
        offset, position = offset + count, position + size
    written = list(zones.zones())
    zones.close_zone()
    zones.flush()
    assert list(reopened(fs).zones()) == written
    assert sum(zone.record_count for zone in written) == offset - BASE
    view = zones.view()
    starts = [zone.position for zone in written]
    hit = {zone.position for zone in written if zone.first_offset - BASE in places(zones, wanted)}
    for batch in log:
        home = max(start for start in starts if start <= batch[1])
        assert batch[2] < wanted or home in hit
        assert batch[3] < came_from or starts.index(home) >= view.arrived_from(came_from)


@given(
    st.lists(st.tuples(st.integers(-1, 40), st.integers(0, 3)), min_size=1, max_size=400),
    st.integers(-1, 45),
    st.integers(-1, 45),
    st.integers(0, 400),
)
def test_a_search_through_many_zones_is_that_of_a_list(
    rows: list[tuple[int, int]], low: int, high: int, first: int
) -> None:
    fs = SimFileSystem()
    zones = new_map(fs)
    for number, (at, flags) in enumerate(rows):
        zones.add(BASE + number, number * 70_000, 70_000, 1, at, at, 0, flags & UNTIMED)
    zones.flush()
    expected = [
        number
        for number, (at, flags) in enumerate(rows)
        if number >= first and (low <= at <= high or flags & UNTIMED)
    ]
    assert places(zones, low, high, first, UNTIMED) == expected
    assert places(reopened(fs), low, high, first, UNTIMED) == expected
