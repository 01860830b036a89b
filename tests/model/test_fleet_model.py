"""Histories of a fleet, by seed: nodes that die, stop, are cut off and wake, on a catalog whose
answers are lost, late and doubled. `scripts/prove fleet` plays more of them.
"""

import pytest

from tests.prove import quietly
from tests.support.fleet.fleet_history import play

HISTORIES = 60
REAL_HISTORIES = 40


@pytest.mark.parametrize("part", range(4))
def test_nothing_acknowledged_is_lost_or_there_twice(part: int) -> None:
    with quietly():
        for seed in range(part, HISTORIES, 4):
            play(seed)


@pytest.mark.parametrize("part", range(4))
def test_with_real_logs_that_lose_what_was_not_synced(part: int) -> None:
    with quietly():
        for seed in range(part, REAL_HISTORIES, 4):
            play(seed, has_real_logs=True)


def test_histories_have_what_they_are_about() -> None:
    with quietly():
        lived = [play(seed) for seed in range(12)]
    assert sum(each.lives for each in lived) > 60
    assert sum(each.shards_taken for each in lived) > 100
    assert len({kind for each in lived for kind in each.faults}) >= 10


def test_a_seed_is_one_history() -> None:
    with quietly():
        assert play(7) == play(7)
