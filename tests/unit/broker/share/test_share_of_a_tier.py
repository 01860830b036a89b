"""Fetches of share groups whose records only a store has."""

import random

import pytest

from protocol.errors import ErrorCode
from tests.support.worlds.share_read_world import ShareReadWorld
from tests.support.worlds.tiered_world import TieredWorld

PARTITIONS = 2


class SharesOfATier(TieredWorld, ShareReadWorld):
    """A broker with share groups, and a tier."""


@pytest.fixture
async def world() -> SharesOfATier:
    """Two partitions, each with a record that is in the store alone."""
    world = SharesOfATier()
    await world.make_topic(partitions=PARTITIONS)
    for index in range(PARTITIONS):
        await world.initialized(partition=index)
        await world.produce(b"a", partition=index)
        world.roll(index=index)
        world.send_away(index=index)
    return world


async def test_partitions_that_have_no_room_here_together_are_served_in_turn(
    world: SharesOfATier,
) -> None:
    """In a small cache what comes for one makes that of the other go, before anybody is served."""
    world.reach.cache.limit_bytes = 1
    one = world.reader("m1", *(("t", index) for index in range(PARTITIONS)))
    got = list[int]()
    for _ in range(PARTITIONS):
        answer = await one.fetch(wait_ms=60_000)
        parts = [each for topic in answer.responses for each in topic.partitions]
        got += [each.partition_index for each in parts if each.acquired_records]
    assert sorted(got) == [0, 1]


async def test_records_that_the_store_has_lost_are_damage_until_it_has_them(
    world: SharesOfATier,
) -> None:
    gone = world.lose_objects()
    one = world.reader()
    answer = await one.fetch()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
    world.store.objects.update(gone)
    assert await one.got() == [(0, 0, 1)]


async def test_sound_records_before_a_damaged_block_are_given_out() -> None:
    world = SharesOfATier()
    await world.make_topic()
    await world.initialized()
    for value in (b"a", b"b", b"c"):
        await world.produce(random.Random(value).randbytes(400_000))
    world.roll()
    world.send_away()
    (key,) = (key for key in world.store.objects if key.endswith(".log"))
    whole = world.store.objects[key]
    world.store.objects[key] = whole[:-1] + bytes((whole[-1] ^ 1,))
    one = world.reader()
    assert [await one.got() for _ in range(2)] == [[(0, 0, 1)], [(1, 1, 1)]]
    answer = await one.fetch()
    assert answer.responses[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
