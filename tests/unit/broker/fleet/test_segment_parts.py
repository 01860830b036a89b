"""Logs that are in segments in the store: each leader has what is committed, wherever it is."""

import asyncio
from collections.abc import Iterable

import pytest

from broker.fleet.catalog.rows import CommittedSpan, OwnedShard
from broker.fleet.frame import ArrivedBatch
from broker.fleet.host import OwnedLog
from broker.fleet.led_segments import LedSegments
from protocol.records.builder import build_batch
from storage.errors import LogOffline
from storage.tier.manifests.manifest import RemoteSegment
from storage.tier.names import epoch_of
from storage.tier.port import StoreError
from storage.tier.tiered_log import TieredLog
from tests.support.fleet.segment_history import (
    STEPS,
    History,
    play_segments,
    swept_segments,
)
from tests.support.fleet.segment_world import check

HISTORIES = 40
ONCE_LOST = (500181,)
"""Part of a closed part was named in the place of all of it."""
ONCE_REFUSED = (53, 61)
"""Batches of a producer were compacted away between two that a disk did not have together."""
ONCE_UNKNOWN = (42, 78, 85, 91, 94)
"""A marker alone was left of a producer, and its sequences were refused."""
ONCE_NOT_LOADED = (1116, 1267, 1443, 2046)
"""What a disk had of before the start ended within a batch that counts."""


@pytest.mark.parametrize("seed", [*range(HISTORIES), *ONCE_NOT_LOADED, *ONCE_UNKNOWN])
async def test_each_leader_has_what_is_committed_whatever_its_disk_has(seed: int) -> None:
    assert 1 < await play_segments(seed) <= STEPS


@pytest.mark.parametrize("seed", [*range(HISTORIES), *ONCE_LOST, *ONCE_REFUSED])
async def test_compaction_loses_no_key_whoever_leads(seed: int) -> None:
    assert 1 < await play_segments(seed, is_compacted=True) <= STEPS


@pytest.mark.parametrize("case", ["nothing here", "all here", "nothing left"])
@pytest.mark.parametrize("steps", range(4))
async def test_a_load_that_was_given_up_changes_nothing_of_the_next_one(
    steps: int, case: str
) -> None:
    """A thread goes on after its life has ended, and is slower than all of the next life."""
    history = History(0, transacts=False)
    leader, node = history.nodes[:2]
    history.leader = leader
    await leader.lead(history.rows)
    for _ in range(3):
        await history.write()
        history.log.log.roll()
    while leader.tiered.copy_next(lambda _: None):
        history.rows.name(leader.tiered)
    if case == "all here":
        await node.lead(history.rows)
    rows, lane = history.rows, node.lane
    lane.held = True
    rows.epoch += 1
    given_up = asyncio.ensure_future(
        node.host.load(rows.row(), OwnedShard(1, rows.epoch), rows.bytes_of)
    )
    for _ in range(steps):
        await asyncio.sleep(0.001)
        if lane.waiting:
            lane.release()
    await asyncio.sleep(0.001)
    given_up.cancel()
    if case == "nothing left":
        rows.trim(len(rows.values))
    lane.held = False
    history.leader = node
    next_one = asyncio.ensure_future(node.lead(rows))
    await asyncio.sleep(0.01)
    while lane.waiting:
        lane.release()
    await next_one
    check(rows, history.log, is_compacted=False)
    assert node.tiered.is_led
    assert epoch_of(node.tiered.keys) == rows.epoch
    assert node.tiered.log is history.log.log
    await history.write()
    history.log.log.roll()
    assert node.tiered.copy_next(lambda _: None) is not None


async def test_a_node_that_never_served_a_log_sweeps_nothing_of_its_leader() -> None:
    """Its load failed behind the manifest, and the shard went to another node."""
    history = History(0, transacts=False)
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


async def test_segments_that_the_rows_name_stay_until_they_name_others() -> None:
    """Compaction has put others in their place, in a manifest that the rows do not have yet."""
    history = History(0, is_compacted=True, transacts=False)
    history.leader = leader = history.nodes[0]
    await leader.lead(history.rows)
    await history.write()
    history.log.log.roll()
    _mirror(history)
    history.rows.name(leader.tiered)
    leader.tiered.show()
    named = {
        key for row in leader.tiered.manifest.segments for key in leader.tiered.objects_of(row)
    }
    await history.clean()
    _mirror(history)
    replaced = _objects_of(leader.tiered, leader.tiered.replaced)
    assert replaced
    history.sweep()
    assert named <= set(history.store.objects)
    history.rows.name(leader.tiered)
    leader.tiered.show()
    history.sweep()
    assert not replaced & set(history.store.objects)


def _objects_of(tiered: TieredLog, rows: Iterable[RemoteSegment]) -> set[str]:
    return {key for row in rows for key in tiered.objects_of(row)}


async def test_a_leader_knows_producers_whose_batches_were_compacted_away() -> None:
    """The latest of one is not committed: compaction kept that, and not what was."""
    history = History(0, is_compacted=True, transacts=False)
    history.leader = leader = history.nodes[0]
    await leader.lead(history.rows)
    sent = [_batch(1, 0), _batch(2, 0)]
    offsets = [history.send(each) for each in sent]
    history.rows.commit(history.log)
    history.log.log.roll()
    history.send(_batch(1, 1))
    await history.clean()
    _mirror(history)
    history.rows.name(leader.tiered)
    assert leader.tiered.manifest.end_offset == len(sent)
    history.leader = other = history.nodes[1]
    await other.lead(history.rows)
    assert [history.send(each) for each in sent] == offsets
    assert history.log.end_offset == len(sent)


async def test_a_manifest_of_an_earlier_epoch_is_not_named_in_the_present_one() -> None:
    """The same log, led once more by the same node while a copy was under way."""
    history = History(0, transacts=False)
    history.leader = leader = history.nodes[0]
    await leader.lead(history.rows)
    await history.write()
    history.log.log.roll()
    before, first = leader.tiered, history.log.log
    before.copy_next(lambda _: None)
    await leader.lead(history.rows)
    assert history.log.log is first
    asked = _Asked()
    segments = LedSegments(lambda log: history.log if log is first else None, lambda: asked)
    with pytest.raises(LogOffline, match="once more"):
        await segments.named(before)
    leader.tiered.copy_next(lambda _: None)
    await segments.named(leader.tiered)
    assert asked.names == [(2, 1)]


async def test_work_of_an_earlier_epoch_shows_the_log_nothing_any_more() -> None:
    """A turn that waited for long, while the same node began to lead once more and copied on."""
    history = History(0, transacts=False)
    history.leader = leader = history.nodes[0]
    await leader.lead(history.rows)
    await history.write()
    history.log.log.roll()
    while leader.tiered.copy_next(lambda _: None):
        history.rows.name(leader.tiered)
    before = leader.tiered
    await leader.lead(history.rows)
    await history.write()
    history.log.log.roll()
    while leader.tiered.copy_next(lambda _: None):
        history.rows.name(leader.tiered)
    leader.tiered.show()
    have = history.log.log.snapshot
    before.show()
    assert history.log.log.snapshot is have
    with pytest.raises(LogOffline):
        before.leave(history.log.end_offset)


class _Asked:
    """Rows that take every name."""

    def __init__(self) -> None:
        self.names: list[tuple[int, int]] = []

    async def name_manifest(self, log: OwnedLog, number: int, _: int) -> bool:
        self.names.append((log.shard.epoch, number))
        return True

    async def trim(self, _: OwnedLog) -> bool:
        return True


def _batch(producer: int, sequence: int) -> bytes:
    return bytes(
        build_batch(
            [(1, b"key", b"7")], producer_id=producer, producer_epoch=0, base_sequence=sequence
        )
    )


def _mirror(history: History) -> None:
    tiered, logs = history.leader.tiered, history.leader.logs
    history.log.log.mark_durable(history.log.log.sync())
    while tiered.mirror_next(lambda _: None, logs.cleaner_offsets.clean_part(("t", 0))):
        pass


async def test_a_sweep_takes_what_nobody_names_and_nothing_that_counts() -> None:
    assert sum([await swept_segments(seed) for seed in range(10)]) > 0
