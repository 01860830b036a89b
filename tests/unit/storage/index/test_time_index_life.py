"""The time index as KIP-33 has it: full, lost, damaged, of either meaning, without any time."""

import pytest

from storage.files.layout import LOG, OFFSET_INDEX, SYNCED_MARK, TIME_INDEX, ZONES, segment_name
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.clock_logs import NOW, env_of, filled, fs_of
from tests.support.records.logs import (
    CLEAN,
    LOG_PATH,
    UNCLEAN,
    append,
    make_durable,
    open_log,
    reopened,
)

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
        assert each.search.first_at_or_after(1) == (5000, 2, 0)
        assert each.search.first_at_or_after(5001) is None
        assert each.search.first_with_largest() == (5000, 2, 0)


def test_a_start_believes_the_entry_and_a_rebuild_writes_it_again() -> None:
    log = untimed("next")
    env = log._appender._env
    log = reopened(log, env)
    assert log.search.first_at_or_after(1) == (5000, 2, 0)
    assert log.search.lookup[0].rebuilt == 0
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
        assert log.search.first_at_or_after(at) == (at, at // 10, 0)
    assert log.search.lookup[0].rebuilt == 0


def test_later_segments_are_tried_where_one_without_times_is_younger() -> None:
    log = untimed("max")
    env_of(log).advance(DAY_MS)
    log.roll()
    append(log, -1)
    append(log, 7000)
    make_durable(log)
    for each in (log, reopened(log, log._appender._env)):
        assert each.search.first_at_or_after(1) == (5000, 2, 0)
        assert each.search.first_at_or_after(5001) == (7000, 4, 0)


MEANINGS = ("max", "next")


def closed_twice(meaning: str) -> Log:
    """Two closed segments of thirty records and one with one."""
    log = filled(30, horolog_time_index_entry=meaning)
    for number in (30, 60):
        log.roll()
        for at in range(number, number + 30):
            append(log, NOW + 10 * at, value=bytes(3000))
    log.roll()
    make_durable(log)
    return log


def all_found(log: Log) -> bool:
    return all(
        log.search.first_at_or_after(NOW + 10 * at) == (NOW + 10 * at, at, 0)
        for at in range(0, 90, 7)
    )


@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_full_index_ends_the_segment_and_its_last_slot_is_for_the_last_time(
    meaning: str,
) -> None:
    log = filled(
        40, horolog_time_index_entry=meaning, segment_index_bytes=48, index_interval_bytes=0
    )
    log.roll()
    make_durable(log)
    segments = log.snapshot.segments
    assert len(segments) > 8
    for number, segment in enumerate(segments[:-1]):
        held = entries(log, number)
        assert len(held) <= 4
        assert held[-1][0] == NOW + 10 * (segments[number + 1].base_offset - 1)
        assert segment.size_bytes
    for at in range(40):
        assert log.search.first_at_or_after(NOW + 10 * at) == (NOW + 10 * at, at, 0)


@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize(
    "lost", [(TIME_INDEX,), (TIME_INDEX, OFFSET_INDEX), (TIME_INDEX, OFFSET_INDEX, ZONES)]
)
def test_a_directory_without_time_indexes_gets_them_at_its_start(
    meaning: str, lost: tuple[str, ...]
) -> None:
    log = closed_twice(meaning)
    log.close()
    fs, before = fs_of(log), [entries(log, number) for number in range(3)]
    for segment in log.snapshot.segments:
        for suffix in lost:
            fs.remove(segment.path_of(suffix))
    log = reopened(log, log._appender._env)
    assert all_found(log)
    assert [entries(log, number) for number in range(3)] == before


@pytest.mark.parametrize("meaning", MEANINGS)
@pytest.mark.parametrize(
    "damage", [bytes(24), bytes(7), (2**62).to_bytes(8, "big") + bytes(4), b"\xff" * 12]
)
def test_a_damaged_index_hides_nothing(meaning: str, damage: bytes) -> None:
    log = closed_twice(meaning)
    log.close()
    fs, path = fs_of(log), log.snapshot.segments[1].path_of(TIME_INDEX)
    before = fs.read_bytes(path)
    fs.write_atomically(path, before + damage)
    log = reopened(log, log._appender._env)
    assert all_found(log)
    assert log.search.lookup[0].rebuilt == 1
    log.close()
    assert fs.read_bytes(path) == before


@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_directory_of_the_other_meaning_is_searched_alike(meaning: str) -> None:
    log = closed_twice(meaning)
    log.close()
    other = MEANINGS[1 - MEANINGS.index(meaning)]
    settings = {name: getattr(log.config, name) for name in log.config.__slots__}
    settings["horolog_time_index_entry"] = other
    log = open_log(log._appender._env, CLEAN, log.files.path, **settings)
    assert all_found(log)
    assert log.search.lookup[0].rebuilt == 0
    for at in range(90, 120):
        append(log, NOW + 10 * at, value=bytes(3000))
    log.roll()
    assert all_found(log)
    assert log.search.first_at_or_after(NOW + 1190) == (NOW + 1190, 119, 0)


@pytest.mark.parametrize("meaning", MEANINGS)
def test_a_cut_by_recovery_takes_the_entries_behind_it_along(meaning: str) -> None:
    log = filled(60, horolog_time_index_entry=meaning)
    make_durable(log)
    env = log._appender._env
    path = log.snapshot.active.path_of(LOG)
    size = log.snapshot.end_position
    log.close()
    fs_of(log).remove(f"{log.files.path}/{SYNCED_MARK}")  # nothing vouches for what is lost
    fs_of(log).open(path).truncate(size - 10 * size // 60 - 100)
    settings = {name: getattr(log.config, name) for name in log.config.__slots__}
    log = open_log(env, UNCLEAN, log.files.path, **settings)
    assert log.snapshot.log_end_offset == 49
    assert log.search.first_at_or_after(NOW + 480) == (NOW + 480, 48, 0)
    assert log.search.first_at_or_after(NOW + 481) is None
    append(log, NOW + 485, value=bytes(5000))
    assert log.search.first_at_or_after(NOW + 481) == (NOW + 485, 49, 0)


@pytest.mark.parametrize("suffix", [TIME_INDEX, OFFSET_INDEX])
def test_a_changed_bit_in_the_last_segments_index_stops_no_producer(suffix: str) -> None:
    fs = SimFileSystem()
    log = open_log(sim_env(fs=fs), index_interval_bytes=1)
    for time in range(1000, 1004):
        append(log, time)
    log.close()
    name = f"{LOG_PATH}/{segment_name(0, suffix)}"
    for bit in range(8 * len(fs.read_bytes(name))):
        disk = fs.after_kill()
        file = disk.open(name)
        file.write_at(bit // 8, bytes([file.read_at(bit // 8, 1)[0] ^ 1 << bit % 8]))
        file.close()
        again = open_log(sim_env(fs=disk), CLEAN, index_interval_bytes=1)
        assert append(again, 2000).base_offset == 4, bit
        again.close()
