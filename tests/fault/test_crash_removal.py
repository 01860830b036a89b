"""The power goes at every call while segments leave a log: no hole, and only what was to go."""

import pytest

from tests.support.disk.crash_world import CrashWorld
from tests.support.disk.removal_world import SETTINGS, RemovalWorld, live


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("seed", range(2))
def test_a_power_cut_at_any_call_of_a_removal(settings: dict[str, object], seed: int) -> None:
    world = RemovalWorld(seed, 2, **settings)
    live(world)
    assert world.points > 50
    assert world.decided > 0


@pytest.mark.parametrize("seed", range(10, 13))
def test_a_power_cut_while_recovering_from_one(seed: int) -> None:
    world = RemovalWorld(seed, 1, nested=True, **SETTINGS[seed % 4])
    live(world)
    assert world.decided > 0


def test_what_a_start_removes_is_gone_before_a_checkpoint_forgets_the_start_offset() -> None:
    """The entry of a start offset at which a segment begins is dropped: nothing else tells it."""
    world = CrashWorld(3, 0)
    world.create()
    while len(world.log.snapshot.segments) < 3:
        world.append()
    world.sync()
    begin = world.log.snapshot.segments[1].base_offset
    world.delete_records(begin)
    world.fs.on_call = None
    assert world.manager.close()
    started = world.fs.after_kill()  # the first segment's files are there still
    manager = world.started(started)
    assert manager.logs["t", 0].snapshot.segments[0].base_offset == begin
    manager.checkpoint()
    for seed in range(20):
        found = world.started(started.after_crash(seed)).logs["t", 0].snapshot
        assert found.log_start_offset == begin, "deleted records came back"
