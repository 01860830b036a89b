"""The catalog: whatever crashes, a topic exists whole or not at all, and an answer is kept."""

from typing import Any

import pytest

from protocol.apis.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.apis.delete_topics import DeleteTopicsRequest
from storage.directory.topics_file import FILE_NAME
from storage.errors import StorageError
from tests.support.disk.simdisk import SimulatedCrash
from tests.support.worlds.handler_world import LOG_DIR, World


def wanted(*names: str) -> CreateTopicsRequest:
    topics = [
        CreatableTopic(
            name=name,
            num_partitions=2,
            replication_factor=1,
            configs=[CreatableTopicConfig(name="retention.ms", value="60000")],
        )
        for name in names
    ]
    return CreateTopicsRequest(topics=topics)


def shape(world: World) -> dict[str, tuple[int, int]]:
    """Partitions and retention of every topic."""
    return {
        name: (len(topic.partitions), topic.partitions[0].log.config.retention_ms)
        for name, topic in world.broker.topics.image.topics.items()
    }


async def crash_during(request: Any, version: int, prepare: bool) -> list[tuple[World, bool]]:
    """Worlds after a power cut at every call of a request, and whether it had been answered."""
    outcomes = []
    for step in range(1000):
        world = World()
        if prepare:
            await world.call(wanted("a", "b"), 7)
        world.fs.crash_at = world.fs.calls + step + 1
        try:
            await world.call(request, version)
            answered = True
        except SimulatedCrash:
            answered = False
        for seed in range(2):
            outcomes.append((World(world.fs.after_crash(seed)), answered))
        if answered:
            return outcomes
    raise AssertionError("the request never ended")


async def test_a_topic_is_made_whole_or_not_at_all() -> None:
    outcomes = await crash_during(wanted("a", "b"), 7, prepare=False)
    assert len(outcomes) > 10
    for world, answered in outcomes:
        assert shape(world) in ([{"a": (2, 60000), "b": (2, 60000)}] + ([{}] * (not answered)))
        assert shape(world.restarted()) == shape(world)


async def test_a_topic_goes_whole_or_not_at_all() -> None:
    outcomes = await crash_during(DeleteTopicsRequest(topic_names=["a"]), 4, prepare=True)
    for world, answered in outcomes:
        left = {"b": (2, 60000)}
        kept = {"a": (2, 60000), **left}
        assert shape(world) == left or (not answered and shape(world) == kept)
        assert shape(world.restarted()) == shape(world)


async def test_a_topic_grows_whole_or_not_at_all() -> None:
    grown = CreatePartitionsTopic(name="a", count=4, assignments=None)
    outcomes = await crash_during(CreatePartitionsRequest(topics=[grown]), 3, prepare=True)
    for world, answered in outcomes:
        counts = {name: count for name, (count, _) in shape(world).items()}
        assert counts == {"a": 4, "b": 2} or (not answered and counts == {"a": 2, "b": 2})
        assert shape(world.restarted()) == shape(world)


async def test_settings_change_whole_or_not_at_all() -> None:
    configs = [AlterableConfig(name="retention.ms", value="7")]
    resource = AlterConfigsResource(resource_type=2, resource_name="a", configs=configs)
    request = AlterConfigsRequest(resources=[resource])
    for world, answered in await crash_during(request, 2, prepare=True):
        after = shape(world)
        assert after["b"] == (2, 60000)
        assert after["a"] == (2, 7) or (not answered and after["a"] == (2, 60000))


async def test_a_directory_without_our_file_is_adopted(world: World) -> None:
    made = await world.make_topic("orders", partitions=2)
    await world.produce(b"kept", topic="orders", partition=1)
    world.fs.remove(f"{LOG_DIR}/{FILE_NAME}")
    world.fs.make_dir(f"{LOG_DIR}/__cluster_metadata-0")
    again = world.restarted()
    assert list(again.broker.topics.image.topics) == ["orders"]
    assert again.broker.topics.image.topics["orders"].topic_id == made.topic_id
    assert again.partition("orders", 1).log.snapshot.log_end_offset == 1
    assert again.fs.exists(f"{LOG_DIR}/__cluster_metadata-0")
    assert again.fs.exists(f"{LOG_DIR}/{FILE_NAME}")


async def test_a_lost_partition_directory_comes_back_empty(world: World) -> None:
    await world.make_topic(partitions=2)
    world.fs.remove_tree(f"{LOG_DIR}/t-1")
    again = world.restarted()
    assert again.partition("t", 1).log.snapshot.log_end_offset == 0


async def test_a_damaged_file_stops_the_start(world: World) -> None:
    await world.make_topic()
    world.fs.write_atomically(f"{LOG_DIR}/{FILE_NAME}", b"{")
    with pytest.raises(StorageError, match="cannot be read"):
        world.restarted()


async def test_settings_of_topics_that_do_not_exist_are_dropped(world: World) -> None:
    await world.make_topic(retention_ms="5")
    world.fs.write_atomically(
        f"{LOG_DIR}/{FILE_NAME}", b'{"format": 1, "topics": {}, "deleted": []}'
    )
    world.fs.remove_tree(f"{LOG_DIR}/t-0")
    again = world.restarted()
    assert list(again.broker.config.topics_with_overrides()) == []
    await again.make_topic()
    assert again.partition().log.config.retention_ms != 5


async def test_an_image_that_was_taken_does_not_change(world: World) -> None:
    await world.make_topic("a")
    before = world.broker.topics.image
    await world.make_topic("b")
    await world.call(DeleteTopicsRequest(topic_names=["a"]), 4)
    assert list(before.topics) == ["a"]
    assert before.partition_count == 1
    assert list(world.broker.topics.image.topics) == ["b"]
