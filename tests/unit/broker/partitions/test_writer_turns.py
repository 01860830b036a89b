"""Writes that wait for the turn of their log: the order stays, and the lane is left again."""

import asyncio
from typing import Any

import pytest

from broker.partitions.writer_gate import AT_ONCE
from broker.runtime.memory_account import MemoryClass
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.validation.internal_batch import own_batch
from tests.support.worlds.handler_world import BATCH_TIME, World, batch, produce_request

DAY_MS = 86_400_000


@pytest.fixture
async def world() -> World:
    return World()


def begin(world: World, *values: bytes, acks: int = 1, **how: Any) -> asyncio.Future[Any]:
    """A producer that does not wait for its answer."""
    request = produce_request(batch(*values, **how), acks=acks)
    answer = world.begin(request, 12)
    return asyncio.ensure_future(world.settled(answer))


async def release(world: World) -> None:
    """The oldest work of the lane is done, and the loop has heard of it."""
    world.lanes.release()
    for _ in range(3):
        await asyncio.sleep(0)


async def offset_of(answer: asyncio.Future[Any]) -> int:
    """Offset by which a batch was stored."""
    part = (await answer).responses[0].partition_responses[0]
    assert part.error_code == 0, part
    return int(part.base_offset)


async def test_a_write_that_waited_is_not_on_the_lane(world: World) -> None:
    """One change on a lane would keep there whoever always has a request under way."""
    await world.make_topic()
    world.lanes.held = True
    change = asyncio.ensure_future(world.settled(world.partition().writer.in_turn(lambda: "done")))
    waiting = [begin(world, b"a"), begin(world, b"b")]
    assert len(world.lanes.waiting) == 1

    await release(world)

    assert not world.lanes.waiting
    assert await change == "done"
    assert [await offset_of(each) for each in waiting] == [0, 1]
    assert not world.partition().writer.is_writing


async def test_writes_keep_their_order_behind_one_on_the_lane(world: World) -> None:
    await world.make_topic()
    world.lanes.held = True
    large = begin(world, b"0" * 4_000_000, codec=Codec.ZSTD)
    assert len(world.lanes.waiting) == 1
    later = [begin(world, b"a"), begin(world, b"b", codec=Codec.GZIP), begin(world, b"c")]

    await release(world)

    assert [await offset_of(each) for each in (large, *later)] == [0, 1, 2, 3]
    assert world.broker.memory.used(MemoryClass.LANES) == 0


async def test_a_batch_that_waited_is_refused_like_any_other(world: World) -> None:
    await world.make_topic(message_timestamp_after_max_ms=str(DAY_MS))
    world.lanes.held = True
    world.partition().writer.in_turn(lambda: None)
    late = begin(world, b"a", at=world.clock.now_ms() + 2 * DAY_MS)
    good = begin(world, b"b", at=world.clock.now_ms())

    await release(world)

    part = (await late).responses[0].partition_responses[0]
    assert part.error_code == ErrorCode.INVALID_TIMESTAMP
    assert await offset_of(good) == 0
    assert world.broker.memory.used(MemoryClass.LANES) == 0


async def test_a_batch_that_waited_and_needs_long_is_checked_on_the_lane(world: World) -> None:
    await world.make_topic()
    world.lanes.held = True
    world.partition().writer.in_turn(lambda: None)
    large = begin(world, b"0" * 4_000_000, codec=Codec.ZSTD)
    small = begin(world, b"a")

    await release(world)
    assert len(world.lanes.waiting) == 1  # the large one
    await release(world)

    assert [await offset_of(large), await offset_of(small)] == [0, 1]


async def test_what_the_broker_writes_waits_and_is_not_on_the_lane(world: World) -> None:
    await world.make_topic()
    partition = world.partition()
    world.lanes.held = True
    partition.writer.in_turn(lambda: None)
    before = begin(world, b"a")
    checked = own_batch(build_batch([(BATCH_TIME, None, b"own")]), world.clock.now_ms())
    own = asyncio.ensure_future(world.settled(partition.writer.append_own(checked, acks=1)))

    await release(world)

    assert not world.lanes.waiting
    assert await offset_of(before) == 0
    assert (await own).base_offset == 1


async def test_many_writes_that_waited_leave_the_loop_to_others(world: World) -> None:
    await world.make_topic()
    world.lanes.held = True
    world.partition().writer.in_turn(lambda: None)
    count = 10 * AT_ONCE
    waiting = [begin(world, b"%d" % number) for number in range(count)]

    await release(world)
    ends = []
    for _ in range(2):
        ends.append(world.partition().log.snapshot.log_end_offset)
        await asyncio.sleep(0)

    assert 0 < ends[0] < ends[1] < count
    assert [await offset_of(each) for each in waiting] == list(range(count))
    assert not world.partition().writer.is_writing
