"""KIP-33's text: a closed segment without times has its modification time (time.md 8)."""

import pytest

from storage.layout import TIME_INDEX
from storage.log import Log
from storage.log_times import lookup
from tests.support.clock_logs import NOW, env_of, fs_of
from tests.support.logs import append, make_durable, open_log, reopened
from tests.support.simenv import SimClock, sim_env

DAY_MS = 86_400_000


def entries(log: Log, segment: int) -> list[tuple[int, int]]:
    """Of a closed segment's time index file."""
    data = fs_of(log).read_bytes(log.snapshot.segments[segment].path_of(TIME_INDEX))
    base = log.snapshot.segments[segment].base_offset
    rows = [data[at : at + 12] for at in range(0, len(data), 12)]
    return [(int.from_bytes(r[:8], "big"), base + int.from_bytes(r[8:], "big")) for r in rows]


def untimed(meaning: str) -> Log:
    """Two records without a time in a closed segment, then one with a time."""
    log = open_log(sim_env(clock=SimClock(NOW)), horolog_time_index_entry=meaning)
    append(log, -1)
    append(log, -1)
    env_of(log).advance(DAY_MS)
    log.roll()
    append(log, 5000)
    make_durable(log)
    return log


@pytest.mark.parametrize(("meaning", "expected"), [("next", [(NOW, 2)]), ("max", [])])
def test_the_entry_is_written_when_the_segment_is_closed(
    meaning: str, expected: list[tuple[int, int]]
) -> None:
    assert entries(untimed(meaning), 0) == expected


def test_the_entry_is_no_record_time_for_anybody() -> None:
    log = untimed("next")
    for each in (log, reopened(log, log._appender._env)):
        assert lookup(each, 1) == (5000, 2, 0)
        assert lookup(each, 5001) is None
        assert each.max_timestamp_offset() == (5000, 2, 0)


def test_a_start_believes_the_entry_and_a_rebuild_writes_it_again() -> None:
    log = untimed("next")
    env = log._appender._env
    log = reopened(log, env)
    assert lookup(log, 1) == (5000, 2, 0)
    assert log.lookup[0].rebuilt == 0
    assert log.snapshot.segments[0].max_timestamp == -1
    log.close()
    fs_of(log).remove(log.snapshot.segments[0].path_of(TIME_INDEX))
    log = reopened(log, env)
    assert entries(log, 0) == [(NOW, 2)]


def test_a_segment_that_takes_appends_again_forgets_the_entry() -> None:
    log = open_log(
        sim_env(clock=SimClock(NOW)), horolog_time_index_entry="next", index_interval_bytes=0
    )
    append(log, -1)
    log = reopened(log, log._appender._env)
    for at in (10, 20, 30):
        append(log, at)
    log.roll()
    append(log, 40)
    make_durable(log)
    assert entries(log, 0)[-1] == (30, 4)
    log = reopened(log, log._appender._env)
    for at in (10, 20, 30, 40):
        assert lookup(log, at) == (at, at // 10, 0)
    assert log.lookup[0].rebuilt == 0


def test_later_segments_are_tried_where_one_without_times_is_younger() -> None:
    log = untimed("max")
    env_of(log).advance(DAY_MS)
    log.roll()
    append(log, -1)
    append(log, 7000)
    make_durable(log)
    for each in (log, reopened(log, log._appender._env)):
        assert lookup(each, 1) == (5000, 2, 0)
        assert lookup(each, 5001) == (7000, 4, 0)
