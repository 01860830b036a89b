"""Writes to quarantines while topics are deleted: none waits for what waits for it."""

import asyncio
from typing import Any

import pytest

from broker.record_times import quarantine
from protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World, batch, produce_request

DAY_MS = 86_400_000


async def made(world: World, *names: str) -> None:
    for name in names:
        await world.make_topic(
            name, message_timestamp_after_max_ms=str(DAY_MS), horolog_timestamp_policy="quarantine"
        )


def begin(world: World, request: Any, version: int) -> asyncio.Future[Any]:
    """A client that does not wait for its answer."""
    return asyncio.ensure_future(world.settled(world.begin(request, version)))


def bad_write(world: World, topic: str = "t") -> asyncio.Future[Any]:
    """A batch that goes to the quarantine as a whole."""
    records = batch(b"bad", at=world.clock.now_ms() + 2 * DAY_MS)
    return begin(world, produce_request(records, topic=topic), 12)


def deletion(world: World, *names: str) -> asyncio.Future[Any]:
    topics = [DeleteTopicState(name=each) for each in names]
    return begin(world, DeleteTopicsRequest(topics=topics), 6)


async def rest() -> None:
    """Everything has gone as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


async def lane_goes_on(world: World) -> None:
    """What waits for the lane is done, and the lane is free."""
    world.lanes.held = False
    while world.lanes.waiting:
        world.lanes.release()
        await rest()


async def code_of(produced: asyncio.Future[Any]) -> int:
    part = (await asyncio.wait_for(produced, 2)).responses[0].partition_responses[0]
    return int(part.error_code)


async def deleted(world: World, deleting: asyncio.Future[Any]) -> None:
    """The deletion ends, and topics can be changed after it."""
    answer = await asyncio.wait_for(deleting, 2)
    assert {each.error_code for each in answer.responses} == {0}
    other = CreatableTopic(name="other", num_partitions=1, replication_factor=1)
    created = begin(world, CreateTopicsRequest(topics=[other]), 7)
    assert (await asyncio.wait_for(created, 2)).topics[0].error_code == 0


async def test_a_write_whose_quarantine_is_to_be_made_gives_up_when_its_topic_goes(
    world: World,
) -> None:
    await made(world, "t")
    world.lanes.held = True
    deleting = deletion(world, "t")
    await rest()
    produced = bad_write(world)
    await rest()

    await lane_goes_on(world)

    assert await code_of(produced) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await deleted(world, deleting)
    assert "t.quarantine" not in world.broker.topics.image.topics
    assert not world.broker.quarantine.refusals


async def test_a_write_that_has_its_turn_after_its_topic_went_asks_for_no_quarantine(
    world: World,
) -> None:
    await made(world, "t")
    writer = world.partition().writer
    world.lanes.held = True
    writer.in_turn(lambda: None)  # a lane is busy with the log
    change = world.lanes.waiting.pop()
    produced = bad_write(world)
    deleting = deletion(world, "t")
    await rest()
    await lane_goes_on(world)
    assert not deleting.done()

    change()
    await rest()

    assert await code_of(produced) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    await deleted(world, deleting)
    assert "t.quarantine" not in world.broker.topics.image.topics


async def test_topics_that_go_together_wait_for_none_of_their_quarantines(world: World) -> None:
    """The quarantine of the first one waits itself: its policy changed while it was written to."""
    await made(world, "t")
    await world.make_topic("t.quarantine", message_timestamp_after_max_ms=str(DAY_MS))
    world.lanes.held = True
    world.partition("t.quarantine").writer.in_turn(lambda: None)
    change = world.lanes.waiting.pop()
    late = bad_write(world, "t.quarantine")
    first = bad_write(world)
    await rest()
    config = world.partition().log.config
    world.partition("t.quarantine").log.reconfigure(config)
    deleting = deletion(world, "t", "t.quarantine")
    await rest()
    change()
    await rest()
    assert world.partition("t.quarantine").writer.awaits_quarantine

    await lane_goes_on(world)

    assert await code_of(late) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert first.done()
    await deleted(world, deleting)


async def test_a_write_waits_for_other_changes_of_topics_only_so_long(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await made(world, "t")
    monkeypatch.setattr(quarantine, "PATIENCE_SECONDS", 0.01)
    async with world.broker.topics.changing:
        produced = bad_write(world)
        assert await code_of(produced) == ErrorCode.KAFKA_STORAGE_ERROR
    assert not world.partition().writer.is_writing
    assert await code_of(bad_write(world)) == 0
    assert "t.quarantine" in world.broker.topics.image.topics
