"""Looks at nodes: who is gone is fenced, who was away with the catalog is not."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from broker.fleet.catalog.port import CatalogAway
from broker.fleet.catalog.rows import FleetFacts, Incarnation, NodeAddress, Registration
from broker.fleet.committer import FleetReach
from broker.fleet.life import FleetNode
from broker.fleet.node_watch import NodeWatch
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from tests.support.fleet.inline import Inline
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.machines.sim_host import Disk, SimHost
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.virtual_loop import run_virtual

FLEET = FleetFacts(UUID(int=1), "cluster", 4)
TIMES = FleetTimes()


def order(number: int) -> Registration:
    return Registration(number, UUID(int=number), NodeAddress("h", number), "1")


class Outages:
    """The catalog, which answers nothing while it is away."""

    def __init__(self) -> None:
        self.rows = ModelCatalog(FLEET, lambda: 0)
        self.is_away = False
        self.stall = 0.0
        """Seconds until the next answer."""
        self.usual = self.refusal = lambda: 0.0
        """Seconds until any other one, and until it is known to be away."""

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.rows, name)

        async def asked(*arguments: Any) -> Any:
            if self.is_away:
                await asyncio.sleep(self.refusal())
                raise CatalogAway("connection refused")
            stall, self.stall = self.stall or self.usual(), 0.0
            await asyncio.sleep(stall)
            return await call(*arguments)

        return asked


class Watching:
    """A node that looks at one that renews its lease only when the test says so."""

    def __init__(self) -> None:
        self.catalog = Outages()
        catalog: Any = self.catalog
        self.watch = NodeWatch(catalog, LoopTime(), TIMES)

    async def begin(self) -> Incarnation:
        other = await self.catalog.rows.register(order(2))
        assert other is not None
        await self.watch.look(is_alive=True)
        return other

    async def look_after(self, *seconds: float) -> None:
        for each in seconds:
            await asyncio.sleep(each)
            await self.watch.look(is_alive=True)

    async def fails_after(self, seconds: float) -> None:
        self.catalog.is_away = True
        await asyncio.sleep(seconds)
        with pytest.raises(CatalogAway):
            await self.watch.look(is_alive=True)
        self.catalog.is_away = False

    async def has_fenced(self) -> bool:
        [other] = await self.catalog.rows.nodes()
        return other.is_fenced


def test_a_node_that_renews_nothing_for_a_lease_is_fenced() -> None:
    async def story() -> None:
        watching = Watching()
        await watching.begin()
        await watching.look_after(*[1.0] * 5)
        assert not await watching.has_fenced()
        await watching.look_after(0.1)
        assert await watching.has_fenced()

    run_virtual(story())


@pytest.mark.parametrize("seconds", [2.0, 15.0])
def test_after_an_outage_each_node_has_a_lease_to_come_back(seconds: float) -> None:
    async def story() -> None:
        watching = Watching()
        other = await watching.begin()
        await watching.look_after(*[1.0] * 3)
        await watching.fails_after(seconds)
        await watching.look_after(1.0, *[1.0] * 4)
        assert not await watching.has_fenced()
        await watching.catalog.rows.renew(other)
        await watching.look_after(*[1.0] * 5)
        assert not await watching.has_fenced()
        await watching.look_after(1.0, 1.0)
        assert await watching.has_fenced(), "it is gone"

    run_virtual(story())


def test_an_answer_that_took_long_says_nothing_of_others() -> None:
    async def story() -> None:
        watching = Watching()
        await watching.begin()
        await watching.look_after(1.0, 1.0)
        watching.catalog.stall = 4.0
        await watching.look_after(0.0)
        assert not await watching.has_fenced()

    run_virtual(story())


def test_who_is_slow_itself_fences_all_the_same() -> None:
    async def story() -> None:
        watching = Watching()
        await watching.begin()
        await watching.look_after(4.0, 4.0)
        assert await watching.has_fenced()

    run_virtual(story())


def test_answers_that_are_lost_now_and_then_keep_nobody_alive() -> None:
    async def story() -> None:
        watching = Watching()
        await watching.begin()
        for _ in range(5):
            await watching.look_after(0.7)
            await watching.fails_after(0.7)
        assert await watching.has_fenced()

    run_virtual(story())


class AsksFirst(LogsAlone):
    """Has a question of its own, before nodes are looked at."""

    def __init__(self, catalog: Outages) -> None:
        self._catalog = catalog

    async def follow(self, metadata_version: int) -> None:
        await self._catalog.facts()


async def lives_ended(node_ids: Sequence[int], outage: float, dice: random.Random) -> int:
    """Of nodes that are all well, whose catalog is away for a while."""
    catalog, tallies, tasks = Outages(), list[FleetTally](), list[asyncio.Future[None]]()
    rows: Any = catalog
    catalog.usual, catalog.refusal = lambda: dice.expovariate(50), dice.random
    for number in node_ids:
        tally = FleetTally()
        reach = FleetReach(rows, None, LoopTime(), TIMES, Inline(), tally)
        image = AsksFirst(catalog)
        node = FleetNode(reach, SimHost(Disk()), order(number), FLEET.fleet_id, image)
        tasks.append(asyncio.ensure_future(node.run()))
        tallies.append(tally)
        await asyncio.sleep(dice.random())
    await asyncio.sleep(10)
    catalog.is_away = True
    await asyncio.sleep(outage)
    catalog.is_away = False
    await asyncio.sleep(10)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return sum(each.lives - 1 for each in tallies)


@pytest.mark.parametrize("outage", [4.0, 7.0, 15.0])
def test_an_outage_of_the_catalog_ends_no_life(outage: float) -> None:
    """Whichever node is the first to reach it once more."""
    for seed in range(20):
        assert run_virtual(lives_ended((1, 2, 3), outage, random.Random(seed))) == 0, seed
