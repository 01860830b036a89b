"""Search by time against a full scan, on thousands of logs: the rule is in docs/architecture.md.

By every clock, and ranges too. What a record's arrival is was read from the rows without a search.

`HOROLOG_MODEL_LOGS` says on how many (20,000 takes a minute); a failure names its seed.
"""

import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.search.search_clock import SearchClock
from storage.zones.rows import ARRIVAL_ESTIMATED
from tests.support.records.logs import append, first_from, open_log
from tests.support.records.time_logs import TimeLog, make_time_log

LOGS = int(os.environ.get("HOROLOG_MODEL_LOGS", "2000"))
PER_TEST = 250
QUESTIONS = 6


def found(
    log: TimeLog, timestamp: int, clock: SearchClock = SearchClock.RECORD
) -> tuple[int, int] | None:
    answer = log.log.search.first_at_or_after(timestamp, clock=clock)
    return None if answer is None else (answer.timestamp, answer.offset)


@pytest.mark.parametrize("first", range(0, LOGS, PER_TEST))
def test_every_answer_is_that_of_a_full_scan(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, LOGS)):
        log, dice = make_time_log(seed), random.Random(seed)
        asked = log.wanted_times(dice, QUESTIONS)
        for timestamp in asked:
            assert found(log, timestamp) == log.expected(timestamp), f"seed {seed}, {timestamp}"
        clock = dice.choice((SearchClock.ARRIVAL, SearchClock.EARLIER))
        times = log.by_clock(clock)
        for timestamp in (*asked, *(at + 1 for at, _ in times[:3])):
            expected = first_from(times, timestamp)
            assert found(log, timestamp, clock) == expected, f"seed {seed}, {clock}, {timestamp}"


@pytest.mark.parametrize("first", range(0, LOGS // 8, PER_TEST))
def test_ranges_hold_what_a_full_scan_finds(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, LOGS // 8)):
        log, dice = make_time_log(seed), random.Random(seed)
        for clock in SearchClock:
            times = log.by_clock(clock)
            edges = sorted(log.wanted_times(dice, 2) + [at + 1 for at, _ in times[:1]])
            low, high = dice.choice(edges), dice.choice(edges)
            inside = [offset for at, offset in times if low <= at < high]
            answer = log.log.search.range_between(low, high, clock=clock)
            ends = (inside[0], inside[-1]) if inside else (None, None)
            assert (answer.first_offset, answer.last_offset) == ends, f"seed {seed}, {clock}"
            assert answer.is_exact
            assert answer.records == len(inside), f"seed {seed}, {clock}, {low}, {high}"


@pytest.mark.parametrize("first", range(0, LOGS // 20, PER_TEST))
def test_arrivals_are_never_stated_too_early_and_late_by_a_zone_at_most(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, LOGS // 20)):
        log = make_time_log(seed)
        for zone, arrival in zip(log.zones(), log.arrivals, strict=True):
            if not zone.flags & ARRIVAL_ESTIMATED:
                assert zone.first_arrival_ms <= arrival <= zone.last_arrival_ms, f"seed {seed}"


@pytest.mark.parametrize("first", range(0, LOGS // 8, PER_TEST))
def test_the_largest_time_is_that_of_a_full_scan(first: int) -> None:
    for seed in range(first, min(first + PER_TEST, LOGS // 8)):
        log = make_time_log(seed)
        answer = log.log.search.first_with_largest()
        kept = [(at, offset) for at, offset in log.records if offset >= log.start_offset]
        largest = max((at for at, _ in kept), default=-1)
        expected = next(((at, o) for at, o in kept if at == largest >= 0), None)
        assert (answer and (answer.timestamp, answer.offset)) == expected, f"seed {seed}"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-1, 12) | st.just(2**62), min_size=1, max_size=4),
        min_size=1,
        max_size=20,
    ),
    st.integers(0, 14),
    st.sampled_from((0, 80, 100_000)),
    st.sampled_from((200, 400, 1_000_000)),
)
def test_small_logs_of_any_shape(
    batches: list[list[int]], timestamp: int, interval: int, segment_bytes: int
) -> None:
    log = open_log(index_interval_bytes=interval, segment_bytes=segment_bytes)
    records = []
    for times in batches:
        base = append(log, *times).base_offset
        records += [(at, base + index) for index, at in enumerate(times)]
    expected = next(((at, offset) for at, offset in records if at >= timestamp), None)
    answer = log.search.first_at_or_after(timestamp, below=len(records))
    assert (answer and (answer.timestamp, answer.offset)) == expected


def test_an_answer_that_may_not_be_fetched_yet_is_none() -> None:
    log = open_log()
    append(log, 1000)
    append(log, 2000)
    assert log.search.first_at_or_after(1500, below=2) is not None
    assert log.search.first_at_or_after(1500, below=1) is None
