"""The power goes at every call while a run of the cleaner is given up: its files count or they do
not, never some of them, and readers of committed data get no aborted record."""

from collections.abc import Callable
from functools import partial

import pytest

from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.cleaner.cleaner import Cleaning
from storage.env import Env
from storage.files.partition_listing import list_partition
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.aborting_logs import NOW, AbortingLife, committed, filled, opened
from tests.support.records.cleaning import MEMORY, verdict
from tests.support.records.logs import CLEAN

FIRST_LOG = f"{0:020d}.log"


def settled_files(disk: SimFileSystem) -> dict[str, bytes]:
    """The first segment's files once a start has settled what was left over."""
    list_partition(disk, "/data/t-0")
    return {
        entry.name: disk.read_bytes(f"/data/t-0/{entry.name}")
        for entry in disk.list_dir("/data/t-0")
        if entry.name.startswith(FIRST_LOG[:20])
    }


def give_up_in_turn(fs: SimFileSystem, log: Log, begin: Callable[[], None]) -> None:
    """The log goes out of service right when the new segment was to count."""
    del fs
    log.is_closed = True
    begin()


def fail_sync(fs: SimFileSystem, log: Log, begin: Callable[[], None]) -> None:
    del log
    fs.inject("sync directory", path="/data/t-0", skip=1)
    begin()


def fail_rename(at: int, fs: SimFileSystem, log: Log, begin: Callable[[], None]) -> None:
    del log
    fs.inject("rename", path="/data/t-0", skip=at)
    begin()


WAYS = {"turn": give_up_in_turn, "sync": fail_sync} | {
    f"rename {at}": partial(fail_rename, at) for at in range(4)
}


def run_until_given_up(
    fs: SimFileSystem, log: Log, give_up: Callable[..., None], begin: Callable[[], None]
) -> None:
    env = Env(SimClock(NOW), fs, SeededRng(2))
    run = Cleaning(log, verdict(log, env, CleanerOffsets(fs, "/data")), MEMORY, env)
    slices = run.slices()
    if give_up is not give_up_in_turn:
        give_up(fs, log, begin)
    for part in slices:
        if part.in_turn is not None:
            if give_up is give_up_in_turn and any(
                entry.name.endswith(".swap") for entry in fs.list_dir("/data/t-0")
            ):
                give_up(fs, log, begin)
            part.in_turn()


@pytest.mark.parametrize("way", WAYS)
def test_a_run_that_is_given_up_leaves_the_log_whole_at_every_call(way: str) -> None:
    points = 0
    for seed in range(2):
        fs = SimFileSystem(clock=SimClock(NOW))
        log = filled(fs, seed)
        expected, before = committed(log), settled_files(fs.after_kill())

        def look(
            call: int,
            fs: SimFileSystem = fs,
            expected: object = expected,
            before: dict[str, bytes] = before,
        ) -> None:
            nonlocal points
            for cut in range(3):
                points += 1
                disk = fs.after_crash(call * 31 + cut)
                settled = settled_files(disk.after_kill())
                assert settled == before or settled[FIRST_LOG] != before[FIRST_LOG], "a mixture"
                assert committed(opened(disk, CLEAN)) == expected, "after a cut"
                assert committed(opened(disk.after_kill())) == expected, "a second start differs"
                left = [entry.name for entry in disk.list_dir("/data/t-0")]
                assert not [name for name in left if name.endswith((".swap", ".cleaned"))]

        with pytest.raises(Exception, match=r"closed|injected"):
            run_until_given_up(fs, log, WAYS[way], partial(setattr, fs, "on_call", look))
        fs.on_call = None
        look(0)
        assert committed(opened(fs.after_kill(), CLEAN)) == expected
    assert points > 20


@pytest.mark.parametrize(
    ("operation", "skips"), [("rename", 1), ("remove", 3), ("sync directory", 3)]
)
def test_files_that_cannot_be_removed_wait_for_the_next_start(operation: str, skips: int) -> None:
    for skip in range(skips):
        fs = SimFileSystem(clock=SimClock(NOW))
        log = filled(fs, skip)
        expected = committed(log)

        def break_down(fs: SimFileSystem = fs, skip: int = skip) -> None:
            fs.inject(operation, path="/data/t-0", skip=skip, times=100)

        with pytest.raises(Exception, match=r"closed|injected"):
            run_until_given_up(fs, log, give_up_in_turn, break_down)
        fs._faults.clear()
        assert log.compaction.is_stuck
        for cut in range(5):
            assert committed(opened(fs.after_crash(cut), CLEAN)) == expected


@pytest.mark.parametrize("seed", range(2))
def test_runs_that_end_and_runs_that_are_given_up_change_nothing_for_readers(seed: int) -> None:
    life = AbortingLife(seed, 1)
    life.live()
    assert life.points > 100
