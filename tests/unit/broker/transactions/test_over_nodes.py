"""Transactions over nodes: both sides meet in the rows, whatever moves or ends meanwhile."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, Self
from uuid import UUID, uuid4

import pytest

from broker.fleet.catalog.port import CatalogAway
from broker.fleet.catalog.rows import (
    FleetFacts,
    Incarnation,
    NewTopics,
    NodeAddress,
    OwnedShard,
    PartitionKey,
    Registration,
    TopicRow,
)
from broker.fleet.times import FleetTimes
from broker.transactions.over_nodes.due_markers import FORGET_SECONDS, DueMarkers
from broker.transactions.over_nodes.fleet_admission import FleetAdmission
from broker.transactions.over_nodes.fleet_participants import FleetParticipants, MarkerWaits
from broker.transactions.over_nodes.joining import AGAIN
from broker.transactions.over_nodes.standing import PartitionNames, TransactionReach
from broker.transactions.participants import Ending
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode, KafkaError
from tests.support.fleet.loop_time import LoopTime
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.model_ledger import LedgerRows, ModelLedger
from tests.support.fleet.virtual_loop import run_virtual

TOPIC = UUID(int=7)
HERE, THERE = ("t", 0), ("t", 1)
CLAIM = ProducerClaim("id", 4000, 3)
ENDING = Ending(4000, 3, True, 1)
TIMES = FleetTimes()


class Partition(SimpleNamespace):
    """One that is known by its name."""

    topic: str
    index: int


class Topics:
    """The image of one topic with two partitions."""

    def __init__(self, topic_id: UUID = TOPIC) -> None:
        partitions = tuple(Partition(topic="t", index=each) for each in (0, 1))
        topic = SimpleNamespace(
            topic_id=topic_id,
            partitions=partitions,
            partition=lambda index: partitions[index] if index < 2 else None,
        )
        self.image = SimpleNamespace(topics={"t": topic}, by_id={topic_id: topic})


class Markers:
    """Writes markers into a list, when it may."""

    def __init__(self) -> None:
        self.written: list[tuple[Ending, Place]] = []
        self.error: KafkaError | None = None
        self.before: Callable[[], None] = lambda: None

    async def write(self, ending: Ending, places: Iterable[Place]) -> dict[Place, KafkaError]:
        self.before()
        await asyncio.sleep(0.003)
        if self.error is not None:
            return dict.fromkeys(places, self.error)
        self.written += [(ending, place) for place in places]
        return {}


class Slow:
    """A ledger whose next answers may be held back or lost."""

    def __init__(self, ledger: ModelLedger) -> None:
        self._ledger = ledger
        self.answers_at: asyncio.Event | None = None
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        work = getattr(self._ledger, name)

        async def asked(*arguments: Any) -> Any:
            answer = await work(*arguments)
            if name != "changed" and self.lost:
                self.lost -= 1
                raise CatalogAway("the answer was lost")
            if name == "joined" and self.answers_at is not None:
                await self.answers_at.wait()
            return answer

        return asked


class Node:
    """One node, which leads some partitions and coordinates by its first shard."""

    def __init__(self, rows: LedgerRows, node_id: int) -> None:
        self.rows = rows
        self.node_id = node_id
        self.me: Incarnation | None = None
        self.shards: list[OwnedShard] = []
        self.markers = Markers()
        self.ledger = Slow(ModelLedger(rows))
        self.may_end = True
        self.topics: Any = Topics()
        names = PartitionNames(self.topics)
        reach = TransactionReach(self.ledger, self, names, LoopTime(), TIMES)  # type: ignore[arg-type]
        waits = MarkerWaits()
        self.participants = FleetParticipants(reach, waits)
        state = Partition(topic="state", index=0)
        self.participants.topic = SimpleNamespace(partitions=[state], index_of=lambda _: 0)  # type: ignore[assignment]
        self.admission = FleetAdmission(reach)
        written: Any = self.markers
        self.due = DueMarkers(reach, written, self.admission, waits, lambda _: self.may_end)

    def shard_of(self, partition: Any) -> OwnedShard | None:
        if partition.topic == "state":
            return self.shards[0]
        parts = self.rows.catalog.parts
        shard_id = parts[PartitionKey(TOPIC, partition.index)].shard_id
        return next((each for each in self.shards if each.shard_id == shard_id), None)

    async def begin(self) -> None:
        catalog, node_id = self.rows.catalog, self.node_id
        address = NodeAddress("localhost", 9092)
        self.me = await catalog.register(Registration(node_id, UUID(int=node_id), address, "1", ()))
        assert self.me is not None
        self.shards = list(await catalog.take(self.me, 2))


class World:
    """A node that coordinates and leads one partition, and one that leads the other."""

    def __init__(self) -> None:
        facts = FleetFacts(uuid4(), "cluster", 4)
        self.catalog = ModelCatalog(facts, lambda: 1_700_000_000_000)
        rows = LedgerRows(self.catalog)
        self.first, self.second = Node(rows, 1), Node(rows, 2)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        for each in (self.first, self.second):
            await each.begin()
            self._tasks.append(asyncio.ensure_future(each.due.run()))
        await self.catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0, 2])]))
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in self._tasks:
            each.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def join(self, *places: Place) -> None:
        await self.first.participants.join(CLAIM, places)

    async def end(self, ending: Ending = ENDING) -> dict[Place, KafkaError]:
        return dict(await self.first.participants.end("id", ending, [HERE, THERE]))

    @property
    def written(self) -> list[tuple[Ending, Place]]:
        return self.first.markers.written + self.second.markers.written


def in_world(test: Callable[[World], Any]) -> Callable[[], None]:
    """Runs a test in a world, on a loop whose time costs nothing."""

    def run() -> None:
        async def main() -> None:
            async with World() as world:
                await test(world)

        run_virtual(main())

    run.__name__ = test.__name__
    return run


@in_world
async def test_each_leader_marks_its_own_partitions_and_then_it_is_over(world: World) -> None:
    await world.join(HERE)
    await world.join(THERE)
    assert await world.first.admission.admit(CLAIM, [HERE], joins=False) == {}
    assert await world.second.admission.admit(CLAIM, [THERE], joins=False) == {}
    assert await world.end() == {}
    assert world.first.markers.written == [(ENDING, HERE)]
    assert world.second.markers.written == [(ENDING, THERE)]
    assert asyncio.get_running_loop().time() < 0.1, "nobody waits for the next look"


@in_world
async def test_one_that_nobody_joined_is_over_at_once(world: World) -> None:
    assert await world.end() == {}
    assert world.written == []


@in_world
async def test_what_has_not_joined_is_not_admitted(world: World) -> None:
    await world.join(HERE)
    refused = await world.second.admission.admit(CLAIM, [HERE, THERE], joins=False)
    assert {place: error.code for place, error in refused.items()} == {
        THERE: ErrorCode.TRANSACTION_ABORTABLE
    }
    older = CLAIM._replace(producer_epoch=2)
    fenced = await world.first.admission.admit(older, [HERE], joins=False)
    assert fenced[HERE].code == ErrorCode.PRODUCER_FENCED
    later = CLAIM._replace(producer_epoch=4)
    newer = await world.first.admission.admit(later, [HERE], joins=False)
    assert newer[HERE].code == ErrorCode.TRANSACTION_ABORTABLE
    gone = await world.first.admission.admit(CLAIM, [("t", 9)], joins=False)
    assert gone["t", 9].code == ErrorCode.TRANSACTION_ABORTABLE


@in_world
async def test_nothing_is_admitted_behind_the_marker(world: World) -> None:
    """The rows were read before the end, and their answer comes when the marker is written."""
    await world.join(THERE)
    second = world.second
    second.ledger.answers_at = asyncio.Event()
    late = asyncio.ensure_future(second.admission.admit(CLAIM, [THERE], joins=False))
    await asyncio.sleep(0.001)
    assert await world.end() == {}
    second.ledger.answers_at.set()
    refused = await late
    assert refused[THERE].code == ErrorCode.TRANSACTION_ABORTABLE


@in_world
async def test_nothing_is_admitted_once_it_is_closed(world: World) -> None:
    """Before any marker is written; the end then needs no other order."""
    await world.join(HERE, THERE)
    world.first.may_end = world.second.may_end = False
    await world.first.participants.close("id", ENDING)
    for node, place in ((world.first, HERE), (world.second, THERE)):
        refused = await node.admission.admit(CLAIM, [place], joins=False)
        assert refused[place].code == ErrorCode.TRANSACTION_ABORTABLE
    newest = dict(world.first.rows.newest)
    world.first.may_end = world.second.may_end = True
    assert await world.end() == {}
    assert world.first.rows.newest == newest
    assert sorted(world.written) == [(ENDING, HERE), (ENDING, THERE)]


@in_world
async def test_one_that_cannot_be_closed_ends_later(world: World) -> None:
    await world.join(THERE)
    world.first.ledger.lost = 1_000_000
    with pytest.raises(KafkaError) as refused:
        await world.first.participants.close("id", ENDING)
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.first.ledger.lost = 0
    assert await world.end() == {}
    assert world.written == [(ENDING, THERE)]


@in_world
async def test_one_that_ends_while_it_joins_is_judged_by_its_rows(world: World) -> None:
    """The coordinator's answer is from before the end, and comes when the marker is written."""
    second, answer = world.second, asyncio.Event()

    async def join(claim: ProducerClaim, places: Sequence[Place]) -> dict[Place, KafkaError]:
        await world.join(*places)
        await answer.wait()
        return {HERE: KafkaError(ErrorCode.PRODUCER_FENCED)}

    second.admission.join = join
    late = asyncio.ensure_future(second.admission.admit(CLAIM, [HERE, THERE], joins=True))
    await asyncio.sleep(0.001)
    assert await world.end() == {}
    answer.set()
    codes = {place: each.code for place, each in (await late).items()}
    assert codes == {HERE: ErrorCode.PRODUCER_FENCED, THERE: ErrorCode.TRANSACTION_ABORTABLE}


@in_world
async def test_one_that_joins_is_admitted(world: World) -> None:
    async def join(claim: ProducerClaim, places: Sequence[Place]) -> dict[Place, KafkaError]:
        await world.join(*places)
        return {}

    world.second.admission.join = join
    assert await world.second.admission.admit(CLAIM, [THERE], joins=True) == {}
    assert await world.end() == {}
    assert world.written == [(ENDING, THERE)]


@in_world
async def test_a_topic_that_was_made_again_joins_once_its_coordinator_has_heard_of_it(
    world: World,
) -> None:
    """No marker would ever come without a row; its leader asks once more after this code."""
    again = UUID(int=8)
    await world.join(HERE)
    await world.catalog.delete_topic(TOPIC, 0)
    await world.catalog.create_topics(NewTopics([TopicRow(again, "t", [0, 2])]))
    for places in ([THERE], [HERE, THERE]):
        with pytest.raises(KafkaError) as refused:
            await world.join(*places)
        assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert refused.value.code in AGAIN
    world.first.topics.image = Topics(again).image
    await world.join(THERE)
    assert (CLAIM.producer_id, PartitionKey(again, 1)) in world.first.rows.parts


@in_world
async def test_one_that_the_coordinator_does_not_know_does_not_join(world: World) -> None:
    with pytest.raises(KafkaError) as refused:
        await world.join(THERE, ("t", 9))
    assert refused.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.first.rows.parts


@in_world
async def test_requests_of_one_producer_are_admitted_in_order(world: World) -> None:
    await world.join(HERE, THERE)
    admission, order = world.first.admission, list[int]()

    async def admitted(number: int, place: Place) -> None:
        await admission.admit(CLAIM, [place], joins=False)
        order.append(number)

    queue = admission.queue("id")
    queue.entering += 1
    tasks = [asyncio.ensure_future(admitted(number, HERE)) for number in range(5)]
    await asyncio.sleep(0)
    await admission.wait_for_turn("id")
    order.append(99)
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3, 4, 99]
    assert admission.queue("id") is queue


@in_world
async def test_answers_that_are_lost_change_nothing(world: World) -> None:
    for each in (world.first, world.second):
        each.ledger.lost = 2
    await world.join(HERE, THERE)
    world.first.ledger.lost = 1
    assert await world.end() == {}
    assert sorted(place for _, place in world.written) == [HERE, THERE]


@in_world
async def test_a_marker_that_counts_is_not_written_again(world: World) -> None:
    """The row is there still: the answer to its removal was lost before it was removed."""
    await world.join(THERE)
    second = world.second
    removal = second.ledger._ledger.marked
    tries = list[int]()

    async def fails_at_first(rows: Any) -> None:
        tries.append(len(rows))
        if len(tries) < 4:
            raise CatalogAway("not done")
        await removal(rows)

    second.ledger._ledger.marked = fails_at_first  # type: ignore[method-assign]
    assert await world.end() == {}
    assert world.written == [(ENDING, THERE)]
    assert tries == [1, 1, 1, 1]


@in_world
async def test_a_partition_that_cannot_be_marked_is_marked_later(world: World) -> None:
    await world.join(HERE, THERE)
    world.second.may_end = False
    world.first.markers.error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    ending = asyncio.ensure_future(world.end())
    await asyncio.sleep(4)
    assert not ending.done()
    world.second.may_end, world.first.markers.error = True, None
    world.second.due.wake()
    assert await ending == {}
    assert sorted(world.written) == [(ENDING, HERE), (ENDING, THERE)]


@in_world
async def test_the_wait_for_a_marker_has_an_end(world: World) -> None:
    await world.join(THERE)
    world.second.may_end = False
    failed = await world.end()
    assert {each.code for each in failed.values()} == {ErrorCode.CONCURRENT_TRANSACTIONS}
    world.second.may_end = True
    assert await world.end() == {}
    assert world.written == [(ENDING, THERE)]


@in_world
async def test_a_newer_epoch_in_the_log_needs_no_marker(world: World) -> None:
    await world.join(THERE)
    world.second.markers.error = KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    assert await world.end() == {}


@in_world
async def test_a_fault_of_one_round_does_not_end_the_next(world: World) -> None:
    await world.join(THERE)
    faults = [ValueError("unexpected")]

    def once() -> None:
        if faults:
            raise faults.pop()

    world.second.markers.before = once
    assert await world.end() == {}
    assert world.written == [(ENDING, THERE)]


@pytest.mark.parametrize("work", ["changed", "forget"])
def test_faults_that_nobody_expected_end_no_task(work: str) -> None:
    """As uvloop's RuntimeError, of a connection that was closed a moment ago."""

    async def story(world: World) -> None:
        ledger: Any = world.second.ledger
        real, calls = getattr(ledger, work), list[int]()

        async def fails_at_first(*arguments: Any) -> Any:
            calls.append(1)
            if len(calls) == 1:
                raise RuntimeError("the handler is closed")
            return await real(*arguments)

        setattr(ledger, work, fails_at_first)
        await asyncio.sleep(2 * FORGET_SECONDS + 10)
        assert len(calls) > 1

    in_world(story)()


@in_world
async def test_the_next_leader_marks_what_the_one_before_did_not(world: World) -> None:
    await world.join(THERE)
    second = world.second
    second.may_end = False
    ending = asyncio.ensure_future(world.end())
    await asyncio.sleep(1)
    assert second.me is not None
    assert world.first.me is not None
    await world.catalog.give(second.me, second.shards[0], world.first.me)
    world.first.shards = [*world.first.shards, OwnedShard(2, 2)]
    assert await ending == {}
    assert world.first.markers.written == [(ENDING, THERE)]


@in_world
async def test_who_coordinates_no_more_is_refused(world: World) -> None:
    await world.join(THERE)
    first = world.first
    assert first.me is not None
    assert world.second.me is not None
    await world.catalog.give(first.me, first.shards[0], world.second.me)
    with pytest.raises(KafkaError) as refused:
        await world.join(HERE)
    assert refused.value.code == ErrorCode.NOT_COORDINATOR
    failed = await world.end()
    assert {each.code for each in failed.values()} == {ErrorCode.NOT_COORDINATOR}
    assert world.written == []


@in_world
async def test_a_catalog_that_is_away_costs_a_bounded_wait(world: World) -> None:
    world.first.ledger.lost = 1_000_000
    with pytest.raises(KafkaError) as refused:
        await world.join(HERE)
    assert refused.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    late = await world.first.admission.admit(CLAIM, [HERE], joins=False)
    assert late[HERE].code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert asyncio.get_running_loop().time() < 30
