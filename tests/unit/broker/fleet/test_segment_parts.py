"""Logs that are in segments in the store: each leader has what is committed, wherever it is."""

import pytest

from broker.fleet.catalog.rows import CommittedSpan, OwnedShard
from broker.fleet.frame import ArrivedBatch
from storage.tier.port import StoreError
from tests.support.fleet.segment_history import STEPS, History, play_segments, swept_segments

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


async def test_a_node_that_never_served_a_log_sweeps_nothing_of_its_leader() -> None:
    """Its load failed behind the manifest, and the shard went to another node."""
    history = History(0)
    leader, other = history.nodes[:2]
    history.leader = leader
    await leader.lead(history.rows)
    await history.write()

    async def away(_: CommittedSpan) -> list[ArrivedBatch]:
        raise StoreError("wal/1", "get", "the store is away")

    with pytest.raises(StoreError):
        await other.host.load(history.rows.row(), OwnedShard(1, 2), away)
    history.rows.epoch = 2
    await leader.lead(history.rows)
    history.log.log.roll()
    leader.tiered.copy_next(lambda _: None)
    history.rows.name(leader.tiered)
    assert leader.tiered.manifest.segments
    before = set(history.store.objects)
    history.leader = other
    assert history.sweep() == 0
    assert set(history.store.objects) == before


async def test_a_sweep_takes_what_nobody_names_and_nothing_that_counts() -> None:
    assert sum([await swept_segments(seed) for seed in range(10)]) > 0
