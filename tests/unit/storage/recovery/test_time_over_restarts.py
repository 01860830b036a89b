"""Times that a log must not forget or mix up over restarts, steps of the clock and new settings."""

import pytest

from storage.env import Env
from storage.log.lifecycle import learn_times, plan_retention, roll_if_due
from storage.log.log import Log
from storage.search.search_clock import EARLIER
from storage.zones.zone_map import Zone
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock, sim_env
from tests.support.records.logs import UNCLEAN, append, make_durable, open_log, reopened

NOW = 1_700_000_000_000
DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS


def zones_of(log: Log) -> list[Zone]:
    indexes, rules = log.search.lookup
    return [
        zone
        for segment in log.snapshot.segments
        if segment.size_bytes
        for zone in indexes.of(segment, segment.size_bytes, rules).zones.zones()
    ]


def killed(log: Log, env: Env) -> tuple[Log, Env]:
    """The log on the disk that a killed process leaves."""
    fs = env.fs
    assert isinstance(fs, SimFileSystem)
    env = Env(env.clock, fs.after_kill(), SeededRng())
    settings = {name: getattr(log.config, name) for name in log.config.__slots__}
    return open_log(env, UNCLEAN, log.files.path, **settings), env


def test_the_floor_of_rolling_by_time_holds_after_a_restart() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, segment_ms=1000, horolog_roll_min_interval_ms=10_000)
    append(log, NOW)
    log = reopened(log, env)
    clock.advance(5000)
    append(log, NOW + YEAR_MS)
    assert len(log.snapshot.segments) == 1
    clock.advance(5001)
    append(log, NOW + 2 * YEAR_MS)
    assert len(log.snapshot.segments) == 2


def test_arrival_goes_on_after_a_restart_with_an_empty_segment() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env)
    append(log, NOW)
    log.roll()
    log = reopened(log, env)
    clock.step(-5000)
    append(log, NOW)
    first, second = zones_of(log)
    assert second.first_arrival_ms == first.last_arrival_ms == NOW


def test_an_estimated_arrival_is_not_before_those_of_older_segments() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env)
    append(log, NOW)
    log.roll()
    make_durable(log)
    append(log, NOW - YEAR_MS)
    log, env = killed(log, env)
    assert [zone.first_arrival_ms for zone in zones_of(log)] == [NOW, NOW]


def test_an_estimate_counts_from_segments_that_were_not_scanned() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env)
    append(log, NOW)
    log.roll()
    make_durable(log)
    append(log, NOW - YEAR_MS)
    fs = env.fs
    assert isinstance(fs, SimFileSystem)
    env = Env(clock, fs.after_kill(), SeededRng())
    log = open_log(env, UNCLEAN._replace(recovery_point=1), log.files.path)
    assert [zone.first_arrival_ms for zone in zones_of(log)] == [NOW, NOW]


def test_the_meaning_of_time_index_entries_may_change_on_a_live_topic() -> None:
    env = sim_env()
    log = open_log(env, index_interval_bytes=0, horolog_time_index_entry="next")
    for at in (NOW, NOW + 50, NOW + 49):
        append(log, at)
    other = {name: getattr(log.config, name) for name in log.config.__slots__}
    log.reconfigure(type(log.config)(**{**other, "horolog_time_index_entry": "max"}))
    assert append(log, NOW + 50).base_offset == 3
    assert append(log, NOW + 51).base_offset == 4
    log = reopened(log, env)
    assert log.snapshot.log_end_offset == 5


def test_a_segment_that_a_wrong_clock_began_does_not_wait_for_that_time() -> None:
    clock = SimClock(NOW + 10 * YEAR_MS)
    log = open_log(sim_env(clock=clock), segment_ms=60_000, horolog_roll_min_interval_ms=10_000)
    append(log, -1)
    clock.step(-10 * YEAR_MS)
    assert roll_if_due(log, clock.now_ms())
    append(log, NOW)
    assert not roll_if_due(log, clock.now_ms() - 5000), "a clock that is set back a little"


def test_record_times_end_a_segment_that_a_wrong_clock_began() -> None:
    clock = SimClock(NOW + 10 * YEAR_MS)
    log = open_log(sim_env(clock=clock), segment_ms=60_000, horolog_roll_min_interval_ms=10_000)
    append(log, NOW)
    clock.step(-10 * YEAR_MS)
    append(log, NOW + 60_001)
    assert len(log.snapshot.segments) == 2


@pytest.mark.parametrize("clock_name", ["record", "arrival", "earlier", "later"])
def test_records_without_time_are_as_old_as_their_file_after_a_kill(clock_name: str) -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, retention_ms=7 * DAY_MS, horolog_retention_clock=clock_name)
    append(log, -1)
    log, env = killed(log, env)
    clock.advance(6 * DAY_MS)
    assert learn_times(log, 99)
    assert not plan_retention(log, clock.now_ms()).leaving
    clock.advance(DAY_MS + 1)
    assert plan_retention(log, clock.now_ms()).leaving


def test_an_estimated_arrival_frees_nothing_before_its_file_is_as_old() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, retention_ms=7 * DAY_MS, horolog_retention_clock="arrival")
    append(log, NOW // 1000)
    log, env = killed(log, env)
    clock.advance(6 * DAY_MS)
    assert learn_times(log, 99)
    assert not plan_retention(log, clock.now_ms()).leaving
    log.roll()
    assert not plan_retention(log, clock.now_ms()).leaving


def test_a_producer_is_rather_forgotten_than_remembered_by_an_older_sequence() -> None:
    env = sim_env()
    log = open_log(env)
    for sequence in range(2):
        append(log, NOW, producer_id=1, producer_epoch=0, base_sequence=sequence)
        log.roll()
    append(log, NOW)
    log.close()
    env.fs.remove(f"{log.files.path}/{2:020}.snapshot")
    log = open_log(env, UNCLEAN._replace(recovery_point=2, start_offset=2))
    assert log.producers.get(1) is None


def test_records_without_a_time_are_found_that_follow_a_start_and_a_search() -> None:
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env)
    append(log, NOW - 5000)
    make_durable(log)
    log = reopened(log, env)
    assert log.search.first_at_or_after(NOW, clock=EARLIER) is None
    clock.advance(60_000)
    append(log, -1)  # its arrival counts
    make_durable(log)
    for _ in range(2):  # while the segment takes appends, and once it is closed
        found = log.search.first_at_or_after(NOW, clock=EARLIER)
        assert found is not None
        assert found.offset == 1
        log.roll()
        make_durable(log)


def test_a_search_remembers_of_a_segment_only_what_it_looked_at() -> None:
    env = sim_env(clock=SimClock(NOW))
    log = open_log(env)
    append(log, NOW - 5000)
    make_durable(log)
    before = log.snapshot
    append(log, -1)
    log.roll()
    make_durable(log)
    segment = before.active
    assert log.search.look().may_hold(segment, segment.size_bytes, EARLIER, NOW)
    segment.untimed = False, before.end_position  # by a look just before the append
    assert log.search.look().may_hold(segment, segment.size_bytes, EARLIER, NOW)
    assert segment.untimed == (True, segment.size_bytes)
