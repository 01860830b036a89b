"""A history of transactions over nodes by its seed: clients commit, abort, fall silent and begin
again while nodes, catalog and answers fail; judged by the oracle of `transaction_world`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import NamedTuple, TypeVar

from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.fleet_history import (
    FAULTS,
    PEACE_SECONDS,
    Faults,
)
from tests.support.fleet.fleet_world import ANSWER_SECONDS
from tests.support.fleet.transaction_values import TransactionId
from tests.support.fleet.transaction_world import (
    DATA,
    STATES,
    Refused,
    TransactionNode,
    TransactionWorld,
)
from tests.support.fleet.virtual_loop import run_virtual

PRODUCERS, TRANSACTIONS = 3, 5
JOINING_SHARE = 0.6
"""Transactions by version 2; a client may go from one to the other between two of them."""
ABORTED, EITHER, COMMITTED = frozenset({False}), frozenset({False, True}), frozenset({True})
NOT_NOW = {
    ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_LEADER_OR_FOLLOWER,
}  # fmt: skip
T = TypeVar("T")


class TransactionsLived(NamedTuple):
    """Counts of a history."""

    committed: int
    aborted: int
    joined: int
    """Those of them by version 2."""
    records: int
    faults: Counter[str]


def play_transactions(seed: int) -> TransactionsLived:
    """One history. AssertionError for a broken promise."""
    return run_virtual(_History(seed).run())


class _Silent(Exception):  # noqa: N818 - what happened
    """A node was asked, and what came of it is not known."""


class _History:
    def __init__(self, seed: int) -> None:
        self.world = TransactionWorld(seed, PRODUCERS)
        self.told: Counter[bool] = Counter()
        self.joined = 0
        self.late: set[asyncio.Task[None]] = set()

    async def run(self) -> TransactionsLived:
        world, faults = self.world, Faults(self.world)
        await world.begin()
        clients = [asyncio.ensure_future(self._client(each)) for each in world.producers]
        watching = asyncio.ensure_future(self._watch())
        for _ in range(FAULTS):
            await asyncio.sleep(world.dice.expovariate(0.5))
            await faults.happen()
            if watching.done():
                watching.result()
        await faults.heal()
        await asyncio.wait_for(asyncio.gather(*clients), 3 * PEACE_SECONDS)
        if self.late:
            await asyncio.wait(self.late)
        await faults.until_at_rest(world.check_end)
        if watching.done():
            watching.result()
        watching.cancel()
        world.check_end()
        return TransactionsLived(
            self.told[True], self.told[False], self.joined, len(world.ended), faults.happened
        )

    async def _watch(self) -> None:
        while True:
            self.world.note_owners()
            self.world.check()
            await asyncio.sleep(0.7)

    async def _client(self, producer: int) -> None:
        epoch = await self._init(producer)
        for number in range(1, TRANSACTIONS + 1):
            joins = self.world.dice.random() < JOINING_SHARE
            transaction = TransactionId(producer, epoch, number)
            next_epoch = await self._transaction(transaction, joins=joins)
            epoch = await self._init(producer) if next_epoch is None else next_epoch
            await asyncio.sleep(self.world.dice.expovariate(1.0))

    async def _transaction(self, transaction: TransactionId, *, joins: bool) -> int | None:
        """The epoch to go on with. None where it is not known how it went: the client begins again.

        `joins`: by version 2 of the protocol, in which partitions join by themselves, and each end
        takes an epoch.
        """
        world, dice = self.world, self.world.dice
        world.allowed[transaction] = ABORTED
        try:
            await self._write(transaction, joins)
            if dice.random() < 0.15:
                self._later(transaction, joins)
                return None
            if dice.random() < 0.15:
                await self._abort_hastily(transaction, joins)
                return None
            commits = dice.random() < 0.7
            if commits:
                world.allowed[transaction] = EITHER
            epoch = await self._end(transaction, joins, commits, is_heard=dice.random() >= 0.1)
        except (_Silent, Refused, KafkaError):
            self._later(transaction, joins)
            return None
        if epoch is None:
            return None
        if commits:
            world.allowed[transaction] = COMMITTED
        self.told[commits] += 1
        self.joined += joins
        return epoch

    async def _write(self, transaction: TransactionId, joins: bool) -> None:
        dice = self.world.dice
        for partition in dice.sample(DATA, dice.randint(1, len(DATA))):
            if not joins:
                await self._join(transaction, partition)
            for index in range(dice.randint(1, 3)):
                await self._produce(transaction, partition, partition * 10 + index, joins)

    async def _end(
        self, transaction: TransactionId, joins: bool, commits: bool, *, is_heard: bool = True
    ) -> int | None:
        """The next epoch; None when the client asks once and hears nothing."""

        async def end(node: TransactionNode) -> int:
            if joins:
                return await node.end_by_epoch(transaction, commits=commits)
            await node.end(transaction, commits=commits)
            return transaction.epoch

        coordinator = STATES[transaction.producer % len(STATES)]
        if is_heard:
            return await self._until(coordinator, end)
        await self._once(coordinator, end)
        return None

    async def _join(self, transaction: TransactionId, partition: int) -> None:
        coordinator = STATES[transaction.producer % len(STATES)]
        await self._until(coordinator, lambda node: node.join(transaction, partition))

    async def _produce(
        self, transaction: TransactionId, partition: int, index: int, joins: bool
    ) -> None:
        offset = await self._until(
            partition, lambda node: node.produce(transaction, partition, index, joins=joins)
        )
        self.world.acknowledged(partition, offset, transaction.record(index))

    async def _abort_hastily(self, transaction: TransactionId, joins: bool) -> None:
        """A record is on its way when the end is asked for."""
        self._later(transaction, joins, within=0.2)
        await self._end(transaction, joins, commits=False)
        self._later(transaction, joins, within=0.2)

    def _later(self, transaction: TransactionId, joins: bool, within: float = 20.0) -> None:
        """A record that its client has given up comes all the same, to any partition."""
        dice = self.world.dice
        partition, wait = dice.choice(DATA), dice.uniform(0.0, within)

        async def late() -> None:
            await asyncio.sleep(wait)
            with suppress(_Silent, Refused, KafkaError):
                await self._once(
                    partition,
                    lambda node: node.produce(transaction, partition, 90 + partition, joins=joins),
                )

        self.late.add(task := asyncio.ensure_future(late()))
        task.add_done_callback(self.late.discard)

    async def _init(self, producer: int) -> int:
        coordinator = STATES[producer % len(STATES)]
        while True:
            try:
                return await self._until(coordinator, lambda node: node.init(producer))
            except (_Silent, KafkaError):
                await asyncio.sleep(0.5)

    async def _until(
        self, partition: int, ask: Callable[[TransactionNode], Awaitable[T]], tries: int = 8
    ) -> T:
        """The answer of whoever leads. _Silent after some tries, KafkaError for good."""
        for _ in range(tries):
            try:
                return await self._once(partition, ask)
            except (_Silent, Refused):
                await asyncio.sleep(self.world.dice.uniform(0.1, 3.0))
            except KafkaError as error:
                if error.code not in NOT_NOW:
                    raise
                await asyncio.sleep(self.world.dice.uniform(0.1, 3.0))
        raise _Silent

    async def _once(self, partition: int, ask: Callable[[TransactionNode], Awaitable[T]]) -> T:
        """Asks one node; its work goes on when nobody waits any more."""
        node = self.world.leader(partition)
        if node is None:
            raise _Silent

        async def asked() -> T:
            return await ask(node)

        work = node.keep(asked())
        await asyncio.wait({work}, timeout=ANSWER_SECONDS)
        if not work.done() or work.cancelled():
            raise _Silent
        found: T = work.result()
        return found
