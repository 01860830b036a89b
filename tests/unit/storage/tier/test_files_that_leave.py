"""Local files that go at once when the store has them: who reads goes on in the store."""

from collections.abc import Callable

import pytest

from storage.env import Env
from storage.errors import FileMissing
from storage.files.layout import DELETED, LOG, segment_name
from storage.log.lifecycle import learn_times
from storage.retention.plan import RetentionLimits
from storage.segment.removal import RemovedSegments
from tests.support.disk.simdisk import SimFile, SimFileSystem
from tests.support.disk.simenv import sim_env
from tests.support.records.logs import LOG_PATH, append
from tests.support.tier.tier_world import NOW, TierWorld

T0 = 1_700_000_000_000


class RacingDisk(SimFileSystem):
    """Does something just before a `.log` is opened, once."""

    race: Callable[[], None] | None = None
    directories_synced = 0

    def sync_dir(self, path: str) -> None:
        self.directories_synced += 1
        super().sync_dir(path)

    def open(self, path: str, *, create: bool = False, write: bool = True) -> SimFile:
        race, self.race = (self.race, None) if path.endswith(LOG) else (None, self.race)
        if race is not None:
            race()
        return super().open(path, create=create, write=write)


class LeavingWorld(TierWorld):
    """All that is closed has been copied, and is still in the directory."""

    def __init__(self) -> None:
        self.disk = RacingDisk()
        base = sim_env(fs=self.disk)
        super().__init__(Env(base.clock, self.disk, base.rng))
        for number in range(60):
            append(self.log, T0 + 10 * number, value=b"%0100d" % number)
        self.copy_all()
        base.clock.advance(60_000)  # all of it may leave by its age
        self.left = 0

    def leave(self) -> None:
        """The local copies go, and their files with them."""
        graves = RemovedSegments(self.env.clock)
        self.left = self.drop_all(bury=lambda gone: graves.bury(gone, 60_000))
        while graves.step(hurry=True):
            pass
        assert not [each for each in self.disk.list_dir(LOG_PATH) if DELETED in each.name]

    def race(self) -> None:
        """They do while the next reader is about to open one."""
        self.log.files.forget_all()
        self.disk.race = self.leave


@pytest.fixture
def world() -> LeavingWorld:
    return LeavingWorld()


def test_a_fetch_reads_on_in_the_store(world: LeavingWorld) -> None:
    world.race()
    assert [each.offset for each in world.records(20)] == list(range(20, 60))
    assert world.left > 3
    assert world.disk.race is None


def test_a_search_goes_on_in_the_store(world: LeavingWorld) -> None:
    world.race()
    found = world.log.search.first_at_or_after(T0 + 195)
    assert found is not None
    assert (found.offset, found.timestamp) == (20, T0 + 200)
    assert world.left > 3
    assert world.disk.race is None


def test_a_check_of_bytes_that_have_left_lets_the_fetch_find_that(world: LeavingWorld) -> None:
    world.reopen()
    data = world.log.read(0, 1 << 20, up_to=60, min_one_batch=True)
    assert data.unverified is not None, "the bytes are of an earlier process"
    world.log.files.forget_all()
    world.leave()
    data.unverified.settle()
    assert [each.offset for each in world.records(0)] == list(range(60))


def test_a_file_that_is_lost_otherwise_is_an_error(world: LeavingWorld) -> None:
    world.log.files.forget_all()
    world.disk.remove(f"{LOG_PATH}/{segment_name(0, LOG)}")
    with pytest.raises(FileMissing):
        world.log.read(0, 1 << 20, up_to=60, min_one_batch=True)
    with pytest.raises(FileMissing):
        world.log.search.first_at_or_after(T0)


def test_writers_do_not_wait_for_the_disk_when_files_leave(world: LeavingWorld) -> None:
    assert learn_times(world.log, 1000)
    below = world.tiered.leaving.droppable(NOW, world.env.clock.now_ms())
    world.tiered.leaving.vouch(below)
    before = world.disk.directories_synced
    left = sum(len(each) for each in iter(lambda: world.tiered.leave(below), ()))
    assert left > 3
    assert world.disk.directories_synced == before
    world.reopen()
    assert world.log.snapshot.local_start_offset == below


def test_a_log_is_at_rest_unless_files_may_leave_or_are_to(world: LeavingWorld) -> None:
    none, now_ms = RetentionLimits(-1, -1), world.env.clock.now_ms()
    assert learn_times(world.log, 1000)
    world.tiered.leaving.droppable(none, now_ms)
    assert world.tiered.leaving.is_at_rest
    below = world.tiered.leaving.droppable(NOW, now_ms)
    assert not world.tiered.leaving.is_at_rest
    world.tiered.leaving.vouch(below)
    world.tiered.leaving.droppable(none, now_ms)
    assert not world.tiered.leaving.is_at_rest, "it is durable that they go"
    while world.tiered.leave(0):
        pass
    assert world.log.snapshot.local_start_offset == below
    assert world.tiered.leaving.is_at_rest
