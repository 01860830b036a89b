"""A hole in what was synced is damage, also above the recovery point of the last checkpoint."""

from pathlib import Path

import pytest

from storage.env import Env
from storage.errors import DiskError
from storage.files.layout import SYNCED_MARK
from storage.files.synced_mark import load
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import (
    LOG_PATH,
    append,
    make_durable,
    offsets_of,
    open_log,
    records_of,
)
from tests.support.worlds.app import real_env

VALUE = bytes([7]) * 30_000
BATCHES = 3


def lived(env: Env, path: str = LOG_PATH, **settings: object) -> Log:
    """Three batches that were synced, a fourth one that was not."""
    log = open_log(env, path=path, **settings)
    for at in range(BATCHES):
        append(log, at, value=VALUE, acks_all=True)
    make_durable(log)
    append(log, BATCHES, value=VALUE)
    return log


def disk_of(env: Env) -> SimFileSystem:
    assert isinstance(env.fs, SimFileSystem)
    return env.fs


def killed(env: Env) -> Env:
    return sim_env(fs=disk_of(env).after_kill())


def zeroed(env: Env, position: int, size: int, path: str = LOG_PATH) -> bytes:
    """The file without these bytes."""
    name = f"{path}/{0:020d}.log"
    file = env.fs.open(name)
    file.write_at(position, bytes(size))
    file.sync()
    file.close()
    return env.fs.read_bytes(name)


@pytest.mark.parametrize("sector", [512, 4096])
@pytest.mark.parametrize("position", [4096, 40960, 73728])
def test_a_sector_of_zeros_in_what_was_synced_is_damage_and_is_kept(
    sector: int, position: int
) -> None:
    env = sim_env()
    lived(env)
    env = killed(env)
    before = zeroed(env, position, sector)
    for _ in range(2):
        log = open_log(env)
        assert log.corruption is not None
        assert str(position // 30_000) in str(log.corruption)
        assert offsets_of(records_of(log)) == list(range(position // 30_000))
        assert env.fs.read_bytes(f"{LOG_PATH}/{0:020d}.log") == before


def test_the_same_in_a_real_file(tmp_path: Path) -> None:
    env, path = real_env(), str(tmp_path / "t-0")
    lived(env, path)
    before = zeroed(env, 40960, 4096, path)
    log = open_log(env, path=path)
    assert log.corruption is not None
    assert offsets_of(records_of(log)) == [0]
    assert env.fs.read_bytes(f"{path}/{0:020d}.log") == before


@pytest.mark.parametrize("sector", [512, 4096])
def test_a_sector_of_zeros_in_what_was_never_synced_is_a_torn_tail(sector: int) -> None:
    env = sim_env()
    lived(env)
    env = killed(env)
    zeroed(env, 98304, sector)
    log = open_log(env)
    assert (log.corruption, log.snapshot.log_end_offset) == (None, BATCHES)


def test_a_last_batch_that_was_synced_is_no_torn_tail() -> None:
    """Neither a changed bit in it nor a file that became too short: nothing sound follows."""
    for change in ("bit", "length"):
        env = sim_env()
        log = lived(env)
        make_durable(log)
        env = killed(env)
        file = env.fs.open(f"{LOG_PATH}/{0:020d}.log")
        if change == "bit":
            file.write_at(file.size() - 5, b"\xff")
        else:
            file.truncate(file.size() - 5)
        log = open_log(env)
        assert log.corruption is not None
        assert log.snapshot.log_end_offset == BATCHES


def test_it_holds_after_power_cuts_as_far_as_the_mark_reached_the_disk() -> None:
    env = sim_env()
    lived(env)
    told = 0
    for seed in range(40):
        fs = disk_of(env).after_crash(seed)
        log = open_log(sim_env(fs=fs.after_kill()))
        assert log.corruption is None
        assert log.snapshot.log_end_offset >= BATCHES
        after = sim_env(fs=fs.after_kill())
        zeroed(after, 40960, 512)
        told += open_log(after).corruption is not None
    assert told > 5


def test_a_mark_that_was_damaged_vouches_for_nothing() -> None:
    env = sim_env()
    lived(env)
    env = killed(env)
    env.fs.open(f"{LOG_PATH}/{SYNCED_MARK}").write_at(19, b"9")
    zeroed(env, 98304, 512)
    log = open_log(env)
    assert (log.corruption, log.snapshot.log_end_offset) == (None, BATCHES)


def test_a_mark_that_cannot_be_written_stops_nobody() -> None:
    env = sim_env()
    disk_of(env).inject("write", path=SYNCED_MARK, times=1)
    log = lived(env)
    assert log.durable_offset == BATCHES
    assert log.failed is None


def test_a_mark_above_the_end_of_the_log_goes_before_its_offsets_are_used_again() -> None:
    """As when somebody has shortened the log."""
    env = sim_env()
    log = lived(env)
    env = killed(env)
    size = log.snapshot.active.size_bytes // (BATCHES + 1)
    env.fs.open(f"{LOG_PATH}/{0:020d}.log").truncate(size)
    log = open_log(env)
    assert (log.corruption, log.snapshot.log_end_offset) == (None, 1)
    append(log, 5, value=VALUE)
    env = killed(env)
    zeroed(env, 40960, 512)
    log = open_log(env)
    assert (log.corruption, log.snapshot.log_end_offset) == (None, 1)


def test_a_sync_that_failed_leaves_no_mark() -> None:
    env = sim_env()
    log = lived(env)
    disk_of(env).inject("sync", path=".log", times=1)
    with pytest.raises(DiskError):
        make_durable(log)
    assert load(log.files) == BATCHES
