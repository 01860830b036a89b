"""A shard that is given away before all of it was loaded, and comes back in the same epoch.

What was written in between would be cut at the second load, and its commit might still count.
"""

import asyncio
import random
from typing import Any
from uuid import UUID

from broker.fleet.catalog.rows import (
    NodeAddress,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Registration,
    TopicRow,
)
from broker.fleet.host import BytesOf, OwnedLog
from tests.support.fleet.machines.commit_store import CommitsInMemory
from tests.support.fleet.machines.real_host import RealDisk, RealHost
from tests.support.fleet.machines.sim_host import Value
from tests.support.fleet.small_fleet import NOW, TIMES, SmallNode, rows_with
from tests.support.fleet.virtual_loop import run_virtual

T = UUID(int=100)
P0, P1 = PartitionKey(T, 0), PartitionKey(T, 1)


class SlowLoad:
    """The first load of one partition takes until the test says so."""

    def __init__(self, host: RealHost) -> None:
        self._shards, self.may_load, self.loads = host.shards, asyncio.Event(), 0

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        if row.partition == P1:
            self.loads += 1
            await self.may_load.wait()
        return await self._shards.load(row, shard, bytes_of)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._shards, name)


async def story() -> None:
    rows, disk = await rows_with(TopicRow(T, "t", [3, 3])), RealDisk(1, lambda: NOW)
    host = disk.host(random.Random(1))
    slow, store = SlowLoad(host), CommitsInMemory(0.5)
    node = SmallNode(rows, 1, slow, store=store, times=TIMES._replace(inline_bytes=1))
    await asyncio.sleep(0.4)
    assert list(host.served) == [P0], "the other one is being loaded"
    first = node.node.life
    assert first is not None
    end = host.served[P0].append([Value(1, 0)], 0, NOW)
    first.committer.request(host.served[P0].owned, end, lambda _: None)

    two = await rows.register(Registration(2, UUID(int=2), NodeAddress("host", 2), "1"))
    assert two is not None
    await asyncio.sleep(0.25)
    assert not host.served[P0].takes_writes, "the shard is being given, once P0 is flushed"
    slow.may_load.set()
    await asyncio.sleep(0.05)
    assert P1 not in host.served
    await rows.resign(two)  # who was to have it is gone
    await asyncio.sleep(2)
    assert host.served.keys() == {P0, P1}, "the rows have the shard as this node's still"
    end = host.served[P1].append([Value(7, 0)], 0, NOW)
    told: list[BaseException | None] = []
    first.committer.request(host.served[P1].owned, end, told.append)
    await asyncio.sleep(1)
    assert told == [None]
    assert node.tally.lives == 1
    await node.stop()


def test_a_partition_whose_load_ends_then_is_not_served() -> None:
    run_virtual(story())
