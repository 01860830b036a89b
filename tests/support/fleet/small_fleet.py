"""Nodes of a fleet on a virtual loop, whose rows and stores a test has in its hand."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from broker.fleet.catalog.rows import FleetFacts, NewTopics, NodeAddress, Registration, TopicRow
from broker.fleet.committer import CommitStore, FleetReach
from broker.fleet.host import ShardHost
from broker.fleet.image import FleetImage
from broker.fleet.life import FleetNode
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from tests.support.fleet.inline import Inline
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.model_catalog import ModelCatalog

FLEET = FleetFacts(UUID(int=1), "cluster", 4)
NOW = 1_700_000_000_000
TIMES = FleetTimes(renew=0.2, watch=0.1)


async def rows_with(*topics: TopicRow) -> ModelCatalog:
    """The rows of a fleet with these topics."""
    rows = ModelCatalog(FLEET, lambda: NOW)
    await rows.create_topics(NewTopics(topics))
    return rows


class SmallNode:
    """A node, begun on the running loop."""

    def __init__(
        self,
        rows: ModelCatalog,
        node_id: int,
        host: ShardHost,
        image: FleetImage | None = None,
        *,
        store: CommitStore | None = None,
        times: FleetTimes = TIMES,
    ) -> None:
        self.tally = FleetTally()
        reach = FleetReach(rows, store, LoopTime(), times, Inline(), self.tally)
        order = Registration(node_id, UUID(int=node_id), NodeAddress("host", node_id), "1")
        self.node = FleetNode(reach, host, order, FLEET.fleet_id, image or LogsAlone())
        self.task = asyncio.ensure_future(self.node.run())

    async def stop(self) -> None:
        """Kills it."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def owners(rows: ModelCatalog) -> Sequence[int | None]:
    """Of each shard the node that has it."""
    return [None if each.owner is None else each.owner.node_id for each in rows.shard_rows]
