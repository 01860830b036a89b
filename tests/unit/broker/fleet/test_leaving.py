"""A node that stops gives its shards away, and gets none back meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from broker.fleet.catalog.rows import (
    FleetFacts,
    Incarnation,
    NewTopics,
    NodeRow,
    OwnedShard,
    ShardRow,
    TopicRow,
)
from tests.support.fleet.machines.sim_host import Disk, SimHost
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.small_fleet import NOW, SmallNode, owners
from tests.support.fleet.virtual_loop import run_virtual

SHARDS = 12
ANSWER_SECONDS = 0.01


class DistantRows(ModelCatalog):
    """Each answer takes a moment, in which others go on."""

    async def nodes(self) -> Sequence[NodeRow]:
        await asyncio.sleep(ANSWER_SECONDS)
        return await super().nodes()

    async def shards(self) -> Sequence[ShardRow]:
        await asyncio.sleep(ANSWER_SECONDS)
        return await super().shards()

    async def give(self, me: Incarnation, shard: OwnedShard, to: Incarnation) -> bool:
        await asyncio.sleep(ANSWER_SECONDS)
        return await super().give(me, shard, to)


Story = Callable[[ModelCatalog, Sequence[SmallNode]], Awaitable[None]]


def run(story: Story) -> None:
    """`story` of three nodes that have four shards each."""

    async def whole() -> None:
        rows = DistantRows(FleetFacts(UUID(int=1), "cluster", SHARDS), lambda: NOW)
        await rows.create_topics(NewTopics([TopicRow(UUID(int=100), "t", range(SHARDS))]))
        nodes = [SmallNode(rows, each, SimHost(Disk())) for each in (1, 2, 3)]
        await asyncio.sleep(20)
        assert sorted(map(str, owners(rows))) == ["1"] * 4 + ["2"] * 4 + ["3"] * 4
        await story(rows, nodes)
        for each in nodes:
            await each.stop()

    run_virtual(whole())


def epochs(rows: ModelCatalog) -> int:
    """Rises by one with each hand-over."""
    return sum(each.epoch for each in rows.shard_rows)


def test_each_of_its_shards_moves_once() -> None:
    """Also while it answers what it was asked before, and has nothing any more."""

    async def story(rows: ModelCatalog, nodes: Sequence[SmallNode]) -> None:
        before = epochs(rows)
        await asyncio.wait_for(nodes[0].node.leave(), 5)
        for _ in range(50):
            assert 1 not in owners(rows)
            await asyncio.sleep(0.1)
        assert epochs(rows) - before == 4

    run(story)


def test_it_leaves_with_nothing_whenever_it_is_asked_to() -> None:
    """A look that began before has not seen what there is to be given."""

    async def story(rows: ModelCatalog, nodes: Sequence[SmallNode]) -> None:
        for step in range(20):
            await asyncio.sleep(0.1 + step * ANSWER_SECONDS / 2)
            leaver = nodes[0].node
            await asyncio.wait_for(leaver.leave(), 5)
            assert 1 not in owners(rows), f"{step}: it said that it had nothing"
            await nodes[0].stop()
            nodes[0] = SmallNode(rows, 1, SimHost(Disk()))  # type: ignore[index]
            await asyncio.sleep(5)
            assert owners(rows).count(1) == 4, "its next life gets its share"

    run(story)


def test_the_last_ones_that_leave_keep_what_nobody_takes() -> None:
    """A fleet that is stopped as a whole is stopped soon."""

    async def story(rows: ModelCatalog, nodes: Sequence[SmallNode]) -> None:
        before = epochs(rows)
        await asyncio.wait_for(asyncio.gather(*(each.node.leave() for each in nodes)), 5)
        assert None not in owners(rows)
        assert epochs(rows) - before <= SHARDS

    run(story)
