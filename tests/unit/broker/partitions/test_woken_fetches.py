"""Fetches that wait for a log are woken by all of its bytes, whoever hears of them first."""

import asyncio
from typing import Any

from broker.partitions.writer import PartitionWriter
from protocol.records.compression import Codec
from tests.support.worlds.handler_world import World, batch, produce_request
from tests.unit.broker.handlers.test_fetch import fetch


def large() -> bytearray:
    """A batch that is appended on a lane."""
    return batch(b"0" * 4_000_000, codec=Codec.ZSTD)


def begin(world: World, records: bytearray, acks: int = 1) -> asyncio.Future[Any]:
    """A producer that does not wait for its answer."""
    request = produce_request(records, acks=acks)
    return asyncio.ensure_future(world.settled(world.begin(request, 12)))


def waiting(world: World, offset: int, min_bytes: int = 1) -> asyncio.Future[Any]:
    request = fetch(offset, max_wait_ms=300_000, min_bytes=min_bytes)
    return asyncio.ensure_future(world.settled(world.begin(request, 12)))


async def is_answered(fetching: asyncio.Future[Any]) -> bool:
    done, _ = await asyncio.wait([fetching], timeout=2)
    fetching.cancel()
    return bool(done)


async def test_a_sync_that_ends_before_the_loop_hears_of_an_append_wakes_for_it(
    world: World,
) -> None:
    await world.make_topic()
    log = world.partition().log
    await world.produce(b"first")
    fetching = waiting(world, 1)
    world.lanes.held = True
    produced = begin(world, large())
    await asyncio.sleep(0)
    world.lanes.release()  # appended; the loop has not heard of it

    log.mark_durable(log.sync())
    world.commit.on_durable(log)

    part = (await produced).responses[0].partition_responses[0]
    assert (part.error_code, part.base_offset) == (0, 1)
    assert await is_answered(fetching)


async def test_a_write_that_waited_wakes_also_for_the_one_before_it(world: World) -> None:
    await world.make_topic()
    first, second = large(), batch(b"small")
    fetching = waiting(world, 0, min_bytes=len(first) + len(second))
    world.lanes.held = True
    produced = [begin(world, first), begin(world, second)]
    await asyncio.sleep(0)
    world.lanes.release()
    await asyncio.gather(*produced)
    assert await is_answered(fetching)


async def test_bytes_that_are_not_readable_yet_are_not_counted_as_read(world: World) -> None:
    """The first batch promises durability: with the second one both come into sight."""
    await world.make_topic()
    first, second = batch(b"a" * 100), batch(b"b" * 100)
    fetching = waiting(world, 0, min_bytes=len(first) + len(second))
    produced = [begin(world, each, acks=-1) for each in (first, second)]
    await asyncio.sleep(0)
    assert not fetching.done()
    world.commit.sync()
    await asyncio.gather(*produced)
    assert await is_answered(fetching)


async def test_what_comes_into_sight_without_an_append_wakes_all(world: World) -> None:
    """A log that was put in service while its end was not durable yet."""
    await world.make_topic()
    partition = world.partition()
    produced = begin(world, batch(b"a"), acks=-1)
    await asyncio.sleep(0)
    partition.writer = PartitionWriter(partition.log, partition._serving, partition)
    fetching = waiting(world, 0)
    await asyncio.sleep(0)
    assert not fetching.done()
    world.commit.sync()
    await produced
    assert await is_answered(fetching)
