"""Transactional ids whose epochs, or whose life, come to an end."""

import asyncio
from dataclasses import replace

import pytest

from broker.transactions.transaction import LAST_EPOCH_OF_CLIENTS, TransactionState
from broker.transactions.transactional import Transactional
from tests.support.worlds.transaction_world import (
    TIMEOUT_MS,
    Producer,
    TransactionWorld,
    producer,
    transaction_world,
)

BOTH = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture
async def world() -> TransactionWorld:
    return await transaction_world()


@BOTH
@pytest.mark.parametrize("left", [0, 1, 2])
async def test_no_producer_gets_the_epoch_that_is_kept_for_fencing(
    world: TransactionWorld, version: int, left: int
) -> None:
    one = await producer(world, version=version)
    owner = world.broker.transactions.ids[one.transactional_id]
    one.epoch = LAST_EPOCH_OF_CLIENTS - left
    await world.broker.transactions.steps.write(
        owner, replace(owner.facts, producer_epoch=one.epoch)
    )
    old_id, old_epoch = one.producer_id, one.epoch
    assert await one.write(b"v") == 0
    assert await one.begin(goes_on=True) == 0
    assert one.epoch <= LAST_EPOCH_OF_CLIENTS
    if one.producer_id != old_id:
        assert one.epoch == 0
        named = one.producer_id, one.epoch
        one.producer_id, one.epoch = old_id, old_epoch
        if old_epoch == LAST_EPOCH_OF_CLIENTS:
            assert await one.begin(goes_on=True) == 0, "the same request again"
            assert (one.producer_id, one.epoch) == named
        one.producer_id, one.epoch = named
    assert await one.write(b"w") == 0
    assert await one.end() == 0


async def test_an_id_that_went_while_others_are_ended_stops_none(world: TransactionWorld) -> None:
    one, two = await producer(world), Producer(world, "second", 1)
    assert await two.begin() == 0
    for each in (one, two):
        assert await each.write(b"v") == 0
    transactions = world.broker.transactions
    owner = transactions.ids[one.transactional_id]
    await owner.turn.acquire()
    world.clock.advance(TIMEOUT_MS + 1)
    round_ = asyncio.ensure_future(transactions.abort_overdue())
    await asyncio.sleep(0)
    owner.is_gone = True
    owner.turn.release()
    await round_
    assert transactions.ids["second"].facts.state is TransactionState.COMPLETE_ABORT


LONG_MS = 7 * 86_400_000
"""After which an id expires that nobody has used."""


@pytest.mark.parametrize("joins", [False, True])
async def test_an_id_that_is_used_just_when_it_is_to_expire_stays(
    world: TransactionWorld, joins: bool
) -> None:
    """Else its transaction would be open, and nobody would end it."""
    one = await producer(world)
    transactions = world.broker.transactions
    owner = transactions.ids[one.transactional_id]
    world.clock.advance(LONG_MS)
    await owner.turn.acquire()
    asked = asyncio.ensure_future(one.join(0) if joins else one.begin())
    await asyncio.sleep(0)
    owner.turn.release()
    await transactions.expire()
    assert await asked == ([0] if joins else 0)
    assert transactions.ids[one.transactional_id] is owner
    assert await one.write(b"v") == 0
    assert await one.end() == 0


async def test_a_producer_that_begins_while_its_id_expires_begins_as_a_new_one(
    world: TransactionWorld,
) -> None:
    one = await producer(world)
    transactions, before = world.broker.transactions, (one.producer_id, one.epoch)
    owner = transactions.ids[one.transactional_id]
    world.clock.advance(LONG_MS)
    forgotten = asyncio.ensure_future(_forgets_slowly(world))
    await asyncio.sleep(0)
    assert owner.turn.locked()
    assert await one.begin() == 0
    await forgotten
    assert (one.producer_id, one.epoch) != before
    assert await one.write(b"v") == 0
    assert await one.end() == 0


async def _forgets_slowly(world: TransactionWorld) -> None:
    """Expires ids while the disk takes a few turns of the loop for each."""
    transactions = world.broker.transactions
    steps, forget = transactions.steps, transactions.steps.forget

    async def slowly(owner: Transactional) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        await forget(owner)

    steps.forget = slowly
    await transactions.expire()
    steps.forget = forget
