"""A group is set to a time in a fleet: only in partitions whose times this node knows."""

import asyncio
from typing import Any

import pytest

from broker.http.port.caller import EVERYBODY
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, understood
from broker.http.resources import group_reset
from broker.partitions.leadership import Leadership
from broker.server.services import bound
from protocol.apis import offset_commit
from tests.support.fleet.hand_lease import HandLease
from tests.support.worlds.handler_world import BATCH_TIME, World

HERE, THERE, COMMITTED = 1, 2, 2
PREVIEW, RESET = group_reset.ROUTES


@pytest.fixture
async def world() -> World:
    """Two partitions, in both of which the group has read all that there is."""
    world = World()
    await world.make_topic(partitions=2)
    for index in range(2):
        await world.produce(b"a", b"b", partition=index)
    parts = [
        offset_commit.OffsetCommitRequestPartition(partition_index=each, committed_offset=COMMITTED)
        for each in range(2)
    ]
    topics = [offset_commit.OffsetCommitRequestTopic(name="t", partitions=parts)]
    committed = world.begin(offset_commit.OffsetCommitRequest(group_id="g", topics=topics), 9)
    while not committed.settled:
        await asyncio.sleep(0)
        world.commit.sync()
    return world


def asked(world: World, topic: str | None = None) -> Asked:
    texts = {"to": str(BATCH_TIME), **({} if topic is None else {"topic": topic})}
    now_ms = world.clock.now_ms()
    fields, _ = understood(texts, RESET.parameters, now_ms, takes_settings=False)
    return Asked({"group": "g"}, fields, {}, EVERYBODY)


async def reset(world: World, topic: str | None = None) -> Any:
    assert RESET.act is not None
    services = bound(RESET.services, world.broker)
    task = asyncio.ensure_future(RESET.act(services, asked(world, topic)))
    while not task.done():
        await asyncio.sleep(0.001)
        world.commit.sync()
    return task.result()["partitions"]


def preview(world: World) -> Any:
    assert PREVIEW.read is not None
    found: Any = PREVIEW.read(bound(PREVIEW.services, world.broker), asked(world))
    return found["partitions"]


def offsets(world: World) -> list[int]:
    """Where the group is."""
    group = world.broker.groups.groups["g"]
    return [group.offsets["t", index].offset for index in range(2)]


async def test_a_partition_that_another_node_leads_is_not_set_by_what_is_here(world: World) -> None:
    """Its log here ends where this node stopped to lead it: the group would go back there."""
    world.partition("t", 1).led_by(Leadership(THERE, 7, is_here=False))
    for topic in (None, "t"):
        with pytest.raises(ApiError, match="t-1: node 2 leads it") as refused:
            await reset(world, topic)
        assert (refused.value.status, refused.value.code) == (409, "other_node")
    assert offsets(world) == [COMMITTED, COMMITTED], "no partition is set where one cannot be"
    with pytest.raises(ApiError, match="kafka-consumer-groups"):
        preview(world)


async def test_where_a_node_may_have_lost_its_lease_nothing_is_set(world: World) -> None:
    lease = HandLease()
    world.partition("t", 1).led_by(Leadership(HERE, 7, is_here=True, lease=lease))
    lease.is_held = False
    with pytest.raises(ApiError, match="another node may lead it by now"):
        await reset(world)
    assert offsets(world) == [COMMITTED, COMMITTED]
    lease.is_held = True
    assert [each["new_offset"] for each in preview(world)] == [0, 0]
    assert [each["new_offset"] for each in await reset(world)] == [0, 0]
    assert offsets(world) == [0, 0]
