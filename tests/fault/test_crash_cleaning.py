"""The power goes at every call while a log is compacted: nothing is lost, nothing comes back."""

import pytest

from tests.support.cleaning_world import CleaningWorld


def live(world: CleaningWorld, rounds: int = 3) -> None:
    """Appends, runs, time that passes, restarts and kills."""
    world.create()
    dice = world.dice
    for _ in range(rounds):
        for _ in range(dice.randint(3, 9)):
            world.put()
        world.clean(dice.choice((5, 4096)))
        world.clock.advance(dice.choice((0, 500, 5000)))
        if dice.random() < 0.5:
            world.manager.remove_deleted()
        match dice.randrange(4):
            case 0:
                world.restart()
            case 1:
                world.kill()


@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_at_any_call_of_a_run(seed: int) -> None:
    world = CleaningWorld(seed, 2, delete_retention_ms=1000)
    live(world)
    assert world.points > 50
    assert world.runs == 3


@pytest.mark.parametrize("seed", range(10, 13))
def test_a_power_cut_while_the_next_start_settles_one(seed: int) -> None:
    world = CleaningWorld(seed, 1, nested=True, delete_retention_ms=1000)
    live(world, rounds=2)
    assert world.runs == 2
