"""Answers for clients of formats 0 and 1 are bounded in work, time and memory, and lose nothing."""

import asyncio
from typing import Any

from broker.fetching.down_converted import MOST_BYTES, MOST_SECONDS
from broker.runtime.memory_account import MemoryClass
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.records.compression import Codec
from tests.support.worlds.handler_world import World
from tests.support.worlds.inflating import big_value, produce

MIB = 1 << 20
PARTITIONS = 8
WHENEVER = {"message_timestamp_after_max_ms": str(2**63 - 1)}


def fetch_request(partitions: int = PARTITIONS, first: int = 0) -> FetchRequest:
    parts = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 26)
        for index in range(first, partitions)
    ]
    return FetchRequest(
        replica_id=-1, max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=parts)]
    )


def given(response: Any) -> list[bool]:
    parts = response.responses[0].partitions
    assert not any(part.error_code for part in parts)
    return [bool(part.records) for part in parts]


async def fill(world: World, codec: Codec = Codec.GZIP, size_bytes: int = 20 * MIB) -> None:
    await world.make_topic("t", partitions=PARTITIONS, **WHENEVER)
    batch = big_value(codec, size_bytes)
    for index in range(PARTITIONS):
        answer = await world.call(produce("t", {index: batch}), 8)
        assert not answer.responses[0].partition_responses[0].error_code


async def test_an_answer_unpacks_so_much_and_the_rest_comes_with_the_next(world: World) -> None:
    await fill(world)
    most = -(-MOST_BYTES // (20 * MIB))
    assert given(await world.call(fetch_request(), 2)) == [i < most for i in range(PARTITIONS)]
    rest = given(await world.call(fetch_request(first=most), 2))
    assert rest == [True] * (PARTITIONS - most)


async def test_an_answer_takes_so_long_and_has_what_was_converted(world: World) -> None:
    await fill(world, size_bytes=1000)
    world.lanes.held = True
    answer = world.begin(fetch_request(), 2)
    while not answer.settled:
        await asyncio.sleep(0)
        if world.lanes.waiting:
            world.clock.advance(int(MOST_SECONDS * 400))
            world.lanes.release()
    response = world.read(fetch_request(), 2, await world.settled(answer))
    assert given(response) == [True, True, *[False] * (PARTITIONS - 2)]


async def test_what_is_converted_is_in_the_account_until_it_goes_out(world: World) -> None:
    await fill(world, Codec.NONE, 100_000)
    memory = world.broker.memory
    memory.limit_bytes = 2_000_000  # answers have 15 % of it
    response = await world.call(fetch_request(), 2)
    assert given(response) == [True, True, *[False] * (PARTITIONS - 2)]
    assert memory.used(MemoryClass.ANSWERS) == 0
    assert memory.refusals(MemoryClass.ANSWERS) > 0
