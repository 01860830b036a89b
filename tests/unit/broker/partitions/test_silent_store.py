"""A store that is silent stops only what it alone has."""

import asyncio
from typing import Any

import pytest

from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred
from broker.share.letters.dead_letters import ENABLED, DeadLetters, nobody_elsewhere
from broker.share.states import GivenUp
from config.resources.group import GroupConfig
from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from protocol.errors import ErrorCode, KafkaError
from tests.support.worlds.handler_world import BATCH_TIME
from tests.support.worlds.tiered_world import TieredWorld

AWAY_MS, LOCAL_MS, LATER_MS = BATCH_TIME, BATCH_TIME + 1000, BATCH_TIME + 2000


@pytest.fixture
async def world() -> TieredWorld:
    """Offset 0 is in the store only, which is silent; 1 and 2 are in the directory."""
    world = TieredWorld()
    await world.make_topic()
    await world.produce(b"away", at=AWAY_MS)
    world.roll()
    world.send_away()
    await world.produce(b"here", at=LOCAL_MS)
    world.roll()
    await world.produce(b"here, too", at=LATER_MS)
    world.away.held = True
    return world


def search(world: TieredWorld, timestamp: int) -> Deferred[Any]:
    """From a lane: as of a request that asks for many."""
    found = world.partition().find_timestamp(timestamp, 3, at_once=False)
    assert isinstance(found, Deferred)
    return found


async def test_searches_that_end_in_the_directory_do_not_ask_the_store(world: TieredWorld) -> None:
    for at_ms, offset in ((LOCAL_MS, 1), (LATER_MS, 2)):
        found = await world.settled(search(world, at_ms))
        assert (found.timestamp, found.offset) == (at_ms, offset)
    assert await world.settled(search(world, LATER_MS + 1)) is None
    assert not world.away.waiting


async def test_a_search_that_takes_the_store_is_given_up_in_time(world: TieredWorld) -> None:
    with pytest.raises(KafkaError) as refused:
        await world.settled(search(world, AWAY_MS))
    assert refused.value.code == ErrorCode.REQUEST_TIMED_OUT
    assert len(world.away.waiting) == 1
    world.away.held = False
    assert (await world.settled(search(world, AWAY_MS))).offset == 0


async def test_the_largest_time_is_found_in_the_directory(world: TieredWorld) -> None:
    found = world.partition().find_max_timestamp(3, at_once=False)
    assert (await world.settled(found)).offset == 2


async def test_starts_of_segments_come_from_the_directory(world: TieredWorld) -> None:
    query = ListOffsetsPartition(partition_index=0, timestamp=-1, max_num_offsets=9)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[query])])
    (answer,) = (await world.call(request, 0)).topics[0].partitions
    assert answer.old_style_offsets == [3, 2, 1, 0]


async def test_what_is_here_is_read_on_the_lane_of_the_disk(world: TieredWorld) -> None:
    partition = world.partition()
    assert await world.settled(partition.on_lane(lambda: "slice")) == "slice"
    assert await world.settled(partition.on_lane(lambda: "record", 1)) == "record"
    assert await world.settled(partition.on_unpacking_lane(lambda work: "due", at=1)) == "due"
    assert not world.away.waiting


async def test_what_the_store_has_waits_for_it_on_its_threads(world: TieredWorld) -> None:
    partition = world.partition()
    answers = [
        partition.on_lane(lambda: "record", 0),
        partition.on_unpacking_lane(lambda work: "due", at=0),
    ]
    assert not any(each.settled for each in answers)
    world.away.release()
    world.away.release()
    assert [await world.settled(each) for each in answers] == ["record", "due"]


def send_letter(world: TieredWorld, offset: int) -> Deferred[None]:
    broker = world.broker
    letters = DeadLetters(
        broker.topics, broker.rules, broker.config, broker.clock, broker.probes,
        elsewhere=nobody_elsewhere,
    )  # fmt: skip
    given_up = [GivenUp(offset, offset, 5, "limit", "m")]
    settings = GroupConfig(errors_deadletterqueue_topic_name="dlq.t")
    return letters.send(world.partition(), "g", given_up, settings)


def count_of_letters(world: TieredWorld) -> int:
    found: Partition = world.partition("dlq.t")
    return found.log.snapshot.log_end_offset


async def test_dead_letters_of_records_in_the_directory_are_written(world: TieredWorld) -> None:
    await world.make_topic("dlq.t", **{ENABLED.replace(".", "_"): "true"})
    away, here = send_letter(world, 0), send_letter(world, 2)
    for _ in range(10):
        await asyncio.sleep(0)
    world.commit.sync()
    await world.settled(here)
    assert (count_of_letters(world), away.settled) == (1, False)
    world.away.release()
    for _ in range(10):
        await asyncio.sleep(0)
    world.commit.sync()
    await world.settled(away)
    assert count_of_letters(world) == 2
