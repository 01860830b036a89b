"""Answers about queues whose first records only a store has, which fails."""

from typing import Any

import pytest

from broker.http.port.caller import EVERYBODY
from broker.http.port.parameters import Asked, understood
from broker.http.resources import share_records
from broker.server.services import bound
from storage.tier.port import StoreTimedOut
from tests.support.tier.memory_store import MemoryStore
from tests.support.worlds.handler_world import BATCH_TIME
from tests.support.worlds.share_read_world import ACCEPT, ShareReadWorld
from tests.support.worlds.tiered_world import TieredWorld

(RECORDS,) = share_records.ROUTES
PARTITIONS = 3


class FailingStore(MemoryStore):
    """A store that counts how often it was asked for records, and gives them unless it `fails`."""

    fails = False
    asked = 0

    def get_range(self, key: str, position: int, size: int) -> bytes:
        """As the port has it."""
        self.asked += 1
        if self.fails:
            raise StoreTimedOut(key, "get_range", "no answer within 30 s")
        return super().get_range(key, position, size)


class TieredQueues(TieredWorld, ShareReadWorld):
    """A broker with queues, and a tier."""

    store_kind = FailingStore
    store: FailingStore


def ask(world: TieredQueues) -> Any:
    now_ms = world.clock.now_ms()
    fields, _ = understood({}, RECORDS.parameters, now_ms, takes_settings=False)
    assert RECORDS.read is not None
    services = bound(RECORDS.services, world.broker)
    return RECORDS.read(services, Asked({"group": "g"}, fields, {}, EVERYBODY))


@pytest.fixture
async def world() -> TieredQueues:
    """Three partitions, each with a record in the store that somebody has, and one that is here."""
    world = TieredQueues()
    await world.make_topic(partitions=PARTITIONS)
    for index in range(PARTITIONS):
        await world.initialized(partition=index)
        await world.produce(b"away", at=BATCH_TIME, partition=index)
        world.roll(index=index)
        await world.produce(b"between", at=BATCH_TIME + 500, partition=index)
        world.roll(index=index)
        await world.produce(b"here", at=BATCH_TIME + 1000, partition=index)
    for index in reversed(range(PARTITIONS)):
        reader = world.reader(f"m{index}", ("t", index))
        await reader.fetch()
    assert [await reader.got(), await reader.got()] == [[(1, 1, 1)], [(2, 2, 1)]]
    assert await reader.code((1, 1, ACCEPT)) == 0
    for index in range(PARTITIONS):
        world.send_away(index=index)
    world.store.asked = 0
    return world


def times(answer: Any) -> list[tuple[int, int | None]]:
    return [
        (each["partition"], each["record_time"] and each["record_time"]["ms"])
        for each in answer["records"]
        if each["state"] == "acquired"
    ]


async def test_a_store_that_fails_is_asked_once_for_an_answer(world: TieredQueues) -> None:
    world.store.fails = True
    answer = ask(world)
    assert world.store.asked == 1
    assert times(answer) == [(0, None), (0, BATCH_TIME + 1000), (1, None), (2, None)]
    assert "no answer within 30 s" in answer["fault"]


async def test_it_is_asked_again_for_the_next_answer(world: TieredQueues) -> None:
    world.store.fails = True
    assert ask(world)["fault"] is not None
    world.store.fails = False
    answer = ask(world)
    assert answer["fault"] is None
    assert times(answer) == [
        (0, BATCH_TIME), (0, BATCH_TIME + 1000), (1, BATCH_TIME), (2, BATCH_TIME),
    ]  # fmt: skip
