"""Producers that a partition has forgotten, at a node that asks for the rows of transactions."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from broker.partitions.leadership import NEW_SECONDS, Leadership
from broker.transactions.admission import LocalAdmission
from broker.transactions.first_batches import MOST, FirstBatches
from broker.transactions.rules import ProducerClaim
from broker.transactions.transaction import Place
from protocol.errors import ErrorCode as E
from protocol.errors import KafkaError
from tests.support.worlds.transaction_world import (
    Producer,
    TransactionWorld,
    producer,
    transaction_world,
)

CLAIM, PLACE = ProducerClaim("x", 4000, 3), ("t", 0)


class AsksRows(LocalAdmission):
    """Waits for all, as in a fleet; this node's coordinator stands for the rows."""

    away = 0
    """Questions that get no answer, from now on."""

    def waits(self, *, joins: bool) -> bool:
        return True

    async def admit(
        self, claim: ProducerClaim, places: Sequence[Place], *, joins: bool
    ) -> Mapping[Place, KafkaError]:
        assert not joins
        await asyncio.sleep(0)
        if self.away:
            self.away -= 1
            return dict.fromkeys(places, KafkaError(E.NOT_ENOUGH_REPLICAS))
        for each in places:
            self.check(claim, each)
        return {}


@pytest.fixture
async def world() -> TransactionWorld:
    world = await transaction_world()
    world.broker.admission = AsksRows(world.broker.transactions)
    return world


async def forgotten(world: TransactionWorld) -> Producer:
    """One that goes on with sequence 1."""
    one = await producer(world)
    assert await one.write(b"a") == 0
    assert await one.end() == 0
    await world.rests()
    states = world.partition().log.producers
    assert states.expire(world.clock.now_ms() + 10**12, 86_400_000) == [one.producer_id]
    return one


async def test_a_forgotten_producer_goes_on_with_its_sequence(world: TransactionWorld) -> None:
    """An error about sequences would end a producer of librdkafka."""
    one = await forgotten(world)
    assert await one.write(b"b") == 0
    assert await one.write(b"c") == 0
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"a", b"b", b"c"]


async def test_so_does_one_of_which_a_marker_alone_is_left(world: TransactionWorld) -> None:
    one = await producer(world)
    assert await one.write(b"a") == 0
    assert await one.end() == 0
    await world.rests()
    known = world.partition().log.producers.get(one.producer_id)
    assert known is not None
    known.is_marker_alone, known.batches = True, ()
    assert await one.write(b"b") == 0


@pytest.mark.parametrize("refused", [1, 2])
async def test_batches_behind_a_refused_one_wait_until_it_comes_again(
    world: TransactionWorld, refused: int
) -> None:
    one = await forgotten(world)
    assert await one.join(0) == [0]
    world.broker.admission.away = refused
    sent = [
        asyncio.ensure_future(one.send(b"%d" % number, sequence=number)) for number in (1, 2, 3)
    ]
    assert await asyncio.gather(*sent) == [E.NOT_ENOUGH_REPLICAS] * 3
    assert [await one.send(b"%d" % number, sequence=number) for number in (1, 2, 3)] == [0] * 3
    assert await one.end() == 0
    await world.rests()
    assert await world.committed() == [b"a", b"1", b"2", b"3"]


async def test_a_batch_behind_one_whose_connection_was_closed_waits(
    world: TransactionWorld,
) -> None:
    one = await forgotten(world)
    assert await one.join(0) == [0]
    first = asyncio.ensure_future(one.send(b"1", sequence=1))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert await one.send(b"2", sequence=2) == E.NOT_ENOUGH_REPLICAS
    assert await one.send(b"1", sequence=1) == 0


async def test_at_a_new_leader_it_goes_on_when_nothing_can_be_missing(
    world: TransactionWorld,
) -> None:
    """The leader before may have refused a batch that this one has never seen."""
    one = await forgotten(world)
    now = world.clock.monotonic()
    world.partition().led_by(Leadership(1, 8, is_here=True, gained_at=now))
    assert await one.write(b"b") == E.NOT_LEADER_OR_FOLLOWER
    world.clock.advance(int(NEW_SECONDS * 1000))
    assert await one.write(b"b") == 0


def test_what_was_refused_is_remembered_for_a_while() -> None:
    first = FirstBatches()
    first.refused(CLAIM, PLACE, 7, 0.0)
    first.refused(CLAIM, PLACE, 5, 1.0)
    first.refused(CLAIM, PLACE, 6, 9.0)
    assert first.is_behind(CLAIM, PLACE, 6, 10.9)
    assert not first.is_behind(CLAIM, PLACE, 5, 10.9)
    assert not first.is_behind(CLAIM._replace(producer_epoch=4), PLACE, 6, 10.9)
    assert not first.is_behind(CLAIM, ("t", 1), 6, 10.9)
    assert not first.is_behind(CLAIM, PLACE, 6, 11.0)
    first.refused(CLAIM, PLACE, 5, 20.0)
    first.taken(CLAIM, PLACE)
    assert not first.is_behind(CLAIM, PLACE, 6, 20.0)


def test_not_more_is_remembered_than_a_limit() -> None:
    first = FirstBatches()
    for number in range(MOST + 1):
        first.refused(CLAIM, ("t", number), 0, 0.0)
    assert not first.is_behind(CLAIM, ("t", 0), 1, 0.0)
    assert first.is_behind(CLAIM, ("t", MOST), 1, 0.0)
