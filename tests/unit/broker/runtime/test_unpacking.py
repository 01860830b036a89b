"""Small batches that unpack to much: where they are unpacked, how much a request may, who waits."""

import asyncio
import gzip

import lz4.frame
import pytest

from broker.runtime.gathering import wait_for
from broker.runtime.memory_account import MemoryAccount, MemoryClass
from broker.runtime.unpacking import OF_A_CONNECTION, RequestBudget, Unpacking
from protocol.errors import ErrorCode
from protocol.records.batch import HEADER_BYTES, LENGTH_ENDS, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from protocol.records.framing import XERIAL_HEADER
from storage.validation.unpacking import TooMuchWork, Work
from tests.support.worlds.handler_world import World
from tests.support.worlds.inflating import big_value, look_up, many_headers, produce

MIB = 1 << 20
WHENEVER = {"message_timestamp_after_max_ms": str(2**63 - 1)}
CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]


def codes(response: object) -> list[int]:
    return [p.error_code for p in response.responses[0].partition_responses]  # type: ignore[attr-defined]


@pytest.mark.parametrize("codec", CODECS)
async def test_what_unpacks_to_much_leaves_the_loop_however_small_it_is(
    world: World, codec: Codec
) -> None:
    await world.make_topic("t", **WHENEVER)
    world.lanes.held = True
    batch = big_value(codec, 4 * MIB)
    assert len(batch) < 4 * MIB // 15
    answer = world.begin(produce("t", {0: batch}), 8)
    assert world.lanes.waiting, "it was unpacked on the loop"
    world.lanes.held = False
    world.lanes.release()
    assert codes(await wait_for(answer)) == [0]


EMPTY = {
    Codec.GZIP: gzip.compress(b""),
    Codec.SNAPPY: b"\0\0\0\3\1\0a",
    Codec.LZ4: lz4.frame.compress(b"", store_size=False),
    Codec.ZSTD: bytes.fromhex("28 b5 2f fd 00 58 01 00 00"),
}
"""Parts of next to nothing, by the codec: a frame, a member, or a block."""


def many_parts(codec: Codec, count: int) -> memoryview:
    """A batch that says that it has one record."""
    made = build_batch([(5, b"k", b"")], codec=codec)
    head = XERIAL_HEADER if codec is Codec.SNAPPY else b""
    made[HEADER_BYTES:] = head + EMPTY[codec] * count
    made[8:12] = (len(made) - LENGTH_ENDS).to_bytes(4, "big")
    seal(made, 0, len(made))
    return memoryview(made)


@pytest.mark.parametrize("codec", CODECS)
async def test_a_small_batch_of_very_many_parts_leaves_the_loop(world: World, codec: Codec) -> None:
    """Each part takes time, and none has to unpack to anything."""
    await world.make_topic("t", **WHENEVER)
    world.lanes.held = True
    batch = many_parts(codec, 1500)
    assert len(batch) < 32 * 1024
    answer = world.begin(produce("t", {0: batch}), 8)
    assert world.lanes.waiting, "it was unpacked on the loop"
    world.lanes.held = False
    world.lanes.release()
    assert codes(await wait_for(answer)) == [ErrorCode.INVALID_RECORD]


async def test_parts_take_of_what_a_request_may_unpack(world: World) -> None:
    await world.make_topic("t", partitions=50, **WHENEVER)
    request = produce("t", dict.fromkeys(range(50), many_parts(Codec.ZSTD, 1500)))
    answered = codes(await world.call(request, 8))
    assert answered[0] == ErrorCode.INVALID_RECORD
    assert answered[-1] == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
async def test_ordinary_packed_batches_are_stored_at_once(world: World, codec: Codec) -> None:
    await world.make_topic("t", **WHENEVER)
    world.lanes.held = True
    answer = world.begin(produce("t", {0: big_value(codec, 10_000)}), 8)
    assert not world.lanes.waiting
    assert codes(answer) == [0]


async def test_a_request_unpacks_so_much_and_no_more(world: World) -> None:
    await world.make_topic("t", partitions=6, **WHENEVER)
    batch = big_value(Codec.ZSTD, 30 * MIB)
    answered = codes(await world.call(produce("t", dict.fromkeys(range(6), batch)), 8))
    assert answered == [0, 0, *[ErrorCode.MESSAGE_TOO_LARGE] * 4]
    again = codes(await world.call(produce("t", dict.fromkeys(range(2, 4), batch)), 8))
    assert again == [0, 0], "the next request has a budget of its own"


async def test_a_request_walks_so_many_records_and_no_more(world: World) -> None:
    await world.make_topic("t", partitions=1, **WHENEVER)
    rows = [(5, b"k", b"")] * 11
    for count, is_refused in ((11, False), (10, True)):
        records = memoryview(build_batch(rows, codec=Codec.ZSTD))
        work, log = Work(1 << 30, count), world.partition().log
        if is_refused:
            with pytest.raises(TooMuchWork):
                log.append(records, acks_all=False, leader_epoch=0, work=work)
        else:
            log.append(records, acks_all=False, leader_epoch=0, work=work)
            assert work.records_left == 0
    assert log.snapshot.log_end_offset == 11


async def test_a_search_by_time_unpacks_so_much_and_asks_to_come_again(world: World) -> None:
    await world.make_topic("t", partitions=8, **WHENEVER)
    batch = big_value(Codec.ZSTD, 60 * MIB)
    for index in range(8):
        assert codes(await world.call(produce("t", {index: batch}), 8)) == [0]
    for version, code in ((5, 78), (4, 5)):
        answer = await world.call(look_up("t", 8, 5), version)
        answered = [p.error_code for p in answer.topics[0].partitions]
        assert 0 in answered
        assert set(answered) == {0, code}


async def test_batches_that_wait_for_a_lane_are_charged_and_refused_beyond_the_share(
    world: World,
) -> None:
    await world.make_topic("t", partitions=40, **WHENEVER)
    memory: MemoryAccount = world.broker.memory
    batch = big_value(Codec.GZIP, 20 * MIB)
    memory.limit_bytes = 5 * 3 * len(batch) + 100  # a fifth of it is the share
    world.lanes.held = True
    waiting = world.begin(produce("t", dict.fromkeys(range(5), batch)), 8)
    assert memory.used(MemoryClass.LANES) == 3 * len(batch)
    world.lanes.held = False
    while world.lanes.waiting:
        world.lanes.release()
    answered = codes(await wait_for(waiting))
    assert answered[3:] == [ErrorCode.KAFKA_STORAGE_ERROR] * 2
    assert memory.used(MemoryClass.LANES) == 0
    assert memory.refusals(MemoryClass.LANES) == 2


async def test_large_ones_take_turns_between_connections(world: World) -> None:
    order: list[str] = []
    unpacking = Unpacking(world.lanes, world.clock.monotonic)  # type: ignore[arg-type]

    def attempt(name: str, work: Work) -> None:
        if work.bytes_left < 32 * MIB:
            raise TooMuchWork
        order.append(name)

    world.lanes.held = True
    for owner, name in ((1, "a"), (1, "b"), (1, "c"), (2, "other")):
        unpacking.on_lane(
            RequestBudget(owner), lambda work, name=name: attempt(name, work), lambda future: None
        )
    while world.lanes.waiting:
        world.lanes.release()
        await asyncio.sleep(0)
    assert order.index("other") < 3
    assert order[0] == "a"


async def test_a_connection_has_so_many_batches_on_the_lanes_and_others_go_before_the_rest(
    world: World,
) -> None:
    order: list[str] = []
    unpacking = Unpacking(world.lanes, world.clock.monotonic)  # type: ignore[arg-type]

    def attempt(name: str, work: Work) -> None:
        order.append(name)

    world.lanes.held = True
    names = [f"first {i}" for i in range(40)]
    for owner, name in (*((1, name) for name in names), (2, "other")):
        unpacking.on_lane(
            RequestBudget(owner), lambda work, name=name: attempt(name, work), lambda future: None
        )
    assert len(world.lanes.waiting) == OF_A_CONNECTION + 1
    while world.lanes.waiting:
        world.lanes.release()
        await asyncio.sleep(0)
    assert order == [*names[:OF_A_CONNECTION], "other", *names[OF_A_CONNECTION:]]


async def test_what_is_unpacked_on_the_lanes_is_in_the_account(world: World) -> None:
    unpacking = Unpacking(world.lanes, world.clock.monotonic)  # type: ignore[arg-type]
    seen = []

    def attempt(work: Work) -> None:
        work.bytes_left -= 5 * MIB
        seen.append(unpacking.under_way_bytes)

    unpacking.on_lane(RequestBudget(1), attempt, lambda future: None)
    await asyncio.sleep(0)
    assert seen == [5 * MIB]
    assert unpacking.under_way_bytes == 0


async def test_too_many_headers_are_refused_and_named(world: World) -> None:
    await world.make_topic("t", **WHENEVER)
    answer = await world.call(produce("t", {0: many_headers(Codec.ZSTD, 1_000_000)}), 8)
    assert codes(answer) == [ErrorCode.INVALID_RECORD]
