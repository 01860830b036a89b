"""A failed fsync, then a restart: what the page cache shows and the disk lacks is not promised.

The cache keeps the lost bytes and calls them clean, and the next fsync says yes (operations B3.1).
"""

import random
from uuid import UUID

import pytest

from config.topic import TopicConfig
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.errors import DiskError
from storage.log.log import Log
from storage.recovery.loading import LoadHints
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import append, make_durable, open_log, records_of

PRODUCER = {"producer_id": 7, "producer_epoch": 0}
SETTINGS = {"segment_bytes": 400, "index_interval_bytes": 100}


def sent(log: Log, sequence: int) -> bytes:
    """One record of the producer, the value says which."""
    value = b"record %d" % sequence
    append(log, 1000, value=value, base_sequence=sequence, acks_all=True, **PRODUCER)
    return value


def started(fs: SimFileSystem, recovery_point: int) -> Log:
    known = LoadHints(is_clean=False, recovery_point=recovery_point)
    return open_log(Env(SimClock(), fs, SeededRng()), known, **SETTINGS)


def values_of(log: Log) -> list[bytes | None]:
    return [record.value for record in records_of(log)]


@pytest.mark.parametrize("drops_cache", [True, False])
@pytest.mark.parametrize("checkpoint", ["none", "old", "new"])
def test_a_retry_after_a_restart_is_durable_once_it_is_answered(
    checkpoint: str, drops_cache: bool
) -> None:
    for seed in range(40):
        dice = random.Random(seed)
        fs = SimFileSystem(drops_cache=drops_cache)
        log = started(fs, 0)
        points = [0]
        acknowledged = []
        for sequence in range(dice.randint(0, 8)):
            acknowledged.append(sent(log, sequence))
            make_durable(log)
            points.append(log.durability.recovery_point)
        unsynced = len(acknowledged)
        sent(log, unsynced)
        fs.inject("sync", path=".log", times=100)
        with pytest.raises(DiskError):
            make_durable(log)

        fs = fs.after_kill()
        point = {"none": 0, "old": dice.choice(points), "new": points[-1]}[checkpoint]
        log = started(fs, point)
        acknowledged.append(sent(log, unsynced))  # stored, or a duplicate
        make_durable(log)
        assert values_of(log) == acknowledged
        for cut in range(5):
            after = started(fs.after_crash(cut), log.durability.recovery_point)
            assert values_of(after) == acknowledged, f"seed {seed}, cut {cut}"


@pytest.mark.parametrize("drops_cache", [True, False])
def test_what_readers_saw_after_the_restart_stays(drops_cache: bool) -> None:
    for cut in range(40):
        fs = SimFileSystem(drops_cache=drops_cache)
        log = started(fs, 0)
        sent(log, 0)
        make_durable(log)
        for sequence in range(1, 2 + cut % 9):  # several segments
            sent(log, sequence)
        fs.inject("sync", path=".log")
        with pytest.raises(DiskError):
            make_durable(log)
        fs = fs.after_kill()
        seen = values_of(started(fs, 1))
        assert values_of(started(fs.after_crash(cut), 1)) == seen


def test_a_sync_that_fails_while_recovering_is_not_forgotten_either() -> None:
    fs = SimFileSystem()
    log = started(fs, 0)
    sent(log, 0)
    make_durable(log)
    sent(log, 1)
    fs = fs.after_kill()
    fs.inject("sync", path=".log")
    with pytest.raises(DiskError):
        started(fs, 1)
    fs = fs.after_kill()
    log = started(fs, 1)
    acknowledged = [b"record 0", sent(log, 1)]
    make_durable(log)
    for cut in range(20):
        assert values_of(started(fs.after_crash(cut), 2)) == acknowledged


def test_the_modification_time_stays_where_the_cache_cannot_be_dropped() -> None:
    clock = SimClock()
    fs = SimFileSystem(clock=clock, drops_cache=False)
    log = started(fs, 0)
    sent(log, 0)
    written_at = clock.now_ms()
    clock.advance(1000)
    fs = fs.after_kill()
    started(fs, 0)
    assert fs.list_dir("/data/t-0")[0].mtime_ms == written_at


def test_what_lies_below_the_recovery_point_is_not_read_from_the_disk_again() -> None:
    fs = SimFileSystem()
    log = open_log(Env(SimClock(), fs, SeededRng()))
    for sequence in range(20):
        if sequence == 18:
            end = log.snapshot.segments[-1].size_bytes
        sent(log, sequence)
    make_durable(log)
    fs = fs.after_kill()
    log = open_log(Env(SimClock(), fs, SeededRng()), LoadHints(is_clean=False, recovery_point=18))
    assert fs.dropped == {"/data/t-0/00000000000000000000.log": end}


def test_arrival_times_that_a_failed_sync_lost_are_written_again() -> None:
    fs = SimFileSystem()
    clock = SimClock()
    env = Env(clock, fs, SeededRng())
    log = open_log(env, horolog_zone_bytes=100)
    for _ in range(5):
        clock.advance(1000)
        append(log, 5, value=bytes(100))
    make_durable(log)  # the rows are written, not synced: only closed segments' are
    zones_file = fs.open("/data/t-0/00000000000000000000.zones")
    fs.inject("sync", path=".zones")
    with pytest.raises(DiskError):
        zones_file.sync()
    fs = fs.after_kill()
    for cut in range(10):
        started(fs, 5)
        log = started(fs.after_crash(cut), 5)
        segment = log.snapshot.segments[0]
        indexes = log.search.lookup[0].of(segment, segment.size_bytes, log.search.lookup[1])
        zones = list(indexes.zones.zones())
        assert [zone.first_arrival_ms % 100_000 for zone in zones] == [1000, 2000, 3000, 4000, 5000]


def managed(fs: SimFileSystem) -> LogManager:
    manager = LogManager(Env(SimClock(), fs, SeededRng()), "/data", lambda topic: TopicConfig())
    manager.open_directory("cluster", 1)
    manager.load()
    return manager


def with_records(fs: SimFileSystem) -> LogManager:
    manager = managed(fs)
    log = manager.create_log("t", 0, UUID(int=7), TopicConfig())
    for sequence in range(4):
        sent(log, sequence)
    make_durable(log)
    return manager


@pytest.mark.parametrize("operation", ["sync", "rename", "sync directory", "write", "create"])
def test_a_start_offset_that_a_second_request_is_answered_with_is_durable(operation: str) -> None:
    fs = SimFileSystem()
    log = with_records(fs).logs["t", 0]
    fs.inject(operation, path="/data")
    with pytest.raises(DiskError):
        log.delete_records(3)
    assert log.delete_records(3) == 3
    for cut in range(20):
        after = managed(fs.after_crash(cut)).logs["t", 0]
        assert after.snapshot.log_start_offset == 3, f"cut {cut}"


def test_a_start_offset_that_was_seen_after_a_kill_stays() -> None:
    for cut in range(20):
        fs = SimFileSystem()
        log = with_records(fs).logs["t", 0]
        fs.inject("sync directory", path="/data")
        with pytest.raises(DiskError):
            log.delete_records(3)
        fs = fs.after_kill()
        seen = managed(fs).logs["t", 0].snapshot.log_start_offset
        after = managed(fs.after_crash(cut)).logs["t", 0]
        assert after.snapshot.log_start_offset == seen == 3
