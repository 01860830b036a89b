"""The sweep of a broker: which objects it takes for orphans, and when it does nothing."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from broker.tier.standing import TierOwner, TierStanding
from broker.tier.sweep import Sweep, SweepParts
from broker.tier.tally import TierTally
from broker.tier.tier import Tier
from broker.tier.trash import Trash
from broker.topics.new_topic import NewTopic
from storage.directory.topics_file import FILE_NAME, CatalogState, parse, render
from storage.tier.names import PartitionKeys
from storage.tier.orphans import OrphanSweep
from tests.support.records.logs import records_of
from tests.support.tier.memory_store import MemoryStore
from tests.support.worlds.handler_world import LOG_DIR, World

DAY_MS = 86_400_000
TIER = {"remote_log_storage_system_enable": "true", "horolog_tier_url": "s3://bucket/prefix"}
GONE, KEPT, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)


class SweptWorld(World):
    """A broker with a tier whose store is in memory, and its sweep."""

    def __init__(self, copies: Any = None, **more: Any) -> None:
        """`copies`: lane of calls to the store; None: they are made where they are asked for."""
        super().__init__(**more, **TIER)
        self.store = self.made_store()
        broker = self.broker
        self.tier = cast(
            "Tier",
            SimpleNamespace(
                store=self.store,
                copies=copies or self.lanes,
                trash=Trash(self.store, self.clock.monotonic),
                tally=TierTally(),
                orphans=OrphanSweep(self.store, self.clock, lambda keys: None),
            ),
        )
        owner = TierOwner(self.tier, broker.logs, self.env, broker.lane, 1)
        self.standing = TierStanding(owner)
        self.sweep = Sweep(
            SweepParts(broker.topics, broker.config, broker.clock_watch, self.tier, self.standing)
        )

    def made_store(self) -> MemoryStore:
        return MemoryStore(self.clock.now_ms)

    async def round(self) -> set[str]:
        """A sweep, a day later; the objects of topics that stay."""
        self.clock.advance(DAY_MS)
        await self.sweep.run()
        return {key for key in self.store.objects if key.startswith("topics/")}


def lost_in(topic_id: UUID, topic: str = "t") -> str:
    return PartitionKeys(topic, topic_id, 0).segment(0, f"{7:016x}", ".log")


@pytest.fixture
async def world() -> SweptWorld:
    world = SweptWorld()
    for name, topic_id in (("gone", GONE), ("kept", KEPT)):
        async with world.broker.topics.changing:
            await world.broker.topics.create([NewTopic(name, topic_id, 1, {})])
    return world


async def test_a_topic_that_was_deleted_is_cleared_and_then_forgotten(world: SweptWorld) -> None:
    mine, unknown = lost_in(GONE), lost_in(OTHER)
    world.store.put_new(mine, b"x")
    world.store.put_new(unknown, b"x")
    async with world.broker.topics.changing:
        await world.broker.topics.delete(["gone"])
    assert await world.round() == {mine, unknown}
    assert world.tier.tally.orphans.objects == 1
    assert await world.round() == {unknown}
    assert world.tier.tally.orphans.objects == 0
    assert world.tier.tally.removed_orphans == 1
    assert world.broker.topics.deleted == {GONE}
    await world.round()
    assert world.broker.topics.deleted == {GONE}
    await world.round()
    assert world.broker.topics.deleted == frozenset()


async def test_a_start_knows_of_deleted_topics(world: SweptWorld) -> None:
    mine = lost_in(GONE)
    async with world.broker.topics.changing:
        await world.broker.topics.delete(["gone"])
    again = SweptWorld(fs=world.fs.after_kill())
    again.store.put_new(mine, b"x")
    assert again.broker.topics.deleted == {GONE}
    assert parse(again.fs.read_bytes(f"{LOG_DIR}/{FILE_NAME}")).deleted == {GONE}
    assert await again.round() == {mine}
    assert await again.round() == set()


async def test_a_topic_that_exists_is_not_deleted_though_the_file_says_so(
    world: SweptWorld,
) -> None:
    """A file of a node that could not make it at once, and then could."""
    path = f"{LOG_DIR}/{FILE_NAME}"
    await world.produce(b"kept", topic="kept")
    both = CatalogState(parse(world.fs.read_bytes(path)).topics, frozenset((GONE, KEPT)))
    world.fs.write_atomically(path, render(both))
    again = SweptWorld(fs=world.fs.after_kill())
    assert [each.value for each in records_of(again.partition("kept").log)] == [b"kept"]
    assert again.broker.topics.deleted == frozenset()


async def test_a_sweep_asks_for_no_topic_that_exists(world: SweptWorld) -> None:
    world.broker.topics.deleted = frozenset((KEPT, OTHER))
    order = world.sweep._order()
    assert order.live == {GONE, KEPT}
    assert order.deleted == {OTHER}


async def test_a_broker_without_a_tier_keeps_no_ids(world: SweptWorld) -> None:
    async with world.broker.topics.changing:
        await world.broker.topics.delete(["gone"])
    assert World(fs=world.fs.after_kill()).broker.topics.deleted == frozenset()


async def test_what_waits_in_the_trash_is_left_to_it(world: SweptWorld) -> None:
    mine = lost_in(KEPT, "kept")
    world.store.put_new(mine, b"x")
    world.tier.trash.put([mine], 10 * DAY_MS)
    for _ in range(3):
        assert await world.round() == {mine}
    assert not world.tier.tally.orphans.objects


async def test_nothing_goes_while_the_clock_is_unverified(world: SweptWorld) -> None:
    mine = lost_in(KEPT, "kept")
    world.store.put_new(mine, b"x")
    for _ in range(3):
        world.clock.step(2 * DAY_MS)
        await world.sweep.run()
    assert mine in world.store.objects
    assert not world.tier.tally.orphans.objects


async def test_a_place_of_another_cluster_is_not_swept(world: SweptWorld) -> None:
    mine = lost_in(KEPT, "kept")
    world.store.put_new(mine, b"x")
    await world.round()
    world.store.objects["horolog.json"] = b"?"
    fresh = SweptWorld(fs=world.fs.after_kill())
    fresh.store.objects, fresh.store.modified_ms = world.store.objects, world.store.modified_ms
    for _ in range(3):
        assert await fresh.round() == {mine}
    assert not fresh.tier.tally.orphans.objects
