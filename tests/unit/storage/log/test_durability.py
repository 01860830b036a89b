"""What readers may see before the disk has it, and what a failing disk ends (operations B2, B3)."""

import pytest

from storage.errors import DiskError, LogOffline
from storage.log.log import Log
from storage.zones.rows import sound_rows
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import append, make_durable, open_log, records_of


def watermark(log: Log) -> int:
    return log.snapshot.high_watermark


def test_by_acks_hides_only_what_was_promised() -> None:
    log = open_log()
    assert not append(log, 1).waits_for_disk
    assert watermark(log) == 1
    assert append(log, 1, acks_all=True).waits_for_disk
    append(log, 1)
    assert watermark(log) == 1
    make_durable(log)
    assert (watermark(log), log.durable_offset) == (3, 3)


def test_what_was_promised_after_the_sync_began_stays_hidden() -> None:
    log = open_log()
    append(log, 1, acks_all=True)
    offset = log.sync()
    append(log, 2)
    append(log, 3, acks_all=True)
    log.mark_durable(offset)
    assert watermark(log) == 2
    assert log.dirty_bytes > 0
    assert [record.offset for record in records_of(log)] == [0, 1]


@pytest.mark.parametrize(
    ("durability", "acks_all", "hidden"),
    [
        ("fsync", False, True),
        ("fsync", True, True),
        ("interval", True, False),
        ("os", True, False),
        ("by-acks", False, False),
    ],
)
def test_each_durability(durability: str, acks_all: bool, hidden: bool) -> None:
    log = open_log(horolog_durability=durability)
    assert append(log, 1, acks_all=acks_all).waits_for_disk is hidden
    assert watermark(log) == (0 if hidden else 1)


def test_flush_messages_asks_for_the_disk_whatever_the_durability() -> None:
    log = open_log(horolog_durability="os", flush_messages=3)
    assert [append(log, 1).waits_for_disk for _ in range(3)] == [False, False, True]
    make_durable(log)
    assert not append(log, 1).waits_for_disk


def test_dirt_is_counted_and_dated() -> None:
    env = sim_env()
    log = open_log(env)
    assert (log.dirty_bytes, log.first_dirty_at) == (0, None)
    append(log, 1)
    assert (log.dirty_bytes, log.first_dirty_at) == (72, env.clock.monotonic())
    make_durable(log)
    assert (log.dirty_bytes, log.first_dirty_at) == (0, None)


def test_rolled_segments_are_synced_too() -> None:
    env = sim_env()
    log = open_log(env, segment_bytes=150)
    for at in range(20):
        append(log, at, acks_all=True)
    make_durable(log)
    for seed in range(20):
        survivor = sim_env(fs=env.fs.after_crash(seed))  # type: ignore[attr-defined]
        assert len(records_of(open_log(survivor))) == 20
    assert log.durability.recovery_point == 20


def test_a_roll_during_a_sync_waits_for_the_next_one() -> None:
    log = open_log(segment_bytes=150)
    append(log, 1, acks_all=True)
    append(log, 2, acks_all=True)
    offset = log.sync()
    append(log, 3, acks_all=True)
    log.mark_durable(offset)
    assert (watermark(log), len(log.snapshot.segments)) == (2, 2)
    make_durable(log)
    assert watermark(log) == 3


def test_the_name_of_a_new_segment_is_durable_though_indexes_of_the_last_one_are_not() -> None:
    env = sim_env()
    fs = env.fs
    assert isinstance(fs, SimFileSystem)
    log = open_log(env, segment_bytes=100)
    append(log, 1, acks_all=True)
    make_durable(log)
    append(log, 2, acks_all=True)
    fs.inject("sync", path="0.index")
    make_durable(log)
    assert watermark(log) == len(log.snapshot.segments) == 2
    for seed in range(8):
        after = open_log(sim_env(fs=fs.after_crash(seed)), segment_bytes=100)
        assert [record.offset for record in records_of(after)] == [0, 1]


def test_the_first_failed_sync_is_final() -> None:
    env = sim_env()
    log = open_log(env)
    append(log, 1, acks_all=True)
    env.fs.inject("sync", path=".log")  # type: ignore[attr-defined]
    with pytest.raises(DiskError):
        log.sync()
    with pytest.raises(DiskError):
        log.sync()
    with pytest.raises(LogOffline):
        append(log, 2)
    assert log.failed is not None
    assert watermark(log) == 0


def test_a_failing_index_file_costs_recovery_time_and_nothing_else() -> None:
    env = sim_env()
    log = open_log(env, segment_bytes=150)
    env.fs.inject("sync", path=".index")  # type: ignore[attr-defined]
    for at in range(6):
        append(log, at, acks_all=True)
    make_durable(log)
    assert (watermark(log), log.durability.recovery_point, log.failed) == (6, 0, None)
    make_durable(log)
    assert log.durability.recovery_point == 6


def test_marks_that_come_during_a_change_are_not_lost() -> None:
    """As when an append runs on a lane while the loop hears from the fsync thread."""
    log = open_log()
    append(log, 1, acks_all=True)
    offset = log.sync()
    with log._gate:
        log.mark_durable(offset)
        assert watermark(log) == 0
    append(log, 2)
    assert watermark(log) == 2


def test_a_zone_is_told_on_the_disk_when_what_it_speaks_of_is_there() -> None:
    """Batches come while a sync is under way: rows of theirs wait for the next one."""
    env = sim_env()
    fs = env.fs
    assert isinstance(fs, SimFileSystem)
    log = open_log(env, horolog_zone_bytes=200)
    append(log, 5)
    log.roll()
    path = log.files.name_of(1, ".zones")
    for _ in range(4):
        append(log, 5, value=bytes(100))

    def appends_meanwhile(operation: str, name: str) -> None:
        if operation == "sync directory":  # the segment's name; its bytes were synced just now
            fs.on_mutation = None
            for _ in range(4):
                append(log, 5, value=bytes(100))

    fs.on_mutation = appends_meanwhile
    make_durable(log)
    assert fs.on_mutation is None
    size = len(fs.durable_bytes(log.files.name_of(1, ".log")))
    rows, _ = sound_rows(fs.read_bytes(path))
    assert log.snapshot.end_position == 2 * size
    assert rows == 2, "a row speaks of bytes that are not on the disk"
    make_durable(log)
    assert sound_rows(fs.read_bytes(path)) == (4, None)
