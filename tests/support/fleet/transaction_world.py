"""A fleet in a simulation whose clients write in transactions over its nodes.

Both sides of the real thing (`broker.transactions.over_nodes`) run on every node; the coordinator
is a small one, which remembers as the real one does, and so are the logs. Records, states and
markers are values of `sim_host`.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from enum import IntEnum
from types import SimpleNamespace
from typing import Any, NamedTuple

from broker.fleet.catalog.rows import Incarnation, OwnedShard, PartitionKey
from broker.transactions.over_nodes.due_markers import DueMarkers
from broker.transactions.over_nodes.fleet_admission import FleetAdmission
from broker.transactions.over_nodes.fleet_participants import FleetParticipants, MarkerWaits
from broker.transactions.over_nodes.standing import PartitionNames, TransactionReach
from broker.transactions.participants import Ending
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.faulty_catalog import FaultyCatalog, awake
from tests.support.fleet.fleet_world import (
    ANSWER_SECONDS,
    PARTITIONS,
    TIMES,
    TOPIC,
    FleetWorld,
    NodeClock,
    SimNode,
)
from tests.support.fleet.model_ledger import LedgerRows, ModelLedger
from tests.support.fleet.sim_host import ServedLog, SimBatch, Value

DATA = (0, 1, 2)
STATES = (3, 4)
"""Partitions in which coordinators remember, by the producer."""
RECOVER_SECONDS = 1.0


class Phase(IntEnum):
    """Memory of a coordinator about the newest transaction of a producer."""

    EMPTY = 0
    ONGOING = 1
    COMMIT = 2
    ABORT = 3
    COMMITTED = 4
    ABORTED = 5


ENDING = {Phase.COMMIT: Phase.COMMITTED, Phase.ABORT: Phase.ABORTED}


class State(NamedTuple):
    """A record of a coordinator."""

    epoch: int
    number: int
    phase: Phase

    def value(self, producer: int) -> Value:
        return Value(producer, (self.epoch * 1000 + self.number) * 8 + self.phase)


class TransactionId(NamedTuple):
    """A transaction as its client counts it."""

    producer: int
    epoch: int
    number: int

    def record(self, index: int) -> Value:
        return Value(self.producer, (self.epoch * 1000 + self.number) * 100 + index)


def transaction_of(record: Value) -> TransactionId:
    first = record.sequence // 100
    return TransactionId(record.producer, first // 1000, first % 1000)


class Mark(NamedTuple):
    """A marker in a log; `nonce` makes each one another."""

    producer: int
    epoch: int
    commits: bool
    nonce: int

    def value(self) -> Value:
        return Value(-1 - self.producer, (self.nonce * 1000 + self.epoch) * 2 + self.commits)


def mark_of(value: Value) -> Mark | None:
    """None for a record."""
    if value.producer >= 0:
        return None
    rest, commits = divmod(value.sequence, 2)
    return Mark(-1 - value.producer, rest % 1000, bool(commits), rest // 1000)


class Refused(Exception):  # noqa: N818 - what happened
    """A node does not do what it is asked for; another one may, or it later."""


class TransactionNode(SimNode):
    """A node that takes part in transactions, and coordinates some."""

    def __init__(self, world: "TransactionWorld", node_id: int) -> None:
        super().__init__(world, node_id)
        self.world = world
        self._tasks: set[asyncio.Future[Any]] = set()

    def start(self) -> None:
        super().start()
        world = self.world
        ledger: Any = FaultyCatalog(ModelLedger(world.ledger), self.way, world.dice)  # type: ignore[arg-type]
        names = PartitionNames(world.topics)
        reach = TransactionReach(ledger, self, names, NodeClock(self.way), TIMES)
        waits = MarkerWaits()
        self.participants = FleetParticipants(reach, waits)
        self.participants.topic = world.state_topic
        self.admission = FleetAdmission(reach)
        markers: Any = self
        self.due = DueMarkers(reach, markers, self.admission, waits, lambda _: True)
        self._turns: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.keep(self.due.run())
        self.keep(self._recover())

    def kill(self) -> None:
        super().kill()
        for each in self._tasks:
            each.cancel()
        self._tasks.clear()

    def keep(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Future[Any]":
        """Part of this process: it goes with it."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: "asyncio.Future[Any]") -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            error = task.exception()
            if error is not None and not isinstance(error, (Refused, KafkaError)):
                self.world.faults.append(error)

    # --- what the real parts ask ---

    @property
    def me(self) -> Incarnation | None:
        """As `FleetStanding` has it."""
        return None if self.node is None or self.node.life is None else self.node.life.me

    def shard_of(self, partition: Any) -> OwnedShard | None:
        """As `FleetStanding` has it."""
        log = self.host.served.get(PartitionKey(TOPIC, partition.index))
        return None if log is None else log.owned.shard

    async def write(self, ending: Ending, places: Iterable[Place]) -> dict[Place, KafkaError]:
        """As `Markers` has it."""
        errors = {}
        for place in places:
            try:
                await self._mark(ending, self._log(place[1]))
            except Refused:
                errors[place] = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            except KafkaError as error:
                errors[place] = error
        return errors

    async def _mark(self, ending: Ending, log: ServedLog) -> None:
        _check_epoch(log, ending.producer_id, ending.producer_epoch)
        nonce = next(self.world.nonces)
        marker = Mark(ending.producer_id, ending.producer_epoch, ending.commit, nonce)
        await self._counts(log, log.append(marker.value(), 0, self._now()))

    # --- logs ---

    def _log(self, partition: int) -> ServedLog:
        log = self.host.served.get(PartitionKey(TOPIC, partition))
        if log is None or not log.takes_writes or self.node is None or self.node.life is None:
            raise Refused
        return log

    def _now(self) -> int:
        return self.world.wall_ms() + self.wall_ms

    async def _counts(self, log: ServedLog, end: int) -> None:
        """Returns when all below `end` is committed."""
        life = self.node.life if self.node is not None else None
        if life is None:
            raise Refused
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: BaseException | None) -> None:
            if not answered.done():
                answered.set_result(None) if error is None else answered.set_exception(Refused())

        answered.add_done_callback(lambda told: told.cancelled() or told.exception())
        life.committer.request(log.owned, end, done)
        await asyncio.wait({answered}, timeout=ANSWER_SECONDS)
        await awake(self.way)
        if not answered.done():
            raise Refused
        answered.result()

    # --- what clients ask ---

    async def produce(self, transaction: TransactionId, partition: int, index: int) -> int:
        """The record's offset, once it counts. Refused, KafkaError."""
        claim = ProducerClaim(str(transaction.producer), *transaction[:2])
        refused = await self.admission.admit(claim, [("t", partition)])
        for error in refused.values():
            raise error
        log = self._log(partition)
        _check_epoch(log, *transaction[:2])
        end = log.append(transaction.record(index), 0, self._now())
        await self._counts(log, end)
        return end - 1

    async def init(self, producer: int) -> int:
        """The producer's next epoch; what was open is aborted."""
        async with self._turns[producer]:
            state = await self._state(producer)
            if state.phase is Phase.ONGOING:
                state = State(state.epoch + 1, state.number, Phase.ABORT)
                await self._remember(producer, state)
            state = await self._ended(producer, state)
            state = State(state.epoch + 1, state.number, Phase.EMPTY)
            await self._remember(producer, state)
            return state.epoch

    async def join(self, transaction: TransactionId, partition: int) -> None:
        producer = transaction.producer
        async with self._turns[producer]:
            state = await self._of(transaction)
            state = await self._ended(producer, state)
            if state.phase is not Phase.ONGOING:
                if state.number >= transaction.number:
                    raise KafkaError(ErrorCode.INVALID_TXN_STATE)
                state = State(transaction.epoch, transaction.number, Phase.ONGOING)
                await self._remember(producer, state)
            claim = ProducerClaim(str(producer), *transaction[:2])
            await self.participants.join(claim, [("t", partition)])

    async def end(self, transaction: TransactionId, *, commits: bool) -> None:
        """Answered when it is remembered that it ends so."""
        producer, phase = transaction.producer, Phase.COMMIT if commits else Phase.ABORT
        turn = self._turns[producer]
        async with turn:
            state = await self._of(transaction)
            if state.number != transaction.number:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
            if state.phase is Phase.ONGOING:
                await self._remember(producer, state._replace(phase=phase))
                epoch = self._states(producer).owned.shard.epoch
                await self.participants.close(
                    str(producer), Ending(producer, state.epoch, commits, epoch)
                )
            elif state.phase not in {phase, ENDING[phase]}:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        self.keep(self._go_on(producer))

    # --- the coordinator ---

    def _states(self, producer: int) -> ServedLog:
        return self._log(STATES[producer % len(STATES)])

    async def _state(self, producer: int) -> State:
        log = self._states(producer)
        await self._counts(log, log.owned.end_offset)
        return _newest(log.committed(), producer)

    async def _of(self, transaction: TransactionId) -> State:
        state = await self._state(transaction.producer)
        if state.epoch != transaction.epoch:
            raise KafkaError(ErrorCode.PRODUCER_FENCED)
        return state

    async def _remember(self, producer: int, state: State) -> None:
        log = self._states(producer)
        await self._counts(log, log.append(state.value(producer), 0, self._now()))

    async def _ended(self, producer: int, state: State) -> State:
        """A transaction that is about to end has ended. Refused."""
        if state.phase not in ENDING:
            return state
        log = self._states(producer)
        commits = state.phase is Phase.COMMIT
        ending = Ending(producer, state.epoch, commits, log.owned.shard.epoch)
        if await self.participants.end(str(producer), ending, [("t", each) for each in DATA]):
            raise Refused
        state = state._replace(phase=ENDING[state.phase])
        if self.host.served.get(log.owned.partition) is not log or not log.takes_writes:
            raise Refused
        log.append(state.value(producer), 0, self._now())
        return state

    async def _go_on(self, producer: int) -> None:
        async with self._turns[producer]:
            await self._ended(producer, await self._state(producer))

    async def _recover(self) -> None:
        """Ends go on, also those that another coordinator has begun."""
        while True:
            await asyncio.sleep(RECOVER_SECONDS)
            await awake(self.way)
            for producer in self.world.producers:
                if not self._turns[producer].locked():
                    try:
                        await self._go_on(producer)
                    except (Refused, KafkaError):
                        continue


class TransactionWorld(FleetWorld):
    """All of it."""

    def __init__(self, seed: int, producers: int) -> None:
        super().__init__(seed)
        self.producers = range(producers)
        self.ledger = LedgerRows(self.rows)
        partitions = [SimpleNamespace(topic="t", index=each) for each in range(PARTITIONS)]
        topic = SimpleNamespace(
            topic_id=TOPIC, partitions=partitions, partition=lambda index: partitions[index]
        )
        image = SimpleNamespace(topics={"t": topic}, by_id={TOPIC: topic})
        self.topics: Any = SimpleNamespace(image=image)
        self.state_topic: Any = SimpleNamespace(
            partitions=[partitions[each] for each in STATES],
            index_of=lambda name: int(name) % len(STATES),
        )
        self.nonces = itertools.count()
        self.faults: list[BaseException] = []
        """Errors of tasks that nobody expected."""
        self.allowed: dict[TransactionId, frozenset[bool]] = {}
        """Ends that a transaction may have, by what its client knows: True, committed."""
        self.ended: dict[Value, bool] = {}
        """Ends of records that were seen."""
        self.nodes: list[SimNode] = [TransactionNode(self, each.node_id) for each in self.nodes]

    def leader(self, partition: int) -> TransactionNode | None:
        """Some node that takes itself for the leader."""
        found = self._serving(PartitionKey(TOPIC, partition))
        node = None if found is None else found[0]
        assert node is None or isinstance(node, TransactionNode)
        return node

    def acknowledged(self, partition: int, offset: int, record: Value) -> None:
        """A client was answered that it counts."""
        self._acknowledged(PartitionKey(TOPIC, partition), offset, record)

    def check(self) -> dict[PartitionKey, list[SimBatch]]:
        """The invariants of the rows, and those of transactions."""
        found = super().check()
        for error in self.faults:
            raise error
        seen: dict[TransactionId, set[bool]] = defaultdict(set)
        for partition in DATA:
            for record, commits in self._ends(found[PartitionKey(TOPIC, partition)]):
                before = self.ended.setdefault(record, commits)
                assert before == commits, f"{record} has ended in two ways"
                seen[transaction_of(record)].add(commits)
        for transaction, ends in seen.items():
            assert len(ends) == 1, f"{transaction} is half committed"
            assert ends <= self.allowed[transaction], f"{transaction} has ended as {ends}"
        return found

    def _ends(self, batches: Sequence[SimBatch]) -> Iterator[tuple[Value, bool]]:
        open_records: dict[int, list[Value]] = defaultdict(list)
        epochs: dict[int, int] = defaultdict(int)
        for value in (each.value for each in batches):
            marker = mark_of(value)
            if marker is None:
                epoch = transaction_of(value).epoch
                assert epoch >= epochs[value.producer], f"{value} is behind a newer epoch"
                open_records[value.producer].append(value)
            else:
                epochs[marker.producer] = marker.epoch
                for each in open_records.pop(marker.producer, ()):
                    yield each, marker.commits

    def check_end(self) -> None:
        """All transactions have ended, and nothing of them is left."""
        found = self.check()
        assert not self.ledger.parts, f"rows are left: {self.ledger.parts}"
        for partition in DATA:
            for each in found[PartitionKey(TOPIC, partition)]:
                if each.value.producer >= 0:
                    assert each.value in self.ended, f"{each.value} is open for ever"


def _newest(batches: Sequence[SimBatch], producer: int) -> State:
    for each in reversed(batches):
        if each.value.producer == producer:
            rest, phase = divmod(each.value.sequence, 8)
            return State(rest // 1000, rest % 1000, Phase(phase))
    return State(0, 0, Phase.EMPTY)


def _check_epoch(log: ServedLog, producer: int, epoch: int) -> None:
    """INVALID_PRODUCER_EPOCH where the log has a newer one."""
    owned: Any = log.owned
    for each in reversed(owned._batches):
        marker = mark_of(each.value)
        if marker is not None and marker.producer == producer:
            if marker.epoch > epoch:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
            return
        if marker is None and each.value.producer == producer:
            if transaction_of(each.value).epoch > epoch:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
            return
