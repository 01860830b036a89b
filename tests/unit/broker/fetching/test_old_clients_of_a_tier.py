"""Fetch 0 to 3 of partitions that go on in a store."""

from typing import Any

import pytest

from protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from protocol.errors import ErrorCode
from protocol.records.markers import COMMIT, Marker, build_marker
from protocol.records.old_formats.legacy import read_messages
from storage.files.layout import LOG
from storage.validation.internal_batch import own_batch
from tests.support.records.logs import make_durable
from tests.support.worlds.tiered_world import TieredWorld

VERSIONS = range(4)


@pytest.fixture
async def world() -> TieredWorld:
    """A topic whose first segment ends with a marker, and is in the store with the second one."""
    world = TieredWorld()
    await world.make_topic()
    await world.produce(b"a")
    commit(world)
    world.roll()
    await world.produce(b"b")
    world.roll()
    world.send_away()
    await world.produce(b"c")
    return world


def commit(world: TieredWorld) -> None:
    """A marker of a transaction without records."""
    now_ms = world.clock.now_ms()
    marker = own_batch(build_marker(Marker(COMMIT, 0), 1, 0, now_ms), now_ms)
    world.partition().log.append_own(marker, acks_all=False, leader_epoch=0)


async def fetch(world: TieredWorld, offset: int, version: int) -> Any:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic="t", partitions=[part])])
    return (await world.call(request, version)).responses[0].partitions[0]


def offsets_of(answer: Any) -> list[int]:
    records = answer.records
    return [message.offset for message in read_messages(records)] if records else []


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_gets_past_a_marker_that_ends_a_segment(
    world: TieredWorld, version: int
) -> None:
    assert offsets_of(await fetch(world, 0, version)) == [0]
    answer = await fetch(world, 1, version)
    assert (answer.error_code, offsets_of(answer)) == (ErrorCode.NONE, [2])


@pytest.mark.parametrize("version", VERSIONS)
async def test_behind_a_marker_a_slow_store_is_waited_for_as_everywhere(
    world: TieredWorld, version: int
) -> None:
    assert offsets_of(await fetch(world, 0, version)) == [0]
    world.away.held = True
    assert offsets_of(await fetch(world, 1, version)) == []
    while world.away.waiting:
        world.away.release()
    assert offsets_of(await fetch(world, 1, version)) == [2]


@pytest.mark.parametrize("version", VERSIONS)
async def test_what_the_store_has_lost_behind_a_marker_is_an_error(
    world: TieredWorld, version: int
) -> None:
    assert offsets_of(await fetch(world, 0, version)) == [0]
    gone = world.lose_objects()
    answer = await fetch(world, 1, version)
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    assert not answer.records
    world.store.objects.update(gone)
    assert offsets_of(await fetch(world, 1, version)) == [2]


async def test_damage_behind_a_marker_is_an_error_of_its_partition_alone() -> None:
    world = TieredWorld()
    for name in "tu":
        await world.make_topic(name)
    await world.produce(b"fine", topic="u")
    commit(world)
    world.roll()
    await world.produce(b"b")
    world.roll()
    path = world.partition().log.snapshot.segments[1].path_of(LOG)
    make_durable(world.partition().log)
    world.broker.logs.checkpoint()
    again = TieredWorld(fs=world.fs.after_kill())
    again.fs.open(path).write_at(65, b"?")
    assert (await fetch(again, 1, 4)).error_code == ErrorCode.CORRUPT_MESSAGE
    parts = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    topics = [FetchTopic(topic=name, partitions=parts) for name in "tu"]
    answer = await again.call(FetchRequest(max_wait_ms=0, topics=topics), 2)
    found = [topic.partitions[0] for topic in answer.responses]
    assert [each.error_code for each in found] == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.NONE]
    assert offsets_of(found[1]) == [0]
