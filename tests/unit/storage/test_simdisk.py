"""The simulated disk is as cruel as it says, from a seed, and no crueller."""

import pytest

from storage.env import File
from storage.errors import DiskError, NoSpace
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash

SEEDS = range(200)


def disk_with(name: str = "/d/a", data: bytes = b"") -> tuple[SimFileSystem, File]:
    fs = SimFileSystem()
    fs.make_dir("/d")
    fs.sync_dir("/")
    file = fs.open(name, create=True)
    if data:
        file.write_at(0, data)
    return fs, file


def survivors(fs: SimFileSystem, path: str) -> set[bytes | None]:
    found: set[bytes | None] = set()
    for seed in SEEDS:
        after = fs.after_crash(seed)
        found.add(after.read_bytes(path) if after.exists(path) else None)
    return found


def test_synced_bytes_under_a_synced_name_always_survive() -> None:
    fs, file = disk_with(data=b"x" * 2000)
    file.sync()
    fs.sync_dir("/d")
    assert survivors(fs, "/d/a") == {b"x" * 2000}


def test_synced_bytes_under_an_unsynced_name_may_vanish() -> None:
    fs, file = disk_with(data=b"x")
    file.sync()
    assert survivors(fs, "/d/a") == {b"x", None}


def test_nothing_is_safe_in_a_directory_that_is_not() -> None:
    fs = SimFileSystem()
    fs.make_dir("/d/e")
    file = fs.open("/d/e/a", create=True)
    file.write_at(0, b"x")
    file.sync()
    fs.sync_dir("/d/e")
    assert survivors(fs, "/d/e/a") == {b"x", None}


def test_unsynced_bytes_survive_vanish_or_tear_by_sector() -> None:
    fs, file = disk_with()
    fs.sync_dir("/d")
    file.write_at(0, b"1" * 512 + b"2" * 512 + b"3" * 100)
    found = survivors(fs, "/d/a")
    assert b"" in found
    assert b"1" * 512 + b"2" * 512 + b"3" * 100 in found
    assert b"1" * 512 in found  # the tail is gone
    assert bytes(512) + b"2" * 512 in found  # the first sector is gone, the second is there
    assert bytes(1124) in found  # only the length is there
    assert len(found) > 6


def test_later_writes_may_survive_earlier_ones() -> None:
    fs, file = disk_with(data=b"base" + bytes(1020))
    file.sync()
    fs.sync_dir("/d")
    file.write_at(0, b"AAAA")
    file.write_at(512, b"BBBB")
    heads = {(data[:4], data[512:516]) for data in survivors(fs, "/d/a") if data is not None}
    assert heads == {(a, b) for a in (b"base", b"AAAA") for b in (bytes(4), b"BBBB")}


def test_an_unsynced_rename_leaves_the_old_file_or_the_new_one_never_a_mix() -> None:
    fs, file = disk_with(data=b"old")
    file.sync()
    fs.sync_dir("/d")
    other = fs.open("/d/b", create=True)
    other.write_at(0, b"new")
    other.sync()
    fs.rename("/d/b", "/d/a")
    assert survivors(fs, "/d/a") == {b"old", b"new"}
    fs.sync_dir("/d")
    assert survivors(fs, "/d/a") == {b"new"}


def test_an_unsynced_removal_may_come_back() -> None:
    fs, file = disk_with(data=b"x")
    file.sync()
    fs.sync_dir("/d")
    fs.remove("/d/a")
    assert survivors(fs, "/d/a") == {b"x", None}


def test_replacing_a_file_atomically_shows_one_of_both_at_every_crash() -> None:
    fs, _ = disk_with()
    fs.write_atomically("/d/a", b"old" * 400)
    seen = set()
    fs.on_call = lambda call: seen.update(survivors(fs, "/d/a"))
    fs.write_atomically("/d/a", b"new" * 400)
    fs.on_call = None
    assert seen == {b"old" * 400, b"new" * 400}
    assert survivors(fs, "/d/a") == {b"new" * 400}


def test_the_same_seed_leaves_the_same_disk_and_disturbs_nothing() -> None:
    fs, file = disk_with(data=b"y" * 5000)
    first = [fs.after_crash(seed).list_dir("/") for seed in SEEDS]
    assert first == [fs.after_crash(seed).list_dir("/") for seed in SEEDS]
    assert file.read_at(0, 5000) == b"y" * 5000


def test_a_failed_sync_loses_the_bytes_and_the_next_one_says_yes() -> None:
    fs, file = disk_with()
    fs.sync_dir("/d")
    file.write_at(0, b"gone")
    fs.inject("sync")
    with pytest.raises(DiskError):
        file.sync()
    file.sync()
    assert file.read_at(0, 4) == b"gone"
    assert all(data is not None and data.strip(b"\0") == b"" for data in survivors(fs, "/d/a"))


def test_dead_is_dead() -> None:
    fs, file = disk_with(data=b"x")
    fs.crash_at = fs.calls + 1
    with pytest.raises(SimulatedCrash):
        file.write_at(0, b"y")
    for call in (lambda: file.read_at(0, 1), lambda: fs.exists("/d"), file.sync):
        with pytest.raises(SimulatedCrash):
            call()


def test_a_sync_that_is_the_last_call_did_not_happen() -> None:
    fs, file = disk_with(data=b"x")
    fs.sync_dir("/d")
    fs.crash_at = fs.calls + 1
    with pytest.raises(SimulatedCrash):
        file.sync()
    assert survivors(fs, "/d/a") >= {b"", b"x"}


def test_a_killed_process_loses_nothing_but_a_power_cut_after_it_may() -> None:
    fs, _ = disk_with(data=b"x" * 600)
    killed = fs.after_kill()
    assert killed.read_bytes("/d/a") == b"x" * 600
    assert survivors(killed, "/d/a") >= {None, b"", b"x" * 600}


def test_a_full_disk_writes_a_part_and_then_says_so() -> None:
    fs = SimFileSystem(capacity_bytes=100)
    file = fs.open("/a", create=True)
    file.write_at(0, b"1" * 90)
    with pytest.raises(NoSpace):
        file.write_at(90, b"2" * 20)
    assert 90 < file.size() <= 100
    fs.remove("/a")
    assert fs.free_bytes("/") == 100


def test_faults_hit_the_calls_they_name() -> None:
    fs, file = disk_with()
    fs.inject("write", path="/d/a", error="enospc", skip=1)
    file.write_at(0, b"1")
    with pytest.raises(NoSpace):
        file.write_at(1, b"22")
    file.write_at(1, b"33")
    assert file.read_at(0, 10) == b"133"


def test_what_is_cold_is_not_read_in_passing() -> None:
    fs, file = disk_with(data=b"x")
    buffer = memoryview(bytearray(1))
    assert file.read_into_if_cached(0, buffer) == 1
    fs.cold_paths.add("/d/a")
    assert file.read_into_if_cached(0, buffer) is None
