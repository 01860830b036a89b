"""A history of a fleet by its seed: clients at work, faults of all kinds, then peace; judged by the
oracle of `fleet_world`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from broker.fleet.catalog.rows import PartitionKey
from broker.runtime.callbacks import failures
from storage.errors import StorageError
from tests.support.fleet.fleet_world import PARTITIONS, TIMES, FleetWorld
from tests.support.fleet.machines.sim_host import ServedLog, SimBatch, Value
from tests.support.fleet.machines.sim_node import Logs, SimNode
from tests.support.fleet.virtual_loop import run_virtual
from tests.support.tier.often_full import often_full

PRODUCERS, BATCHES = 5, 12
DELETIONS = 6
"""Of histories with real logs."""
FAULTS = 10
KINDS = (
    "kill", "kill", "stop", "stop", "cut", "mend", "outage", "step", "store", "drain", "noise",
    "wall", "leave",
)  # fmt: skip
KINDS_WITH_STORE = ("fence", "fence")
MINUTES_10 = 600_000
PEACE_SECONDS = 90.0
"""Longest time after the last fault until all is answered."""
REST_SECONDS = 4 * TIMES.lease
"""Longest time in peace, after the last statement that comes late, until all is as it should be."""


class FleetLived(NamedTuple):
    """Counts of a history."""

    acknowledged: int
    lives: int
    shards_taken: int
    faults: Counter[str]


@often_full()
def play(seed: int, logs: Logs = Logs.LISTS) -> FleetLived:
    """One history. AssertionError for a broken promise, and for an error that nobody expected."""
    before = failures.total()
    lived = run_virtual(_History(seed, logs).run())
    assert failures.total() == before, "there was an error that nobody expected"
    return lived


class Faults:
    """Faults of nodes, of the catalog and of the store."""

    def __init__(self, world: FleetWorld) -> None:
        """Nothing happens yet."""
        self.world = world
        self.happened: Counter[str] = Counter()

    async def happen(self) -> None:
        """One of them, by the dice."""
        dice = self.world.dice
        kind = dice.choice(KINDS + KINDS_WITH_STORE * self.world.logs.have_store)
        self.happened[kind] += 1
        await getattr(self, f"_{kind}")(dice.choice(self.world.nodes))

    async def _stop(self, node: SimNode) -> None:
        seconds = self.world.dice.choice((2.0, 8.0, 25.0))
        until = asyncio.get_running_loop().time() + seconds
        node.way.stopped_until = max(node.way.stopped_until, until)

    async def _cut(self, node: SimNode) -> None:
        node.way.is_cut = True

    async def _mend(self, node: SimNode) -> None:
        node.way.is_cut = False

    async def _step(self, _: SimNode) -> None:
        self.world.catalog_step_ms += self.world.dice.choice((-MINUTES_10, -3000, MINUTES_10))

    async def _wall(self, node: SimNode) -> None:
        node.wall_ms += self.world.dice.choice((-MINUTES_10, MINUTES_10))

    async def _store(self, _: SimNode) -> None:
        self.world.objects.is_away = not self.world.objects.is_away

    async def _fence(self, node: SimNode) -> None:
        """Others took it for gone, and it is there: it may take its shards once more itself."""
        row = self.world.rows.node_rows.get(node.node_id)
        if row is not None:
            await self.world.rows.fence(row.incarnation, row.renewals)

    async def _drain(self, node: SimNode) -> None:
        await self.world.rows.drain(node.node_id, draining=self.world.dice.random() < 0.5)

    async def _kill(self, node: SimNode) -> None:
        dice = self.world.dice
        node.kill()
        match dice.randrange(4):
            case 0:
                node.disk.lose_tails(dice)
            case 1:
                node.disk.lose_all()
                node.directory_id = type(node.directory_id)(int=dice.getrandbits(64))
        await asyncio.sleep(dice.choice((0.0, 1.0, 9.0)))
        node.start()

    async def _leave(self, node: SimNode) -> None:
        await node.leave()
        await asyncio.sleep(self.world.dice.choice((0.0, 1.0, 9.0)))
        node.start()

    async def _outage(self, _: SimNode) -> None:
        for node in self.world.nodes:
            node.way.is_cut = True
        await asyncio.sleep(self.world.dice.choice((1.0, 12.0)))
        for node in self.world.nodes:
            node.way.is_cut = False

    async def _noise(self, node: SimNode) -> None:
        way, dice = node.way, self.world.dice
        way.lost_question, way.lost_answer = dice.choice((0.0, 0.2)), dice.choice((0.0, 0.2))
        way.late, way.doubled = dice.choice((0.0, 0.2)), dice.choice((0.0, 0.2))

    async def heal(self) -> None:
        """Peace: all that is stopped, cut or away is back."""
        self.world.objects.is_away = False
        now = asyncio.get_running_loop().time()
        awake = max(node.way.stopped_until for node in self.world.nodes)
        await asyncio.sleep(max(awake - now, 0.0))
        for node in self.world.nodes:
            way = node.way
            way.is_cut = False
            node.calm()
            way.lost_question = way.lost_answer = way.late = way.doubled = 0.0
            await self.world.rows.drain(node.node_id, draining=False)

    async def until_at_rest(self, check: Callable[[], None]) -> None:
        """Returns when nothing from before peace is under way any more, and `check` finds all as it
        should be.

        AssertionError of `check` when it is not in time.
        """
        time = asyncio.get_running_loop().time
        latest = max(node.late_until for node in self.world.nodes)
        await asyncio.sleep(max(latest - time(), 0.0) + 1)
        await until_it_holds(check, partial(asyncio.sleep, 1))


async def until_it_holds(
    check: Callable[[], None], meanwhile: Callable[[], Awaitable[None]]
) -> None:
    """Asks again and again. AssertionError of `check` when it does not hold in time."""
    time = asyncio.get_running_loop().time
    until = time() + REST_SECONDS
    while time() < until:
        with suppress(AssertionError):
            check()
            return
        await meanwhile()
    check()


def lacking(log: ServedLog, committed: Sequence[SimBatch], *, is_compacted: bool) -> object:
    """Something that a log has not, or that it has and nobody sent; None for one that has all that
    is committed from its start on, of a compacted one the last record of each key.
    """
    try:
        found = log.by_offset()
    except StorageError as error:
        return error
    start = log.owned.start_offset
    wanted = dict(enumerate(committed[start:], start))
    if is_compacted:
        last = {each.value.key: offset for offset, each in wanted.items()}
        wanted = {offset: wanted[offset] for offset in found.keys() | set(last.values())}
    return sorted(found.items() ^ wanted.items()) or None


class _History:
    def __init__(self, seed: int, logs: Logs) -> None:
        self.seed = seed
        self.logs = logs
        self.sent = 0

    async def run(self) -> FleetLived:
        world = self.world = FleetWorld(self.seed, self.logs)
        faults = Faults(world)
        await world.begin()
        producers = [asyncio.ensure_future(self._produce(each)) for each in range(PRODUCERS)]
        if self.logs is not Logs.LISTS:
            producers.append(asyncio.ensure_future(self._delete()))
        watching = asyncio.ensure_future(self._watch())
        for _ in range(FAULTS):
            await asyncio.sleep(world.dice.expovariate(0.5))
            await faults.happen()
            if watching.done():
                watching.result()
        await faults.heal()
        await asyncio.wait_for(asyncio.gather(*producers), PEACE_SECONDS)
        await faults.until_at_rest(self._check_progress)
        if self.logs.have_store:
            await until_it_holds(world.check_swept, world.sweep)
        if watching.done():
            watching.result()
        watching.cancel()
        world.check()
        world.note_owners()
        return FleetLived(
            sum(map(len, world.told.acknowledged.values())),
            sum(each.incarnation.number for each in world.rows.node_rows.values()),
            sum(each.epoch for each in world.rows.shard_rows),
            faults.happened,
        )

    async def _produce(self, producer: int) -> None:
        dice, sent, number = self.world.dice, Counter[PartitionKey](), 0
        for _ in range(BATCHES):
            key = self.world.partitions[dice.randrange(PARTITIONS)]
            count = dice.choice((1, 2, 5)) if self.logs is not Logs.LISTS else 1
            values = [Value(producer, each) for each in range(number, number + count)]
            while not await self.world.produce(key, values, sent[key]):
                pass
            sent[key] += count
            number += count
            await asyncio.sleep(dice.expovariate(1.0))
        self.sent += number

    async def _delete(self) -> None:
        for _ in range(DELETIONS):
            key = self.world.partitions[self.world.dice.randrange(PARTITIONS)]
            while not await self.world.delete(key):
                pass
            await asyncio.sleep(self.world.dice.expovariate(0.5))

    async def _watch(self) -> None:
        while True:
            self.world.note_owners()
            self.world.check()
            for key in self.world.partitions:
                self.world.read(key)
            await asyncio.sleep(0.7)

    def _check_progress(self) -> None:
        """Every shard has a living owner that serves it; all that was sent is there."""
        world = self.world
        served = Counter(key for node in world.nodes for key in node.host.served)
        assert served == Counter(world.partitions), f"served: {served}"
        owners = Counter(row.owner for row in world.rows.shard_rows)
        assert max(owners.values()) - min(owners.values()) <= 1, f"not even: {owners}"
        committed = world.check()
        found = {each.value for batches in committed.values() for each in batches}
        assert len(found) == self.sent, f"{len(found)} records of {self.sent}"
        for node in world.nodes:
            for key, log in node.host.served.items():
                is_compacted = self.logs is Logs.COMPACTED
                lacks = lacking(log, committed[key], is_compacted=is_compacted)
                assert lacks is None, f"{key.number} lacks {lacks}"
