"""The power goes at every call while a log is compacted: nothing is lost, nothing comes back."""

import pytest

from storage.files.partition_listing import list_partition
from tests.support.disk.cleaning_world import CleaningWorld, live, names_on
from tests.support.disk.simdisk import SimFileSystem, SimulatedCrash


@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_any_call_of_a_run(seed: int) -> None:
    world = CleaningWorld(seed, 2, delete_retention_ms=1000)
    live(world)
    assert world.points > 50
    assert world.runs == 3


class SettlingWorld(CleaningWorld):
    """The process is killed at a call of a run; the next start loses its power at every call."""

    segment_sizes = (10_000,)

    def _look(self, call: int) -> None:
        killed = self.fs.after_kill()
        if not any(name.endswith((".cleaned", ".swap")) for name in names_on(killed)):
            return
        crash_at, is_over = 0, False
        while not is_over:
            crash_at += 1
            disk = killed.after_kill()
            disk.crash_at = crash_at
            is_over = self._is_settled(disk)
            for seed in range(3):
                self.points += 1
                self.judge(disk.after_crash(1000 * call + 10 * crash_at + seed))

    def _is_settled(self, disk: SimFileSystem) -> bool:
        """Whether the start came so far that nothing of the run is left."""
        try:
            list_partition(disk, "/data/t-0")
        except SimulatedCrash:
            return False
        return True


@pytest.mark.parametrize("seed", range(20, 21))
def test_a_power_cut_at_any_call_of_what_settles_a_run(seed: int) -> None:
    world = SettlingWorld(seed, 1, delete_retention_ms=1000)
    live(world, rounds=1)
    assert world.points > 200
