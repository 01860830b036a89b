"""Nodes of a fleet on a real PostgreSQL that dies under them, and nodes that die and stop.

Their logs are lists and their store is in memory; the rows, the connections and the time are real.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

import asyncpg
import pytest

from broker.fleet.bodies import BodyGone, CommittedBodies
from broker.fleet.catalog.line import LineLimits
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.rows import (
    Checkpoint,
    CommitId,
    NewTopics,
    NodeAddress,
    PartitionKey,
    Registration,
    TopicRow,
)
from broker.fleet.committer import FleetReach, NotCommitted, PendingCheckpoint
from broker.fleet.life import FleetNode
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from tests.support.fleet.inline import Inline
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.machines.sim_host import Disk, SimBatch, SimHost, Value, decoded
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published, postgres
from tests.support.patience import until

pytestmark = pytest.mark.skipif(
    not is_postgres_published(), reason="the package registry has no PostgreSQL for this machine"
)
NODES, SHARDS, PARTITIONS = 3, 4, 6
PRODUCERS, VALUES = 4, 60
TOPIC = UUID(int=100)
LIMITS = LineLimits(connect=1, answer=1)
TIMES = FleetTimes(
    lease=1.0, renew=0.2, watch=0.2, flush=0.002, inline_bytes=300, checkpoint=0.5, keep=60
)
TRIES = 5
PATIENCE_SECONDS = 60


class MemoryObjects:
    """A `CommitStore` that never fails."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    async def put(self, commit_id: CommitId, body: bytes) -> str:
        key = f"wal/{commit_id.incarnation.node_id}/{len(self.objects)}"
        self.objects[key] = body
        return key

    async def get(self, key: str) -> bytes:
        return self.objects[key]

    async def all(self) -> Sequence[tuple[str, int]]:
        return [(key, 0) for key in self.objects]

    async def remove(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)


class Machine:
    """A node, and the disk that it finds again."""

    def __init__(
        self,
        url: str,
        fleet_id: UUID,
        node_id: int,
        objects: MemoryObjects,
        *,
        times: FleetTimes = TIMES,
    ) -> None:
        self._url, self._fleet_id, self._objects, self._times = url, fleet_id, objects, times
        self.node_id = node_id
        self.disk = Disk()
        self.host = SimHost(self.disk)

    def start(self) -> None:
        self.host = SimHost(self.disk)
        self.catalog = PostgresCatalog(self._url, LIMITS)
        reach = FleetReach(
            self.catalog, self._objects, LoopTime(), self._times, Inline(), FleetTally()
        )
        address = NodeAddress("localhost", 9092)
        order = Registration(self.node_id, UUID(int=self.node_id), address, "1")
        self.node = FleetNode(reach, self.host, order, self._fleet_id, LogsAlone())
        self._task = asyncio.ensure_future(self.node.run())

    async def kill(self) -> None:
        """Ends its process; its last statements may still be done."""
        self._task.cancel()
        await asyncio.wait({self._task})
        self.host.served.clear()
        await self.catalog.close()


@dataclass
class RealFleet:
    """Machines, and what clients were answered."""

    machines: list[Machine]
    acknowledged: dict[tuple[PartitionKey, int], Value] = field(default_factory=dict)

    async def produce(self, key: PartitionKey, value: Value) -> bool:
        for machine in self.machines:
            log, life = machine.host.served.get(key), machine.node.life
            if log is not None and log.takes_writes and life is not None:
                end = log.append([value], 0, 0)
                answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

                def done(error: BaseException | None, answered=answered) -> None:  # type: ignore[no-untyped-def]
                    if not answered.done():
                        answered.set_result(error)

                life.committer.request(log, end, done)
                await asyncio.wait({answered}, timeout=5)
                if answered.done() and answered.result() is None:
                    had = self.acknowledged.setdefault((key, end - 1), value)
                    assert had == value
                    return True
                return False
        await asyncio.sleep(0.05)
        return False


async def committed(
    catalog: PostgresCatalog, objects: MemoryObjects
) -> dict[PartitionKey, list[SimBatch]]:
    """All that the rows say, with their bytes."""
    for _ in range(TRIES):
        with suppress(BodyGone):  # a checkpoint took the place of commits meanwhile
            return await _committed_now(catalog, objects)
    return await _committed_now(catalog, objects)


async def _committed_now(
    catalog: PostgresCatalog, objects: MemoryObjects
) -> dict[PartitionKey, list[SimBatch]]:
    bodies = CommittedBodies(catalog, objects)
    found = {}
    for row in await catalog.partitions(range(SHARDS)):
        batches: list[SimBatch] = []
        for each in row.spans:
            assert each.span.base_offset == len(batches)
            arrived = await bodies.batches_of(each)
            batches += [SimBatch(each.span.epoch, a.arrival_ms, decoded(a.data)) for a in arrived]
            assert len(batches) == each.span.end_offset
        found[row.partition] = batches
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres() as running:
        yield running


async def produce(fleet: RealFleet, producer: int, dice: random.Random) -> None:
    """Sends values until each is acknowledged."""
    for sequence in range(VALUES):
        key = PartitionKey(TOPIC, dice.randrange(PARTITIONS))
        while not await fleet.produce(key, Value(producer, sequence)):
            pass
        await asyncio.sleep(dice.random() * 0.1)


async def hurt(fleet: RealFleet, server: PostgresServer, turn: int, dice: random.Random) -> None:
    """PostgreSQL dies in each third turn, a node in the others, half of them with their disk."""
    if turn % 3 == 2:
        server.kill()
        await asyncio.to_thread(server.start)
        return
    machine = dice.choice(fleet.machines)
    await machine.kill()
    if dice.random() < 0.5:
        machine.disk.lose_all()
    await asyncio.sleep(dice.choice((0.0, 2.0)))
    machine.start()


def check(fleet: RealFleet, found: dict[PartitionKey, list[SimBatch]]) -> None:
    """All is there once, what was acknowledged where it was, and epochs do not fall."""
    for (key, offset), value in fleet.acknowledged.items():
        assert found[key][offset].value == value
    values = [each.value for batches in found.values() for each in batches]
    assert sorted(values) == [Value(p, s) for p in range(PRODUCERS) for s in range(VALUES)]
    for batches in found.values():
        epochs = [each.epoch for each in batches]
        assert epochs == sorted(epochs)


async def committed_end(catalog: PostgresCatalog, key: PartitionKey) -> int:
    """The offset below which a partition is committed."""
    rows = await catalog.partitions(range(SHARDS))
    return next(row.end_offset for row in rows if row.partition == key)


@pytest.mark.timeout(60)
async def test_a_write_waits_no_longer_than_the_lease_for_a_catalog_that_is_silent(
    server: PostgresServer,
) -> None:
    """Another node may lead by then, and a client that waits here does not look for it."""
    url = await asyncio.to_thread(server.new_fleet, SHARDS)
    catalog, key = PostgresCatalog(url, LineLimits(5, 30)), PartitionKey(TOPIC, 0)
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0])]))
    machine = Machine(url, (await catalog.facts()).fleet_id, 1, MemoryObjects())
    machine.start()
    await asyncio.to_thread(until, lambda: key in machine.host.served, "it takes nothing over")
    log, life = machine.host.served[key], machine.node.life
    assert life is not None
    holder = await asyncpg.connect(url)
    async with holder.transaction():
        await holder.execute("LOCK TABLE node IN ACCESS EXCLUSIVE MODE")
        answered = asyncio.get_running_loop().create_future()
        life.committer.request(log, log.append([Value(1, 0)], 0, 0), answered.set_result)
        assert isinstance(await answered, NotCommitted)
        assert not life.is_held
    await holder.close()
    began = asyncio.get_running_loop().time()
    while await committed_end(catalog, key) < 1:
        took = asyncio.get_running_loop().time() - began
        assert took < PATIENCE_SECONDS / 2, "what was refused is committed all the same"
        await asyncio.sleep(0.1)
    await machine.kill()
    await catalog.close()


@pytest.mark.timeout(60)
async def test_a_checkpoint_with_a_shard_that_was_given_away_meanwhile_ends_no_life(
    server: PostgresServer,
) -> None:
    """Its object takes a while to upload, and shards move; all others would have no leader."""
    url = await asyncio.to_thread(server.new_fleet, SHARDS)
    catalog, key = PostgresCatalog(url, LineLimits(5, 30)), PartitionKey(TOPIC, 0)
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0])]))
    machine = Machine(url, (await catalog.facts()).fleet_id, 1, MemoryObjects())
    machine.start()
    await asyncio.to_thread(until, lambda: key in machine.host.served, "it takes nothing over")
    life = machine.node.life
    assert life is not None
    shards = [each._replace(epoch=each.epoch - 1) for each in life.ownership.shards]
    late = PendingCheckpoint(lambda number: Checkpoint(number, 0, shards, [], [], "gone", 0))
    life.committer.put_checkpoint(late)
    assert await late.done is None
    assert machine.node.life is life
    await machine.kill()
    await catalog.close()


@pytest.mark.timeout(180)
async def test_nothing_acknowledged_is_lost_though_nodes_and_postgres_die(
    server: PostgresServer,
) -> None:
    dice = random.Random(3)
    url = await asyncio.to_thread(server.new_fleet, SHARDS)
    catalog, objects = PostgresCatalog(url, LineLimits(5, 30)), MemoryObjects()
    facts = await catalog.facts()
    await catalog.create_topics(
        NewTopics([TopicRow(TOPIC, "t", [each % SHARDS for each in range(PARTITIONS)])])
    )
    fleet = RealFleet([Machine(url, facts.fleet_id, each + 1, objects) for each in range(NODES)])
    for machine in fleet.machines:
        machine.start()

    producers = [asyncio.ensure_future(produce(fleet, each, dice)) for each in range(PRODUCERS)]
    for turn in range(6):
        await asyncio.sleep(0.5 + dice.random())
        await hurt(fleet, server, turn, dice)
    await asyncio.wait_for(asyncio.gather(*producers), PATIENCE_SECONDS)

    check(fleet, await committed(catalog, objects))
    assert sum(row.epoch for row in await catalog.shards()) > SHARDS, "shards had several owners"
    for machine in fleet.machines:
        await machine.kill()
    await catalog.close()


async def owners(catalog: PostgresCatalog) -> dict[int, int | None]:
    """Nodes by the shards that they own."""
    rows = await catalog.shards()
    return {row.shard_id: row.owner.node_id if row.owner else None for row in rows}


@pytest.mark.timeout(120)
async def test_busy_shards_go_to_different_nodes(server: PostgresServer) -> None:
    """Two of one node are written to: the other gets one, and gives an idle one for it."""
    url = await asyncio.to_thread(server.new_fleet, SHARDS)
    catalog, objects = PostgresCatalog(url, LineLimits(5, 30)), MemoryObjects()
    facts = await catalog.facts()
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", list(range(SHARDS)))]))
    times = TIMES._replace(loads=0.5, load_rest=1.5, load_gap=200)
    fleet = RealFleet([Machine(url, facts.fleet_id, each, objects, times=times) for each in (1, 2)])
    for machine in fleet.machines:
        machine.start()
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while sorted((await owners(catalog)).values(), key=str) != [1, 1, 2, 2]:
        assert asyncio.get_running_loop().time() < end, "shards are not even"
        await asyncio.sleep(0.1)

    busy = [shard for shard, node in (await owners(catalog)).items() if node == 1]
    sequence = 0
    while len({(await owners(catalog))[each] for each in busy}) == 1:
        assert asyncio.get_running_loop().time() < end, "both stay where they were"
        for each in busy:
            await fleet.produce(PartitionKey(TOPIC, each), Value(0, sequence))
            sequence += 1
    loads = {row.shard_id: row.load for row in await catalog.shards()}
    assert all(bool(loads[each]) is (each in busy) for each in loads), loads
    while sorted((await owners(catalog)).values(), key=str) != [1, 1, 2, 2]:
        assert asyncio.get_running_loop().time() < end, "no idle one came back"
        await asyncio.sleep(0.1)
    for machine in fleet.machines:
        await machine.kill()
    await catalog.close()
