"""Arrivals of ranges of offsets, zone by zone; what is estimated is the latest possible."""

import pytest

from storage.search.segment_access import NotInMemory
from tests.support.records.clock_logs import NOW, VALUE, env_of, filled, without_zones
from tests.support.records.logs import append


def test_each_zone_of_the_range_says_when_it_came() -> None:
    log = filled(20)
    found = log.search.arrivals_between(5, 8)
    assert found == [(6, NOW + 50, NOW + 50), (7, NOW + 60, NOW + 60), (8, NOW + 70, NOW + 70)]
    assert log.search.arrivals_between(5, 8, may_wait=False) == found
    assert log.search.arrivals_between(19, 20) == [(20, NOW + 190, NOW + 190)]


def test_ranges_reach_over_segments() -> None:
    log = filled(20, segment_bytes=25_000)
    assert len(log.snapshot.segments) > 2
    found = log.search.arrivals_between(0, 20)
    assert [each.end_offset for each in found] == list(range(1, 21))
    assert [each.last_ms for each in found] == [NOW + 10 * number for number in range(20)]


def test_an_estimate_is_the_begin_of_what_is_known_or_the_last_write() -> None:
    log = without_zones(filled(10), keep_rows=4)
    ends = {each.end_offset: each.last_ms for each in log.search.arrivals_between(0, 10)}
    assert ends[4] == NOW + 30
    assert ends[8] == log.snapshot.active.mtime_ms >= NOW + 90
    env_of(log).advance(100_000)
    for _ in range(3):
        append(log, NOW, value=VALUE)
    ends = {each.end_offset: each.last_ms for each in log.search.arrivals_between(0, 13)}
    assert all(ends[end] >= NOW + 10 * (end - 1) for end in range(1, 11)), "never before it came"
    assert ends[8] == env_of(log).now_ms()


def test_what_is_not_in_memory_takes_a_lane() -> None:
    log = without_zones(filled(10))
    with pytest.raises(NotInMemory):
        log.search.arrivals_between(0, 10, may_wait=False)
    assert log.search.arrivals_between(0, 10)[-1].end_offset == 10
