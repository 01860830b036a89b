"""The power goes at every call of the disk and of the store while a log moves to the store."""

from collections.abc import Iterator

import pytest

from tests.support.tier.compacted_crash_world import CompactedCrashWorld, live_compacted
from tests.support.tier.often_full import often_full
from tests.support.tier.tier_crash_world import TierCrashWorld, live


@pytest.fixture(autouse=True)
def _manifests_are_left_behind() -> Iterator[None]:
    with often_full():
        yield


ENDS_ITS_TIER = 0
"""The life of this seed does."""


@pytest.mark.parametrize("seed", range(2))
def test_promises_survive_a_stop_at_every_call_of_disk_and_store(seed: int) -> None:
    world = TierCrashWorld(seed, 1)
    live(world)
    assert world.points > 200
    assert world.copies > 3
    assert world.withdrawn or seed != ENDS_ITS_TIER
    assert world.orphans > 10, "no stop left an orphan for the sweep"
    assert world.damaged == 0, "a log ended read-only after mere power cuts"


@pytest.mark.parametrize("seed", range(10, 11))
def test_promises_survive_a_power_cut_during_the_start_after_one(seed: int) -> None:
    world = TierCrashWorld(seed, 1, nested=True)
    live(world)
    assert world.points > 100


@pytest.mark.parametrize("seed", range(3))
def test_state_that_compaction_rewrites_is_whole_in_the_store_at_every_call(seed: int) -> None:
    """As topics of committed offsets are: copied, and never off the disk."""
    world = CompactedCrashWorld(seed, 1, is_tiered=False)
    live_compacted(world)
    assert world.points > 200
    assert world.copies > 3
    assert world.runs == 4


@pytest.mark.parametrize("seed", range(4))
def test_a_compacted_log_in_both_tiers_loses_no_key_at_any_call(seed: int) -> None:
    world = CompactedCrashWorld(seed, 1, is_tiered=True, nested=seed == 3)
    live_compacted(world)
    assert world.points > 200
    assert world.cleaned_away > 3
    assert world.dropped > 3
