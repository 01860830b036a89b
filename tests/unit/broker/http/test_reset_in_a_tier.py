"""A group is set to a time in topics that go on in a store."""

import asyncio
from typing import Any

import pytest

from broker.http.port.caller import EVERYBODY
from broker.http.port.parameters import Asked, understood
from broker.http.resources import group_reset
from broker.server.services import bound
from protocol.apis import offset_commit
from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.handler_world import BATCH_TIME
from tests.support.worlds.tiered_world import TieredWorld

AWAY_MS, LOCAL_MS = BATCH_TIME, BATCH_TIME + 1000
_, RESET = group_reset.ROUTES


@pytest.fixture
async def world() -> TieredWorld:
    """Offset 0 is in the store only, which is silent; 1 is in the directory."""
    world = TieredWorld()
    await world.make_topic()
    await world.produce(b"away", at=AWAY_MS)
    world.roll()
    world.send_away()
    await world.produce(b"here", at=LOCAL_MS)
    world.roll()
    await world.produce(b"here, too", at=LOCAL_MS + 1000)
    await commit(world)
    world.away.held = True
    return world


async def commit(world: TieredWorld) -> None:
    part = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    topics = [offset_commit.OffsetCommitRequestTopic(name="t", partitions=[part])]
    committed = world.begin(offset_commit.OffsetCommitRequest(group_id="g", topics=topics), 9)
    while not committed.settled:
        await asyncio.sleep(0)
        world.commit.sync()


async def reset(world: TieredWorld, to_ms: int, clock: str = "record") -> Any:
    texts = {"to": str(to_ms), "clock": clock}
    now_ms = world.clock.now_ms()
    fields, _ = understood(texts, RESET.parameters, now_ms, takes_settings=False)
    assert RESET.act is not None
    services = bound(RESET.services, world.broker)
    task = asyncio.ensure_future(RESET.act(services, Asked({"group": "g"}, fields, {}, EVERYBODY)))
    while not task.done():
        await asyncio.sleep(0.001)
        world.commit.sync()
    (found,) = task.result()["partitions"]
    return found["new_offset"]


async def test_a_time_of_the_directory_does_not_wait_for_the_store(world: TieredWorld) -> None:
    assert await reset(world, LOCAL_MS) == 1
    assert not world.away.waiting


async def test_a_time_of_the_store_waits_for_it_apart_and_not_for_ever(world: TieredWorld) -> None:
    with pytest.raises(KafkaError) as refused:
        await reset(world, AWAY_MS)
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert len(world.away.waiting) == 1
    world.away.held = False
    assert await reset(world, AWAY_MS) == 0


@pytest.mark.parametrize("clock", ["record", "arrival", "earlier"])
async def test_behind_all_records_it_is_set_to_the_end(world: TieredWorld, clock: str) -> None:
    behind_all = max(world.clock.now_ms(), LOCAL_MS) + 100_000
    assert await reset(world, behind_all, clock) == 3
