"""Estimated arrivals of a segment whose zones are lost: none is before the segment before it."""

from collections.abc import Callable

import pytest

from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.env import Env
from storage.errors import DiskError
from storage.files.layout import ZONES
from storage.log.log import Log
from storage.search.search_clock import ARRIVAL
from storage.segment import zone_repair
from storage.segment.segments import index_of
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.cleaning import COMPACT, clean
from tests.support.records.logs import append, make_durable, open_log, reopened

NOW = 1_700_000_000_000
OLD = 1_000_000_000_000
HOUR = 3_600_000
COUNT = 4
CAME = [NOW + HOUR * number for number in range(COUNT)]


def hourly(**settings: object) -> tuple[Log, Env]:
    """Closed segments of one record each, an hour apart, of records from long ago; opened again."""
    clock = SimClock(NOW)
    env = sim_env(clock=clock)
    log = open_log(env, **settings)
    for number in range(COUNT):
        append(log, OLD + number, key=b"%d" % number)
        log.roll()
        make_durable(log)
        clock.advance(HOUR)
    return reopened(log, env), env


def lose_zones(log: Log, *numbers: int) -> None:
    for number in numbers:
        log.files.fs.remove(log.snapshot.segments[number].path_of(ZONES))


def arrivals(log: Log, *offsets: int) -> list[int]:
    found = [log.search.times_at(offset) for offset in offsets]
    return [each.arrival_ms for each in found if each is not None]


@pytest.mark.parametrize("lost", [(2,), (1, 2), (1, 2, 3)])
@pytest.mark.parametrize("is_before_the_start", [False, True])
def test_they_begin_where_the_nearest_known_ones_end(
    lost: tuple[int, ...], *, is_before_the_start: bool
) -> None:
    log, env = hourly()
    lose_zones(log, *lost)
    if is_before_the_start:
        log = reopened(log, env)
    known = CAME[lost[0] - 1]
    assert arrivals(log, *reversed(lost)) == [known] * len(lost)
    found = log.search.first_at_or_after(known, clock=ARRIVAL)
    assert found is not None
    assert found.offset == lost[0] - 1


def test_zones_in_memory_count_as_those_in_the_file() -> None:
    log, _ = hourly()
    assert arrivals(log, 1) == [CAME[1]]
    lose_zones(log, 1, 2)
    assert arrivals(log, 2) == [CAME[1]]


def test_what_nobody_looked_into_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_repair, "MENDED_AT_ONCE", 0)
    log, _ = hourly()
    lose_zones(log, 1, 2)
    indexes, rules = log.search.lookup
    indexes.of(log.snapshot.segments[1], log.snapshot.segments[1].size_bytes, rules)
    assert arrivals(log, 2) == [CAME[0]]


def test_a_zone_map_that_cannot_be_read_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = hourly()
    lose_zones(log, 2)
    broken, read = log.snapshot.segments[1].path_of(ZONES), SimFileSystem.read_bytes

    def read_bytes(fs: SimFileSystem, path: str) -> bytes:
        if path == broken:
            raise DiskError(path, "read", "Input/output error")
        return read(fs, path)

    monkeypatch.setattr(SimFileSystem, "read_bytes", read_bytes)
    assert arrivals(log, 2) == [CAME[0]]


def removed(log: Log, env: Env) -> None:
    log.delete_records(2)
    log.remove_segments(2)


def compacted(log: Log, env: Env) -> None:
    clean(log, env, CleanerOffsets(env.fs, "/data"))


@pytest.mark.parametrize(("change", "expected"), [(removed, OLD + 2), (compacted, CAME[1])])
def test_segments_that_went_are_not_asked(
    change: Callable[[Log, Env], None], expected: int
) -> None:
    log, env = hourly(cleanup_policy=COMPACT, segment_bytes=200)
    gone = set(log.snapshot.segments[:2])
    change(log, env)
    for segment in log.snapshot.segments:
        assert segment.before not in gone
    number = index_of(log.snapshot.segments, 2)
    segment = log.snapshot.segments[number]
    lose_zones(log, number)
    segment.indexes, segment.verified = None, False
    assert arrivals(log, 2) == [expected]


def test_a_start_reads_no_zone_map_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log, env = hourly()
    asked: list[str] = []
    read = SimFileSystem.read_bytes

    def read_bytes(fs: SimFileSystem, path: str) -> bytes:
        asked.append(path)
        return read(fs, path)

    monkeypatch.setattr(SimFileSystem, "read_bytes", read_bytes)
    log = reopened(log, env)
    assert not [path for path in asked if path.endswith(ZONES)]
    assert arrivals(log, 2) == [CAME[2]]
    assert [path for path in asked if path.endswith(ZONES)] == [
        log.snapshot.segments[2].path_of(ZONES)
    ]
