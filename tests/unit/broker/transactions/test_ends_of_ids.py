"""Transactional ids whose epochs, or whose life, come to an end."""

import asyncio
from dataclasses import replace

import pytest

from broker.transactions.transaction import LAST_EPOCH_OF_CLIENTS, TransactionState
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
