"""Logs that are in segments in the store: each leader has what is committed, wherever it is."""

import pytest

from tests.support.fleet.segment_history import STEPS, play_segments, swept_segments

HISTORIES = 40
ONCE_LOST = (500181,)
"""Part of a closed part was named in the place of all of it."""
ONCE_REFUSED = (53, 61)
"""Batches of a producer were compacted away between two that a disk did not have together."""
ONCE_NOT_LOADED = (1116, 1267, 1443, 2046)
"""What a disk had of before the start ended within a batch that counts."""


@pytest.mark.parametrize("seed", [*range(HISTORIES), *ONCE_NOT_LOADED])
async def test_each_leader_has_what_is_committed_whatever_its_disk_has(seed: int) -> None:
    assert 1 < await play_segments(seed) <= STEPS


@pytest.mark.parametrize("seed", [*range(HISTORIES), *ONCE_LOST, *ONCE_REFUSED])
async def test_compaction_loses_no_key_whoever_leads(seed: int) -> None:
    assert 1 < await play_segments(seed, is_compacted=True) <= STEPS


async def test_a_sweep_takes_what_nobody_names_and_nothing_that_counts() -> None:
    assert sum([await swept_segments(seed) for seed in range(10)]) > 0
