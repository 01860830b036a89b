"""Which partitions fail, once their topics are gone."""

from dataclasses import replace

import pytest

from storage.tier.port import StoreError
from storage.tier.single_writer import WriterReplaced
from tests.unit.broker.tier.test_room import TOPIC, ShortWorld


@pytest.fixture
async def world() -> ShortWorld:
    world = ShortWorld()
    await world.make_topic("t", **TOPIC)
    world.store.log = world.log
    await world.write(12)
    return world


async def delete(world: ShortWorld) -> None:
    async with world.broker.topics.changing:
        await world.broker.topics.delete(["t"])


async def test_a_deleted_topic_fails_no_longer(world: ShortWorld) -> None:
    world.store.is_away = True
    await world.tiering.run()
    assert set(world.tier.tally.failing) == {("t", 0)}
    await delete(world)
    await world.tiering.run()
    assert not world.tier.tally.failing


async def test_a_topic_whose_tier_was_turned_off_fails_no_longer(world: ShortWorld) -> None:
    world.store.is_away = True
    await world.tiering.run()
    log = world.log
    log.reconfigure(replace(log.config, remote_storage_enable=False))
    await world.tiering.run()
    assert not world.tier.tally.failing


async def test_one_that_is_to_be_copied_fails_until_it_is(world: ShortWorld) -> None:
    world.store.is_away = True
    for _ in range(2):
        await world.tiering.run()
        assert set(world.tier.tally.failing) == {("t", 0)}
    world.store.is_away = False
    await world.tiering.run()
    assert not world.tier.tally.failing


async def test_a_topic_made_again_is_not_stopped_by_the_one_before(world: ShortWorld) -> None:
    tally, error = world.tier.tally, WriterReplaced("manifest", "another one writes")
    tally.failed(world.log, error, is_final=True)
    await world.tiering.run()
    assert tally.stopped_names() == {("t", 0)}
    assert tally.stopped_by == {"WriterReplaced": 1}
    await delete(world)
    await world.make_topic("t", **TOPIC)
    await world.tiering.run()
    assert not tally.stopped_names()
    assert not tally.stopped_by
    assert not tally.failing


async def test_an_error_of_the_store_stops_none(world: ShortWorld) -> None:
    world.tier.tally.failed(world.log, StoreError("key", "put", "away"), is_final=False)
    assert not world.tier.tally.stopped_names()
