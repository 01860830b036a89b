"""The oldest unfinished record by record time, compared with a walk over all records."""

import random
from collections.abc import Sequence

import pytest

from storage.log.log import Log
from storage.search.oldest_time import OldestTime, UnfinishedOffsets
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.clock_logs import NOW, SMALL_ZONES, filled
from tests.support.records.logs import append, make_durable, open_log, records_of, reopened

SEEDS, MANY = range(60), 10_000
Ranges = Sequence[tuple[int, int]]


def unfinished(first: int, *finished: tuple[int, int]) -> UnfinishedOffsets:
    end = finished[-1][1] + 1 if finished else first
    return UnfinishedOffsets(first, end, lambda: finished)


def walked(log: Log, first: int, finished: Ranges) -> int | None:
    """The model."""
    times = (
        record.timestamp
        for record in records_of(log)
        if record.offset >= first and record.timestamp >= 0
        if not any(low <= record.offset <= high for low, high in finished)
    )
    return min(times, default=None)


def disordered(dice: random.Random) -> Log:
    """Some segments of small zones; batches of several records, some packed, some untimed."""
    segment = dice.choice((20_000, 1 << 30))
    settings = {**SMALL_ZONES, "segment_bytes": segment, "index_interval_bytes": 4096}
    log = open_log(sim_env(clock=SimClock(NOW)), **settings)
    for _ in range(dice.randrange(1, 60)):
        times = [
            -1 if dice.random() < 0.1 else NOW - dice.randrange(100_000)
            for _ in range(dice.randrange(1, 6))
        ]
        append(log, *times, value=bytes(dice.randrange(1, 2500)))
    return log


def finished_of(dice: random.Random, first: int, end: int) -> list[tuple[int, int]]:
    found, at = [], first + 1
    while at < end and dice.random() < 0.9:
        low = dice.randrange(at, end)
        high = min(low + dice.randrange(8), end - 1)
        found.append((low, high))
        at = high + 2
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_it_is_what_a_walk_finds(seed: int) -> None:
    dice = random.Random(seed)
    log = disordered(dice)
    end = log.snapshot.log_end_offset
    for _ in range(8):
        first = dice.randrange(end)
        finished = finished_of(dice, first, end)
        right = walked(log, first, finished)
        wanted = unfinished(first, *finished)
        found = log.search.oldest_time(wanted, MANY)
        assert found == OldestTime(right, is_exact=True)
        bound = log.search.oldest_time(wanted, 0)
        assert bound.record_ms == right or not bound.is_exact
        assert right is None or (bound.record_ms is not None and bound.record_ms <= right)


def test_only_zones_with_finished_records_are_read() -> None:
    """Zone by zone a record, the younger the further behind: the first ones are the oldest."""
    log = filled(100)
    found = log.search.oldest_time(unfinished(10, (12, 20)), 0)
    assert found == OldestTime(NOW + 100, is_exact=True)
    found = log.search.oldest_time(unfinished(20), 0)
    assert found == OldestTime(NOW + 200, is_exact=True)


def test_a_bound_is_said_to_be_one() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    append(log, NOW - 50, NOW - 90, NOW - 70)
    append(log, NOW, value=bytes(5000))
    wanted = unfinished(0, (1, 1))
    assert log.search.oldest_time(wanted, 0) == OldestTime(NOW - 90, is_exact=False)
    assert log.search.oldest_time(wanted, 1) == OldestTime(NOW - 70, is_exact=True)


def test_least_times_of_closed_segments_are_remembered() -> None:
    """After a start nothing of them is in memory: until someone waits for it they are left out."""
    log = filled(40, segment_bytes=60_000, index_interval_bytes=4096)
    assert len(log.snapshot.segments) > 2
    make_durable(log)
    again = reopened(log, log._appender._env)
    cold = again.search.oldest_time(unfinished(0), 0, may_wait=False)
    assert not cold.is_exact
    assert again.search.oldest_time(unfinished(0), 0).record_ms == NOW
    closed = again.snapshot.segments[:-1]
    assert [each.least_timestamp for each in closed] == [
        NOW + 10 * each.base_offset for each in closed
    ]
    again.search.forget(closed[0])
    warm = again.search.oldest_time(unfinished(0), 0, may_wait=False)
    assert warm == OldestTime(NOW, is_exact=True)


@pytest.mark.parametrize("at_first", [0, 1])
def test_a_bound_is_not_remembered_as_the_least_time_of_a_segment(at_first: int) -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    for number in range(3):  # a zone each, with a time before 1970, which is none
        append(log, NOW - 100 + number, -5, value=bytes(5000))
    log.roll()
    append(log, NOW)
    make_durable(log)
    assert not log.search.oldest_time(unfinished(0), at_first).is_exact
    assert log.search.oldest_time(unfinished(0), 256) == OldestTime(NOW - 100, is_exact=True)


def test_a_segment_that_a_bound_made_pass_unread_is_read_when_there_is_time() -> None:
    log = open_log(sim_env(clock=SimClock(NOW)), **SMALL_ZONES)
    for at, none in ((NOW - 200, -3), (NOW - 100, -5)):
        append(log, at, none)
        log.roll()
    append(log, NOW)
    make_durable(log)
    assert log.search.oldest_time(unfinished(0), 0) == OldestTime(-5, is_exact=False)
    assert log.snapshot.segments[0].least_timestamp is None
    assert log.search.oldest_time(unfinished(0), 256) == OldestTime(NOW - 200, is_exact=True)


def test_times_of_the_broker_are_bounded_by_arrivals() -> None:
    log = filled(20, message_timestamp_type="LogAppendTime")
    found = log.search.oldest_time(unfinished(5), 0)
    assert found.record_ms is not None
    assert NOW + 40 <= found.record_ms <= NOW + 60
