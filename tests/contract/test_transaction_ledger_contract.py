"""What the rows of open transactions keep, in PostgreSQL and in the model alike."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID, uuid4

import pytest

from broker.fleet.catalog.ledger import (
    EndedPartition,
    OrderAnswer,
    TransactionLedger,
    TransactionOrder,
)
from broker.fleet.catalog.line import LineLimits
from broker.fleet.catalog.port import FleetCatalog
from broker.fleet.catalog.postgres import PostgresCatalog
from broker.fleet.catalog.postgres_ledger import PostgresLedger
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
from tests.support.fleet.model_catalog import ModelCatalog
from tests.support.fleet.model_ledger import LedgerRows, ModelLedger
from tests.support.fleet.postgres_server import PostgresServer, is_postgres_published, postgres

SHARDS, PRODUCER, MANY = 4, 4000, 100
TOPIC, OTHER = UUID(int=7), UUID(int=8)
A, B, C = PartitionKey(TOPIC, 0), PartitionKey(TOPIC, 1), PartitionKey(OTHER, 0)


class Node(NamedTuple):
    """A node that coordinates by the first shard it owns."""

    me: Incarnation
    shards: Sequence[OwnedShard]
    ledger: TransactionLedger

    def order(
        self,
        number: int,
        *partitions: PartitionKey,
        commits: bool | None = None,
        epoch: int = 0,
        producer_id: int = PRODUCER,
    ) -> TransactionOrder:
        shard = self.shards[0]
        return TransactionOrder(self.me, shard, number, producer_id, epoch, commits, partitions)


class Fleet(NamedTuple):
    """Two nodes with two shards each; the first leads A and coordinates, the second B and C."""

    catalog: FleetCatalog
    first: Node
    second: Node


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    if not is_postgres_published():
        pytest.skip("the package registry has no PostgreSQL for this machine")
    with postgres() as running:
        yield running


@pytest.fixture(params=["postgres", "model"])
async def fleet(request: pytest.FixtureRequest) -> AsyncIterator[Fleet]:
    if request.param == "model":
        model = ModelCatalog(FleetFacts(uuid4(), "cluster", SHARDS), lambda: 1_700_000_000_000)
        rows = LedgerRows(model)
        yield await made(model, ModelLedger(rows), ModelLedger(rows))
        return
    url = await asyncio.to_thread(request.getfixturevalue("server").new_fleet, SHARDS)
    limits = LineLimits(5, 5)
    catalog = PostgresCatalog(url, limits)
    ledgers = [PostgresLedger(url, node_id, limits) for node_id in (1, 2)]
    yield await made(catalog, *ledgers)
    for each in (catalog, *ledgers):
        await each.close()


async def made(catalog: FleetCatalog, first: TransactionLedger, second: TransactionLedger) -> Fleet:
    nodes = []
    for node_id, ledger in ((1, first), (2, second)):
        order = Registration(node_id, UUID(int=node_id), NodeAddress("localhost", 9092), "1", ())
        me = await catalog.register(order)
        assert me is not None
        nodes.append(Node(me, await catalog.take(me, 2), ledger))
    await catalog.create_topics(NewTopics([TopicRow(TOPIC, "t", [0, 2])]))
    await catalog.create_topics(NewTopics([TopicRow(OTHER, "o", [3])]))
    return Fleet(catalog, *nodes)


async def ended(node: Node) -> dict[PartitionKey, bool]:
    return {each.partition: each.commits for each in await node.ledger.ended(node.me, MANY)}


async def test_partitions_are_in_a_transaction_from_their_join_to_its_end(fleet: Fleet) -> None:
    first, second = fleet.first, fleet.second
    assert await first.ledger.order(first.order(1, A, epoch=3)) is OrderAnswer.OK
    assert await first.ledger.order(first.order(2, B, epoch=3)) is OrderAnswer.OK
    assert await second.ledger.joined(PRODUCER, [A, B, C]) == {A: 3, B: 3}
    assert await second.ledger.joined(PRODUCER + 1, [A, B, C]) == {}
    assert await ended(first) == await ended(second) == {}
    assert await first.ledger.order(first.order(3, commits=True, epoch=3)) is OrderAnswer.OK
    assert await second.ledger.joined(PRODUCER, [A, B, C]) == {}
    assert await ended(first) == {A: True}
    assert await ended(second) == {B: True}


async def test_a_transaction_is_over_when_all_its_markers_are_written(fleet: Fleet) -> None:
    first, second = fleet.first, fleet.second
    await first.ledger.order(first.order(1, A, B, epoch=3))
    await first.ledger.order(first.order(2, commits=False, epoch=4))
    assert await second.ledger.ended(second.me, MANY) == [
        EndedPartition(PRODUCER, B, 4, first.shards[0].epoch, 2, False)
    ]
    for node, left in ((second, {PRODUCER}), (first, set())):
        rows = await node.ledger.ended(node.me, MANY)
        await node.ledger.marked(rows)
        await node.ledger.marked(rows)  # a second time is harmless
        assert await first.ledger.unmarked([PRODUCER, 1]) == left
    assert await first.ledger.order(first.order(3, B)) is OrderAnswer.OK
    assert await second.ledger.joined(PRODUCER, [A, B]) == {B: 0}


async def test_an_order_counts_once_and_never_late(fleet: Fleet) -> None:
    node = fleet.first
    join, end = node.order(1, A), node.order(2, commits=True)
    for order, answer in ((join, "ok"), (join, "already"), (end, "ok"), (end, "already")):
        assert await node.ledger.order(order) == answer
    await node.ledger.marked(await node.ledger.ended(node.me, MANY))
    assert await node.ledger.order(join) is OrderAnswer.LATE
    assert await node.ledger.joined(PRODUCER, [A]) == {}
    await node.ledger.order(node.order(3, A))
    assert await node.ledger.order(end) is OrderAnswer.LATE, "of the transaction before"
    assert await node.ledger.joined(PRODUCER, [A]) == {A: 0}


async def test_a_marker_that_is_late_ends_no_later_transaction(fleet: Fleet) -> None:
    node = fleet.first
    await node.ledger.order(node.order(1, A))
    await node.ledger.order(node.order(2, commits=True))
    late = await node.ledger.ended(node.me, MANY)
    await node.ledger.order(node.order(3, commits=True))  # once more, by the coordinator
    await node.ledger.marked(late)
    assert await ended(node) == {A: True}
    await node.ledger.marked(await node.ledger.ended(node.me, MANY))
    await node.ledger.order(node.order(4, A))
    await node.ledger.marked(late)
    assert await node.ledger.joined(PRODUCER, [A]) == {A: 0}


async def test_only_the_owner_of_the_coordinators_shard_orders(fleet: Fleet) -> None:
    first, second = fleet.first, fleet.second
    stolen = first.order(1, A)._replace(incarnation=second.me)
    assert await second.ledger.order(stolen) is OrderAnswer.STALE
    old = first.order(1, A)._replace(shard=OwnedShard(first.shards[0].shard_id, 99))
    assert await first.ledger.order(old) is OrderAnswer.STALE
    await fleet.catalog.resign(first.me)
    assert await first.ledger.order(first.order(1, A)) is OrderAnswer.FENCED


async def test_the_next_owner_of_a_coordinators_shard_goes_on(fleet: Fleet) -> None:
    first, second = fleet.first, fleet.second
    await first.ledger.order(first.order(17, A, B))
    shard = first.shards[0]
    assert await fleet.catalog.give(first.me, shard, second.me)
    assert await first.ledger.order(first.order(18, commits=True)) is OrderAnswer.STALE
    now = second._replace(shards=[OwnedShard(shard.shard_id, shard.epoch + 1)])
    assert await now.ledger.order(now.order(1, B)) is OrderAnswer.OK, "numbers begin anew"
    assert await now.ledger.order(now.order(2, commits=False, epoch=1)) is OrderAnswer.OK
    assert await ended(now) == {A: False, B: False}, "A is of the shard that was given"


async def test_what_is_deleted_takes_part_in_nothing(fleet: Fleet) -> None:
    node = fleet.second
    first = fleet.first
    await first.ledger.order(first.order(1, B, C))
    await fleet.catalog.delete_topic(OTHER, 0)
    for _ in range(2):
        assert await first.ledger.order(first.order(2, C, B)) is OrderAnswer.NO_PARTITION
    assert await node.ledger.joined(PRODUCER, [B, C]) == {B: 0}
    await first.ledger.order(first.order(3, commits=True))
    assert await ended(node) == {B: True}


async def test_who_is_concerned_hears_of_it(fleet: Fleet) -> None:
    first, second = fleet.first, fleet.second
    for each in (first, second):
        await each.ledger.changed(0.01)  # begins to listen
        await each.ledger.changed(0.3)
    await first.ledger.order(first.order(1, B))
    await first.ledger.order(first.order(2, commits=True))
    assert await second.ledger.changed(5)
    await second.ledger.marked(await second.ledger.ended(second.me, MANY))
    assert await first.ledger.changed(5)


async def test_many_are_given_in_part(fleet: Fleet) -> None:
    node = fleet.first
    for each in range(5):
        await node.ledger.order(node.order(2 * each + 1, A, producer_id=each))
        await node.ledger.order(node.order(2 * each + 2, commits=True, producer_id=each))
    assert len(await node.ledger.ended(node.me, 3)) == 3
    assert await node.ledger.unmarked([0, 4, 9]) == {0, 4}
