"""The power goes at every call while segments leave a log: no hole, and only what was to go."""

import pytest

from tests.support.removal_world import SETTINGS, RemovalWorld, live


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
