"""A machine of a simulated fleet: its disk, its ways to catalog and store, and its process."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto
from typing import Protocol
from uuid import UUID

from broker.daemon.fleet import HAND_OVER_SECONDS, RESIGN_SECONDS
from broker.fleet.catalog.port import CatalogError
from broker.fleet.catalog.rows import (
    FleetFacts,
    NodeAddress,
    OwnedShard,
    PartitionKey,
    PartitionRow,
    Registration,
)
from broker.fleet.committer import FleetReach
from broker.fleet.host import BytesOf, OwnedLog, ShardHost
from broker.fleet.life import FleetNode
from broker.fleet.tally import FleetTally
from broker.fleet.times import FleetTimes
from broker.fleet.trimming import Trimming
from storage.log.log import Log
from tests.support.fleet.faulty_catalog import FaultyCatalog, Way, awake
from tests.support.fleet.inline import Inline
from tests.support.fleet.logs_alone import LogsAlone
from tests.support.fleet.machines.real_host import RealDisk
from tests.support.fleet.machines.sim_host import Disk, Host, MachineDisk
from tests.support.fleet.machines.sim_store import SegmentStore, SimObjects, SimStore
from tests.support.fleet.machines.sim_tier import Surroundings
from tests.support.fleet.model_catalog import ModelCatalog

SHARDS = 4
LOAD_SECONDS = (0, 0, 0, 0, 0, 0.01, 0.3, 3)
FLEET = FleetFacts(UUID(int=1), "cluster", SHARDS)


class Logs(Enum):
    """Logs of the nodes."""

    LISTS = auto()
    REAL = auto()
    TIERED = auto()
    """Real ones, of which segments go to a store."""
    COMPACTED = auto()
    """The same, of a topic that is compacted."""

    @property
    def have_store(self) -> bool:
        """True of those that have segments in a store."""
        return self in {Logs.TIERED, Logs.COMPACTED}


class NodeClock:
    """The time of one node, whose process may be stopped."""

    def __init__(self, way: Way, wall_ms: Callable[[], int] = int) -> None:
        self._way = way
        self.wall_ms = wall_ms

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self.monotonic() < self._way.stopped_until:
            await awake(self._way)


class SlowLoads:
    """The shards of a host, whose loads may take long before and after they have read anything."""

    def __init__(self, shards: ShardHost, clock: NodeClock, dice: random.Random) -> None:
        self._shards, self._clock, self._dice = shards, clock, dice
        self.serve, self.end_writes = shards.serve, shards.end_writes
        self.end, self.remove = shards.end, shards.remove

    async def load(self, row: PartitionRow, shard: OwnedShard, bytes_of: BytesOf) -> OwnedLog:
        await self._rest()
        log = await self._shards.load(row, shard, bytes_of)
        await self._rest()
        return log

    async def _rest(self) -> None:
        seconds = self._dice.choice(LOAD_SECONDS)
        if seconds:
            await self._clock.sleep(seconds)


class SharedWorld(Protocol):
    """Surroundings that all machines share."""

    dice: random.Random
    times: FleetTimes
    logs: Logs
    objects: SimObjects
    segments: SegmentStore

    @property
    def rows(self) -> ModelCatalog:
        """The catalog."""

    @property
    def sweep_rest(self) -> float:
        """Seconds for which an orphan is known before it goes."""

    def wall_ms(self) -> int:
        """The right time."""

    def removing(self, key: PartitionKey, start: int) -> None:
        """Records of before go: clients asked for it, or retention."""


class SimNode:
    """A machine: its disk, its way to catalog and store, and its process."""

    def __init__(self, world: SharedWorld, node_id: int) -> None:
        self._world = world
        self.node_id = node_id
        self.directory_id = UUID(int=node_id)
        self.way = Way()
        self.wall_ms = 0
        """By how much its wall clock is wrong."""
        self.clock = NodeClock(self.way, lambda: world.wall_ms() + self.wall_ms)
        self.disk: MachineDisk = Disk()
        if world.logs is not Logs.LISTS:
            around = None
            if world.logs.have_store:
                around = Surroundings(world.segments.reached(), self.clock, world.dice)
            self.disk = RealDisk(
                node_id, self.clock.wall_ms, around, is_compacted=world.logs is Logs.COMPACTED
            )
        self.host: Host = self.disk.host(world.dice)
        self.node: FleetNode | None = None
        self._catalog = FaultyCatalog(world.rows, self.way, world.dice)
        self.tasks: list[asyncio.Task[None]] = []
        self._is_calm = False

    def calm(self) -> None:
        """Peace: what its process does with the store takes moments, and what the next one does."""
        self._is_calm = True
        if self.host.tier is not None:
            self.host.tier.hasten()

    @property
    def late_until(self) -> float:
        """The moment, in seconds, until which something from before peace may go on."""
        tier = self.host.tier
        return max(self.way.late_until, 0.0 if tier is None else tier.busy_until)

    def start(self) -> None:
        world = self._world
        self.host = self.disk.host(world.dice)
        if self._is_calm:
            self.calm()
        store = SimStore(world.objects, self.way, world.dice)
        reach = FleetReach(self._catalog, store, self.clock, world.times, Inline(), FleetTally())
        address = NodeAddress("node", self.node_id)
        order = Registration(self.node_id, self.directory_id, address, "1")
        shards = SlowLoads(self.host.shards, self.clock, world.dice)
        self.node = FleetNode(reach, shards, order, FLEET.fleet_id, LogsAlone())
        self.tasks = [asyncio.ensure_future(self.node.run())]
        if self.host.tier is not None:
            tier = self.host.tier.run(self._rows, world.sweep_rest, self._removing)
            self.tasks.append(asyncio.ensure_future(tier))

    def _removing(self, log: Log, start: int) -> None:
        assert log.topic_id is not None
        self._world.removing(PartitionKey(log.topic_id, log.partition), start)

    def _rows(self) -> Trimming | None:
        life = None if self.node is None else self.node.life
        return None if life is None else life.trimming

    async def leave(self) -> None:
        """SIGTERM, and the end of its process, as `broker.daemon.fleet` has it."""
        assert self.node is not None
        with suppress(TimeoutError):
            async with asyncio.timeout(HAND_OVER_SECONDS):
                await self.node.leave()
        life = self.node.life
        self.kill()
        if life is not None:
            with suppress(CatalogError, TimeoutError):
                async with asyncio.timeout(RESIGN_SECONDS):
                    await self._catalog.resign(life.me)

    def kill(self) -> None:
        """kill -9."""
        for each in self.tasks:
            each.cancel()
        if self.host.tier is not None:
            self.host.tier.kill()
        self.tasks, self.node = [], None
        self.host.served.clear()

    @property
    def is_stopped(self) -> bool:
        return asyncio.get_running_loop().time() < self.way.stopped_until
