"""Fetches of records that a slow store has."""

import asyncio
import random
from typing import Any

import pytest

from broker.partitions.partition import Partition
from broker.runtime.deferred import Deferred
from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.errors import ErrorCode
from protocol.records.batch import iter_headers
from protocol.records.builder import build_batch
from protocol.records.markers import ABORT, Marker, build_marker
from storage.tier.port import StoreError, StoreTimedOut
from storage.validation.internal_batch import own_batch
from tests.support.worlds.tiered_world import TieredWorld

VERSION = 12
NOW = 1_700_000_000_000


@pytest.fixture
async def world() -> TieredWorld:
    """A topic with two batches in one segment of the store, which is silent."""
    world = TieredWorld()
    await world.make_topic()
    await world.produce(b"a")
    await world.produce(b"b")
    world.roll()
    world.send_away()
    world.away.held = True
    return world


def request(offset: int, max_bytes: int = 1 << 20, max_wait_ms: int = 0) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic="t", partitions=[part])]
    return FetchRequest(max_wait_ms=max_wait_ms, session_epoch=-1, topics=topics)


async def fetch(world: TieredWorld, offset: int, **how: int) -> Any:
    answer = await world.call(request(offset, **how), VERSION)
    return answer.responses[0].partitions[0]


def offsets_of(part: Any) -> list[int]:
    return [header.base_offset for _, header in iter_headers(part.records)]


async def settled(world: TieredWorld, answer: Deferred[Any]) -> Any:
    read = world.read(request(0), VERSION, await world.settled(answer))
    return read.responses[0].partitions[0]


async def test_polls_of_one_range_take_one_thread(world: TieredWorld) -> None:
    for max_bytes in (1 << 20, 1 << 20, 1 << 19, 1 << 20):
        assert offsets_of(await fetch(world, 0, max_bytes=max_bytes)) == []
    assert len(world.away.waiting) == 1
    world.away.release()
    await asyncio.sleep(0)
    world.away.held = False
    assert offsets_of(await fetch(world, 0)) == [0, 1]


async def test_all_that_wait_for_a_range_get_what_was_brought(world: TieredWorld) -> None:
    answers = [world.begin(request(0), VERSION) for _ in range(3)]
    await asyncio.sleep(0)
    assert len(world.away.waiting) == 1
    world.away.release()
    assert [offsets_of(await settled(world, each)) for each in answers] == [[0, 1]] * 3


async def test_all_that_wait_for_a_range_hear_that_it_failed_and_the_next_one_asks_again(
    world: TieredWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(key: str, position: int, size: int) -> bytes:
        raise StoreTimedOut(key, "get_range", f"nothing of {size} bytes at {position} came")

    answers = [world.begin(request(0), VERSION) for _ in range(3)]
    with monkeypatch.context() as patched:
        patched.setattr(world.store, "get_range", refuse)
        await asyncio.sleep(0)
        world.away.release()
    codes = [(await settled(world, each)).error_code for each in answers]
    assert codes == [ErrorCode.KAFKA_STORAGE_ERROR] * 3
    world.away.held = False
    assert offsets_of(await fetch(world, 0)) == [0, 1]


@pytest.mark.parametrize("is_lost", [True, False], ids=["lost", "changed"])
async def test_bytes_that_the_store_has_lost_or_changed_are_damage_until_it_has_them(
    world: TieredWorld, is_lost: bool
) -> None:
    world.away.held = False
    whole = world.lose_objects()
    if not is_lost:
        world.store.objects.update({key: bytes(len(data)) for key, data in whole.items()})
    for _ in range(2):
        assert (await fetch(world, 0)).error_code == ErrorCode.CORRUPT_MESSAGE
    world.store.objects.update(whole)
    assert offsets_of(await fetch(world, 0)) == [0, 1]


async def test_sound_records_before_a_damaged_block_are_served_and_the_damage_is_where_it_is() -> (
    None
):
    world = TieredWorld()
    await world.make_topic()
    for value in (b"a", b"b", b"c"):
        await world.produce(random.Random(value).randbytes(400_000))
    world.roll()
    world.send_away()
    (key,) = (key for key in world.store.objects if key.endswith(".log"))
    whole = world.store.objects[key]
    world.store.objects[key] = whole[:-1] + bytes((whole[-1] ^ 1,))
    got = []
    for offset in range(2):
        part = await fetch(world, offset)
        assert part.error_code == ErrorCode.NONE
        got += offsets_of(part)
    assert got == [0, 1]
    assert (await fetch(world, 2)).error_code == ErrorCode.CORRUPT_MESSAGE
    world.store.objects[key] = whole
    assert offsets_of(await fetch(world, 2)) == [2]


async def test_other_ranges_have_threads_of_their_own(world: TieredWorld) -> None:
    answers = [world.begin(request(offset), VERSION) for offset in (0, 1)]
    await asyncio.sleep(0)
    assert len(world.away.waiting) == 2
    world.away.release()
    world.away.release()
    assert [offsets_of(await settled(world, each)) for each in answers] == [[0, 1], [1]]


async def test_partitions_that_have_no_room_here_together_are_served_in_turn() -> None:
    """In a small cache what comes for one makes that of the other go, before anybody is served."""
    world = TieredWorld()
    await world.make_topic(partitions=2)
    for index in range(2):
        await world.produce(b"a", partition=index)
        world.roll(index=index)
        world.send_away(index=index)
    world.reach.cache.limit_bytes = 1
    wanted, got = {0, 1}, list[int]()
    while wanted:
        parts = [
            FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=1 << 20)
            for each in sorted(wanted)
        ]
        topics = [FetchTopic(topic="t", partitions=parts)]
        asked = FetchRequest(max_wait_ms=60_000, session_epoch=-1, topics=topics)
        answer = await world.call(asked, VERSION)
        served = [each.partition_index for each in answer.responses[0].partitions if each.records]
        assert served, "the client waits for nothing"
        wanted -= set(served)
        got += served
    assert sorted(got) == [0, 1]


async def test_a_refused_check_is_not_kept(world: TieredWorld) -> None:
    run = world.away.run

    def refuse(work: Any) -> asyncio.Future[None]:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        answer.set_exception(StoreError("tier-reads", "read", "too many wait already"))
        return answer

    world.away.run = refuse
    assert (await fetch(world, 0)).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    world.away.run, world.away.held = run, False
    assert offsets_of(await fetch(world, 0)) == [0, 1]


async def test_segments_that_leave_while_they_are_read_are_brought_by_the_threads_of_the_tier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the read and the look at its list of aborted transactions, which left with it."""
    world = TieredWorld()
    await world.make_topic()
    log = world.partition().log
    begun = build_batch(
        [(NOW, None, b"a")], producer_id=7, producer_epoch=0, base_sequence=0, transactional=True
    )
    log.append(memoryview(begun), acks_all=False, leader_epoch=0)
    ended = own_batch(build_marker(Marker(ABORT, 0), 7, 0, NOW), NOW)
    log.append_own(ended, acks_all=False, leader_epoch=0)
    world.roll()
    world.away.held = True
    read = Partition.read

    def then_away(partition: Partition, *asked: Any, **how: Any) -> Any:
        found = read(partition, *asked, **how)
        if not log.snapshot.first_local:
            world.send_away()
        return found

    monkeypatch.setattr(Partition, "read", then_away)
    wanted = request(0)
    wanted.isolation_level = 1
    answer = world.begin(wanted, VERSION)
    await asyncio.sleep(0)
    assert len(world.away.waiting) == 1
    world.away.release()
    part = await settled(world, answer)
    assert offsets_of(part) == [0, 1]
    assert [each.first_offset for each in part.aborted_transactions] == [0]
