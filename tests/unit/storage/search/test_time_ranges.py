"""Ranges, delays and lags: what the rows prove is not read, and what is not known is told."""

import pytest

from storage.log.log import Log
from storage.search import time_range
from storage.search.search_clock import SearchClock
from storage.search.segment_access import NotInMemory
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
    without_zones,
)
from tests.support.records.logs import append, make_durable, open_log, reopened


@pytest.mark.parametrize("clock", SearchClock)
def test_zones_inside_are_counted_from_their_rows(clock: SearchClock) -> None:
    log = filled(400)
    found = log.search.range_between(NOW + 500, NOW + 3500, clock=clock)
    assert (found.first_offset, found.last_offset, found.records) == (50, 349, 300)
    assert found.is_exact
    assert (found.zones_counted, found.zones_scanned) == (300, 0)


def test_only_zones_at_an_edge_are_read() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    for number in range(100):
        append(log, *(NOW + 10 * number + step for step in range(5)), value=bytes(1000))
    found = log.search.range_between(NOW + 502, NOW + 803)
    assert (found.first_offset, found.last_offset, found.records) == (252, 402, 151)
    assert (found.zones_counted, found.zones_scanned) == (29, 2)


def test_a_dirty_record_is_in_no_range_but_its_own() -> None:
    log = filled(100, dirty=(10, 20))
    assert log.search.range_between(NOW, NOW + 300).records == 28
    far = log.search.range_between(IN_2055, IN_2055 + 1)
    assert (far.first_offset, far.last_offset, far.records) == (10, 20, 2)
    by_earlier = log.search.range_between(NOW, NOW + 300, clock=EARLIER)
    assert (by_earlier.first_offset, by_earlier.records) == (0, 30)


@pytest.mark.parametrize("clock", SearchClock)
def test_emptiness_is_proved_without_reading(clock: SearchClock) -> None:
    log = filled(100)
    for low, high in ((0, NOW), (NOW + 1, NOW + 10), (NOW + 1000, IN_2055), (NOW + 50, NOW + 50)):
        found = log.search.range_between(low, high, clock=clock)
        assert found.is_empty
        assert (found.first_offset, found.zones_counted, found.zones_scanned) == (None, 0, 0)


def test_neighbouring_ranges_part_a_log_without_rest() -> None:
    log = filled(100, dirty=(3, 60))
    for clock in SearchClock:
        parts = [
            log.search.range_between(NOW + at, NOW + at + 77, clock=clock).records
            for at in range(0, 1001, 77)
        ]
        assert (
            sum(parts) == log.search.range_between(NOW, NOW + 77 * len(parts), clock=clock).records
        )


def test_what_may_not_be_fetched_or_was_deleted_does_not_count() -> None:
    log = filled(50)
    make_durable(log)
    log.delete_records(5)
    found = log.search.range_between(0, IN_2055, below=40)
    assert (found.first_offset, found.last_offset, found.records) == (5, 39, 35)


def test_records_that_an_edge_may_have_parted_are_told() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)))
    for _ in range(5):
        append(log, NOW)
        env_of(log).advance(100)  # all in one zone: it came between NOW and NOW + 400
    found = log.search.range_between(NOW, NOW + 200, clock=ARRIVAL)
    assert (found.records, found.undecided) == (0, 5)
    found = log.search.range_between(NOW + 200, NOW + 500, clock=ARRIVAL)
    assert (found.records, found.undecided) == (5, 5)
    assert log.search.range_between(NOW, NOW + 500, clock=ARRIVAL).undecided == 0
    assert log.search.range_between(NOW, NOW + 200, clock=RECORD).undecided == 0


def test_estimated_arrivals_are_told() -> None:
    log = filled(20)
    log.roll()
    append(log, NOW + 300, value=VALUE)
    make_durable(log)
    log = without_zones(log, keep_rows=0)
    found = log.search.range_between(NOW, IN_2055, clock=ARRIVAL)
    assert (found.records, found.estimated) == (21, 21)
    assert log.search.range_between(NOW, IN_2055, clock=RECORD).estimated == 0


def test_a_question_that_would_read_too_much_gets_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    for _ in range(100):
        append(log, NOW, NOW + 50, NOW + 100, NOW + 150, NOW + 200, value=bytes(1000))
    assert log.search.range_between(NOW + 1, NOW + 120).records == 200
    monkeypatch.setattr(time_range, "SCANNED_BYTES", 20_000)
    found = log.search.range_between(NOW + 1, NOW + 120)
    assert not found.is_exact
    assert (
        0
        < found.records
        <= 200
        <= found.records_at_most
        == found.records + 5 * (100 - found.zones_scanned)
    )
    assert found.first_offset == 1
    assert found.last_offset == 499, "no record behind it is in the range"


@pytest.mark.parametrize("clock", SearchClock)
def test_ranges_of_stamped_logs_are_counted_from_rows(clock: SearchClock) -> None:
    log = filled(100, message_timestamp_type="LogAppendTime")
    found = log.search.range_between(NOW + 200, NOW + 500, clock=clock)
    assert (found.first_offset, found.last_offset, found.records) == (20, 49, 30)
    assert (found.zones_counted, found.zones_scanned) == (30, 0)


# --- delays ---


def by_bucket(log: Log) -> dict[int | None, tuple[int, int]]:
    return {
        bucket.up_to_ms: (bucket.records_by_least, bucket.records_by_most)
        for bucket in log.search.skew().buckets
        if bucket.records_by_least or bucket.records_by_most
    }


def test_delays_are_told_within_bounds() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    append(log, NOW - 5, NOW - 70, value=VALUE)
    append(log, NOW - 90_000, value=VALUE)
    append(log, IN_2055, value=VALUE)
    append(log, -1, value=VALUE)
    assert by_bucket(log) == {10: (2, 0), 100: (0, 2), 600_000: (1, 1), -604_800_000: (1, 1)}
    told = log.search.skew()
    assert (told.records, told.unknown_records) == (4, 1)
    assert (told.least_ms, told.most_ms) == (NOW - IN_2055, 90_000)
    assert (told.earliest_zone_offset, told.latest_zone_offset) == (3, 2)


def test_delays_of_stamped_topics_are_those_of_the_claimed_times() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), message_timestamp_type="LogAppendTime")
    append(log, NOW - 5000)
    assert by_bucket(log) == {10_000: (1, 1)}


def test_delays_of_an_empty_log_and_of_deleted_records() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)))
    assert (log.search.skew().records, log.search.skew().least_ms) == (0, None)
    append(log, NOW)
    make_durable(log)
    log.delete_records(1)
    assert log.search.skew().records == 0


# --- lag ---


def test_lag_is_told_by_both_clocks() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    append(log, NOW - 60_000, value=VALUE)
    env_of(log).advance(3000)
    append(log, NOW - 20_000, value=VALUE)
    env_of(log).advance(4000)
    append(log, NOW - 10_000, value=VALUE)
    assert [tuple(log.search.lag_at(offset)) for offset in range(4)] == [
        (3, 50_000, 7000),
        (2, 10_000, 4000),
        (1, 0, 0),
        (0, 0, 0),
    ]
    assert tuple(log.search.lag_at(0, below=2)) == (2, 40_000, 3000)


def test_arrivals_within_a_zone_lie_on_a_straight_line() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)))
    for _ in range(11):
        append(log, -1)
        env_of(log).advance(100)
    assert [log.search.lag_at(offset).arrival_ms for offset in (0, 3, 10, 11)] == [1000, 700, 0, 0]
    assert log.search.lag_at(0).record_ms is None


def test_a_broken_clock_makes_no_negative_lag() -> None:
    log = filled(10, dirty=(5,))
    assert log.search.lag_at(5).record_ms == 0
    assert log.search.lag_at(5).arrival_ms == 40


def test_lag_counts_from_the_log_start() -> None:
    log = filled(10)
    make_durable(log)
    log.delete_records(4)
    assert tuple(log.search.lag_at(0)) == tuple(log.search.lag_at(4)) == (6, 50, 50)


def test_lag_is_told_from_memory_or_not_at_all() -> None:
    log = filled(10)
    assert log.search.lag_at(3, may_wait=False) == log.search.lag_at(3)
    log = reopened(log, log._appender._env)
    with pytest.raises(NotInMemory):
        log.search.lag_at(3, may_wait=False)


def test_both_times_of_an_offset() -> None:
    log = filled(10, dirty=(5,))
    assert log.search.times_at(5) == (5, IN_2055, NOW + 50, False)
    assert log.search.times_at(10) is None
    stamped = open_log(sim_env(clock=SimClock(NOW)), message_timestamp_type="LogAppendTime")
    append(stamped, 5, 6)
    assert stamped.search.times_at(1) == (1, NOW, NOW, False)
