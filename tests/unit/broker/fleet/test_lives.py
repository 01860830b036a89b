"""Lives of a node: whatever goes wrong between two of them, another one begins."""

import asyncio
from typing import Any
from uuid import UUID

from broker.fleet.catalog.rows import FleetFacts, NodeAddress, Registration
from broker.fleet.committer import FleetReach
from broker.fleet.life import FleetNode
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from tests.support.fleet.inline import Inline
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.machines.sim_host import Disk, SimHost
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.virtual_loop import run_virtual

FLEET = FleetFacts(UUID(int=1), "cluster", 4)


class BrokenAtFirst:
    """The catalog, whose library has a fault of its own at the first registration."""

    def __init__(self) -> None:
        self._rows = ModelCatalog(FLEET, lambda: 0)
        self._faults = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rows, name)

    async def register(self, order: Registration) -> Any:
        if self._faults:
            self._faults -= 1
            raise RuntimeError("the handler is closed")
        return await self._rows.register(order)


def test_a_registration_that_fails_in_an_unknown_way_is_made_again() -> None:
    async def story() -> None:
        rows: Any = BrokenAtFirst()
        reach = FleetReach(rows, None, LoopTime(), FleetTimes(), Inline(), FleetTally())
        order = Registration(1, UUID(int=1), NodeAddress("h", 1), "1")
        node = FleetNode(reach, SimHost(Disk()), order, FLEET.fleet_id, LogsAlone())
        task = asyncio.ensure_future(node.run())
        await asyncio.sleep(5)
        assert node.life is not None
        assert node.life.ownership.shards
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert node.life is None

    run_virtual(story())
