"""A fleet in a simulation whose clients write in transactions over its nodes.

Both sides of the real thing (`broker.transactions.over_nodes`) run on every node, and ask each
other as real nodes do; the coordinator is a small one, which remembers as the real one does, and so
are the logs.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from broker.fleet.catalog.rows import Incarnation, OwnedShard, PartitionKey
from broker.fleet.peers.peers import PeerSilent, PeerUnreached
from broker.partitions.leadership import NOBODY
from broker.transactions.over_nodes.due_markers import DueMarkers
from broker.transactions.over_nodes.fleet_admission import FleetAdmission
from broker.transactions.over_nodes.fleet_participants import FleetParticipants, MarkerWaits
from broker.transactions.over_nodes.joining import TransactionJoins
from broker.transactions.over_nodes.standing import PartitionNames, TransactionReach
from broker.transactions.participants import Ending
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.apis.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.faulty_catalog import FaultyCatalog, awake
from tests.support.fleet.fleet_world import (
    ANSWER_SECONDS,
    PARTITIONS,
    TIMES,
    TOPIC,
    FleetWorld,
)
from tests.support.fleet.machines.sim_host import ServedLog, SimBatch, Value
from tests.support.fleet.machines.sim_node import NodeClock, SimNode
from tests.support.fleet.model_ledger import LedgerRows, ModelLedger
from tests.support.fleet.transaction_values import (
    ENDING,
    Mark,
    Phase,
    State,
    TransactionId,
    mark_of,
    transaction_of,
)

DATA = (0, 1, 2)
STATES = (3, 4)
"""Partitions in which coordinators remember, by the producer."""
RECOVER_SECONDS = 1.0
LOST_SHARE = 0.03
"""Questions of nodes that are lost; of answers as many."""


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
        local: Any = self
        self.admission.join = TransactionJoins(local, self._ask_node, NodeClock(self.way)).join
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
        await self._counts(log, log.append([marker.value()], 0, self._now()))

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

    async def produce(
        self, transaction: TransactionId, partition: int, index: int, *, joins: bool
    ) -> int:
        """The record's offset, once it counts. Refused, KafkaError.

        `joins`: the partition joins the transaction by itself (version 2 of the protocol).
        """
        claim = ProducerClaim(str(transaction.producer), *transaction[:2])
        refused = await self.admission.admit(claim, [("t", partition)], joins=joins)
        for error in refused.values():
            raise error
        log = self._log(partition)
        _check_epoch(log, *transaction[:2])
        end = log.append([transaction.record(index)], 0, self._now())
        await self._counts(log, end)
        return end - 1

    async def init(self, producer: int) -> int:
        """The producer's next epoch; what was open is aborted."""
        async with self._turns[producer]:
            state = await self._state(producer)
            if state.phase is Phase.ONGOING:
                state = State(state.epoch + 2, state.number, Phase.ABORT)
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

    # --- version 2 of the protocol ---

    async def end_by_epoch(self, transaction: TransactionId, *, commits: bool) -> int:
        """As `end`, with the epoch of the next transaction, which tells a repetition."""
        producer, phase = transaction.producer, Phase.COMMIT if commits else Phase.ABORT
        async with self._turns[producer]:
            state = await self._state(producer)
            if state.epoch == transaction.epoch and state.phase is Phase.ONGOING:
                state = State(state.epoch + 1, state.number, phase)
                await self._remember(producer, state)
                epoch = self._states(producer).owned.shard.epoch
                await self.participants.close(
                    str(producer), Ending(producer, state.epoch, commits, epoch)
                )
            elif state.epoch != transaction.epoch + 1:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
            elif state.phase not in {phase, ENDING[phase]}:
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        self.keep(self._go_on(producer))
        return transaction.epoch + 1

    @property
    def topic(self) -> Any:
        """As `LocalCoordinator` has it: with the leaders that this node takes for them."""
        partitions = [
            SimpleNamespace(leader_elsewhere=self._leader_elsewhere(each)) for each in STATES
        ]
        return SimpleNamespace(partitions=partitions, index_of=self.world.state_topic.index_of)

    def _leader_elsewhere(self, partition: int) -> Any:
        if PartitionKey(TOPIC, partition) in self.host.served:
            return None
        leader = self.world.leader(partition)
        return SimpleNamespace(node_id=NOBODY if leader is None else leader.node_id)

    async def join_soon(self, claim: ProducerClaim, places: Sequence[Place]) -> None:
        """As `LocalCoordinator` has it."""
        try:
            await self._join_soon(claim, places)
        except Refused:
            raise KafkaError(ErrorCode.NOT_COORDINATOR) from None

    async def _join_soon(self, claim: ProducerClaim, places: Sequence[Place]) -> None:
        producer, turn = claim.producer_id, self._turns[claim.producer_id]
        if turn.locked():
            raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
        async with turn:
            state = await self._state(producer)
            if state.epoch != claim.producer_epoch:
                raise KafkaError(ErrorCode.PRODUCER_FENCED)
            if state.phase in ENDING:
                raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
            if state.phase is not Phase.ONGOING:
                # a late end by version 1 of an earlier number is not of this one
                begun = state._replace(number=state.number + 1, phase=Phase.ONGOING)
                await self._remember(producer, begun)
            await self.participants.join(claim, places)

    async def _ask_node(self, node_id: int, request: AddPartitionsToTxnRequest) -> Any:
        """As `Peers.ask`: requests and answers get lost, and some come late."""
        dice, [node] = (
            self.world.dice,
            [each for each in self.world.nodes if each.node_id == node_id],
        )
        assert isinstance(node, TransactionNode)
        if dice.random() < LOST_SHARE:
            raise PeerUnreached(f"node {node_id}")
        await asyncio.sleep(dice.expovariate(50.0) if dice.random() < 0.9 else dice.uniform(0, 8))
        work = node.keep(node.joined(request))
        await asyncio.wait({work}, timeout=ANSWER_SECONDS)
        if not work.done() or work.cancelled() or dice.random() < LOST_SHARE:
            raise PeerSilent(f"node {node_id}")
        return work.result()

    async def joined(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        """As the handler of AddPartitionsToTxn answers a node."""
        await awake(self.way)
        results = [await self._result(each) for each in request.transactions]
        return AddPartitionsToTxnResponse(results_by_transaction=results)

    async def _result(self, asked: AddPartitionsToTxnTransaction) -> AddPartitionsToTxnResult:
        claim = ProducerClaim(asked.transactional_id, asked.producer_id, asked.producer_epoch)
        [topic], code = asked.topics, ErrorCode.NONE
        try:
            await self.join_soon(claim, [(topic.name, each) for each in topic.partitions])
        except KafkaError as error:
            code = error.code
        found = [
            AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
            for each in topic.partitions
        ]
        topics = [AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=found)]
        return AddPartitionsToTxnResult(
            transactional_id=claim.transactional_id, topic_results=topics
        )

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
        await self._counts(log, log.append([state.value(producer)], 0, self._now()))

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
        log.append([state.value(producer)], 0, self._now())
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
