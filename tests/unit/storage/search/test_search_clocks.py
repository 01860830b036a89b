"""Search by time at work: one zone is read however dirty the rest is, by each clock."""

import pytest

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.errors import CorruptLog
from storage.files.layout import LOG, ZONES
from storage.log.log import Log
from storage.search.search_clock import SearchClock
from storage.search.segment_access import NotInMemory
from storage.search.time_search import first_at_or_after
from storage.segment import zone_repair as zone_mend
from storage.zones.rows import ARRIVAL_ESTIMATED, ROW_BYTES, UNREAD, pack_row
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.clock_logs import (
    ARRIVAL,
    EARLIER,
    IN_2055,
    NOW,
    RECORD,
    SMALL_ZONES,
    VALUE,
    env_of,
    filled,
    fs_of,
    without_zones,
)
from tests.support.records.logs import append, append_bytes, make_durable, open_log, reopened


def scanned(log: Log, timestamp: int, clock: SearchClock) -> tuple[int | None, int]:
    """The offset found, and how many zones were read for it."""
    look = log.search.look()
    end = log.snapshot.high_watermark
    found = first_at_or_after(log.snapshot, look, timestamp, last_fetchable=end, clock=clock)
    return None if found is None else found.offset, look.scanned_zones


@pytest.mark.parametrize("clock", SearchClock)
@pytest.mark.parametrize("number", [0, 1, 130, 399])
def test_a_clean_log_answers_alike_by_every_clock_and_reads_one_zone(
    clock: SearchClock, number: int
) -> None:
    assert scanned(filled(400), NOW + 10 * number, clock) == (number, 1)


def test_one_record_of_2055_answers_every_search_by_record_time_and_none_by_the_earlier() -> None:
    log = filled(300, dirty=(0,))
    for number in (1, 50, 299):
        wanted = NOW + 10 * number
        assert scanned(log, wanted, RECORD) == (0, 1)
        assert scanned(log, wanted, EARLIER) == (number, 1)
        assert scanned(log, wanted, ARRIVAL) == (number, 1)
    assert log.search.first_at_or_after(NOW, clock=EARLIER) == (NOW, 0, 0), (
        "it counts as of its arrival"
    )


def test_however_dirty_the_rest_is_one_zone_is_read() -> None:
    log = filled(400, dirty=tuple(range(0, 400, 2)), horolog_time_index_entry="next")
    assert scanned(log, NOW + 10 * 201, EARLIER) == (201, 1)
    assert scanned(log, IN_2055, RECORD) == (0, 1)
    assert scanned(log, IN_2055, EARLIER) == (None, 0)
    make_durable(log)
    log.delete_records(101)
    assert scanned(log, IN_2055, RECORD) == (102, 1)
    assert scanned(log, NOW + 10 * 201, EARLIER) == (201, 1)


def test_old_times_that_come_late_are_found_by_what_is_earlier() -> None:
    log = filled(50)
    append(log, NOW + 100_000, value=VALUE)  # early by the sender's clock
    for number in range(50):
        append(log, NOW - 1000 + number, value=VALUE)  # a bootstrap
    assert scanned(log, NOW + 300, EARLIER) == (30, 1)
    assert scanned(log, NOW + 501, EARLIER) == (None, 0)
    assert scanned(log, NOW + 491, ARRIVAL) == (50, 1)
    assert scanned(log, NOW + 491, EARLIER) == (50, 1)


def test_records_without_time_count_as_of_their_arrival() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    append(log, NOW - 500, value=VALUE)
    env_of(log).advance(100)
    append(log, NOW - 400, -1, value=VALUE)
    env_of(log).advance(100)
    append(log, -1, value=VALUE)
    assert log.search.first_at_or_after(NOW, clock=RECORD) is None
    assert log.search.first_at_or_after(NOW, clock=EARLIER) == (NOW + 100, 2, 0)
    assert log.search.first_at_or_after(NOW + 101, clock=EARLIER) == (NOW + 200, 3, 0)
    assert log.search.first_at_or_after(NOW + 201, clock=EARLIER) is None


def test_within_a_zone_all_records_count_as_of_its_last_arrival() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)))
    for number in range(5):
        append(log, NOW - number)
        env_of(log).advance(10)
    assert log.search.first_at_or_after(NOW + 1, clock=ARRIVAL) == (NOW + 40, 0, 0)
    assert log.search.first_at_or_after(NOW + 40, clock=ARRIVAL) == (NOW + 40, 0, 0)
    assert log.search.first_at_or_after(NOW + 41, clock=ARRIVAL) is None


def test_a_stamp_is_an_exact_arrival() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), message_timestamp_type="LogAppendTime")
    for _ in range(5):
        append(log, 5)
        env_of(log).advance(10)
    for clock in SearchClock:
        assert log.search.first_at_or_after(NOW + 11, clock=clock) == (NOW + 20, 2, 0)


def test_a_future_time_is_found_where_the_broker_began_to_stamp() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)))
    append(log, NOW)
    append(log, IN_2055)
    settings = {name: getattr(log.config, name) for name in log.config.__slots__}
    log.reconfigure(type(log.config)(**{**settings, "message_timestamp_type": "LogAppendTime"}))
    append(log, 5)
    assert log.search.first_at_or_after(NOW + 1, clock=RECORD) == (IN_2055, 1, 0)
    assert log.search.first_at_or_after(NOW, clock=EARLIER) == (NOW, 0, 0)


def test_a_clock_that_went_back_hides_no_stamp() -> None:
    log = open_log(
        sim_env(clock=SimClock(NOW)), message_timestamp_type="LogAppendTime", **SMALL_ZONES
    )
    append(log, 5, value=VALUE)
    env_of(log).step(-1000)
    append(log, 5, value=VALUE)
    append(log, 5, value=VALUE)
    make_durable(log)
    log.delete_records(1)
    assert log.search.first_at_or_after(NOW - 1000, clock=RECORD) == (NOW - 1000, 1, 0)
    assert log.search.first_at_or_after(NOW - 999, clock=RECORD) is None
    assert log.search.first_at_or_after(NOW, clock=ARRIVAL) == (NOW, 1, 0), (
        "arrival does not go back"
    )


# --- zones that are not there, or not what they say ---


@pytest.mark.parametrize("keep_rows", [0, 1, 20])
@pytest.mark.parametrize("at_once", [0, 1 << 30])
def test_lost_zones_are_made_again_with_estimated_arrivals(
    keep_rows: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zone_mend, "MENDED_AT_ONCE", at_once)
    log = filled(60)
    log.roll()
    append(log, NOW + 700, value=VALUE)
    make_durable(log)
    log = without_zones(log, keep_rows=keep_rows)
    for number in (0, 7, 59):
        assert log.search.first_at_or_after(NOW + 10 * number, clock=RECORD) == (
            NOW + 10 * number,
            number,
            0,
        )
    rows = list(
        log.search.lookup[0]
        .of(log.snapshot.segments[0], log.snapshot.segments[0].size_bytes, log.search.lookup[1])
        .zones.zones()
    )
    assert bool(rows[-1].flags & UNREAD) == (not at_once)
    for clock in (ARRIVAL, EARLIER):
        for number in (0, 7, 59):
            assert log.search.first_at_or_after(NOW + 10 * number, clock=clock) == (
                NOW + 10 * number,
                number,
                0,
            )
    assert append(log, NOW + 800, value=VALUE).base_offset == 61
    assert log.search.first_at_or_after(NOW + 800, clock=EARLIER) is None, "it came before that"
    assert log.search.first_at_or_after(NOW + 800, clock=RECORD) == (NOW + 800, 61, 0)


def test_what_was_made_again_is_kept_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_mend, "MENDED_AT_ONCE", 0)
    log = filled(30)
    log.roll()
    make_durable(log)
    log = without_zones(log)
    assert log.search.first_at_or_after(NOW + 100, clock=ARRIVAL) == (NOW + 100, 10, 0)
    segment = log.snapshot.segments[0]
    size = len(fs_of(log).read_bytes(segment.path_of(ZONES)))
    assert size == 30 * ROW_BYTES
    indexes, rules = log.search.lookup
    assert all(
        zone.flags & ARRIVAL_ESTIMATED and not zone.flags & UNREAD
        for zone in indexes.of(segment, segment.size_bytes, rules).zones.zones()
    )


@pytest.mark.parametrize(("field", "off_by"), [(1, 1), (1, 5071), (0, 1)])
def test_a_row_that_leads_elsewhere_is_found_out(field: int, off_by: int) -> None:
    log = filled(30)
    log.roll()
    make_durable(log)
    log.close()
    path = log.snapshot.segments[0].path_of(ZONES)
    rows = fs_of(log).read_bytes(path)
    row = list(
        log.search.lookup[0].of(log.snapshot.segments[0], 1, log.search.lookup[1]).zones.zone(5)
    )
    row[field] += off_by
    begin = 5 * ROW_BYTES
    fs_of(log).write_atomically(
        path, rows[:begin] + pack_row(tuple(row)) + rows[begin + ROW_BYTES :]
    )
    log = reopened(log, log._appender._env)
    assert log.search.first_at_or_after(NOW) is not None
    for clock in SearchClock:
        assert log.search.first_at_or_after(NOW + 50, clock=clock) == (NOW + 50, 5, 0)
    assert log.search.lookup[0].rebuilt == 1


# --- without waiting ---


@pytest.mark.parametrize("clock", SearchClock)
def test_what_is_in_memory_is_answered_without_waiting(clock: SearchClock) -> None:
    log = filled(100, segment_bytes=100_000)
    asked = {"below": 100, "clock": clock, "may_wait": False}
    for number in (3, 99):
        found = log.search.first_at_or_after(NOW + 10 * number, **asked)
        assert found == (NOW + 10 * number, number, 0)
    log = reopened(log, log._appender._env)
    with pytest.raises(NotInMemory):
        log.search.first_at_or_after(NOW + 30, **asked)
    assert log.search.first_at_or_after(NOW + 30, clock=clock) == (NOW + 30, 3, 0)
    assert log.search.first_at_or_after(NOW + 30, **asked) == (NOW + 30, 3, 0)
    fs_of(log).cold_paths.add(log.snapshot.segments[0].path_of(LOG))
    with pytest.raises(NotInMemory):
        log.search.first_at_or_after(NOW + 30, **asked)
    assert log.search.first_at_or_after(NOW + 30, clock=clock) == (NOW + 30, 3, 0)


def test_the_largest_time_is_answered_without_waiting_too() -> None:
    log = filled(20)
    assert log.search.first_with_largest(may_wait=False) == (NOW + 190, 19, 0)
    log = reopened(log, log._appender._env)
    with pytest.raises(NotInMemory):
        log.search.first_with_largest(may_wait=False)


def test_the_largest_time_of_a_closed_segment_is_looked_for_once() -> None:
    log = filled(3)
    log.roll()
    append(log, NOW + 20)  # the largest time once more, later
    append(log, NOW + 10)
    log = reopened(log, log._appender._env)
    assert log.search.first_with_largest() == (NOW + 20, 2, 0)
    fs_of(log).cold_paths.add(log.snapshot.segments[0].path_of(LOG))
    assert log.search.first_with_largest(may_wait=False) == (NOW + 20, 2, 0)
    append(log, NOW + 700)
    assert log.search.first_with_largest(may_wait=False) == (NOW + 700, 5, 0)


def test_a_segment_that_the_log_start_cuts_has_its_largest_looked_for_again() -> None:
    log = filled(3)
    log.roll()
    append(log, NOW)
    assert log.search.first_with_largest() == (NOW + 20, 2, 0)
    log.mark_durable(log.sync())
    log.delete_records(3)
    assert log.search.first_with_largest() == (NOW, 3, 0)


@pytest.mark.parametrize(
    ("value", "is_quick"), [(bytes(1000), True), (bytes(3_000_000), False)], ids=["small", "bomb"]
)
def test_what_takes_long_to_unpack_waits_for_a_lane(value: bytes, is_quick: bool) -> None:
    log = open_log(sim_env(clock=SimClock(NOW)))
    append_bytes(log, build_batch([(NOW, None, value)], codec=Codec.GZIP))
    try:
        found = log.search.first_at_or_after(NOW, below=1, may_wait=False)
    except NotInMemory:
        found = None
    assert (found is not None) == is_quick
    assert log.search.first_at_or_after(NOW) == (NOW, 0, 0)


def test_a_search_that_reads_much_is_not_done_without_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = filled(10)
    monkeypatch.setattr("storage.search.segment_access.QUICK_BYTES", 1000)
    with pytest.raises(NotInMemory):
        log.search.first_at_or_after(NOW, below=10, may_wait=False)


def test_damage_is_told_as_before() -> None:
    log = filled(3)
    fs_of(log).open(log.snapshot.active.path_of(LOG)).write_at(100, b"\xff\xff")
    with pytest.raises(CorruptLog):
        log.search.first_at_or_after(NOW)
