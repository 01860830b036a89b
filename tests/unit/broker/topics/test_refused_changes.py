"""A change of topics that the disk refused: records acknowledged after it are not lost."""

from collections.abc import AsyncIterator
from typing import Any

from protocol.apis.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.apis.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from protocol.apis.delete_topics import DeleteTopicsRequest
from protocol.errors import ErrorCode
from storage.directory.topics_file import FILE_NAME
from tests.support.records.logs import records_of
from tests.support.worlds.handler_world import World

MINUTE = 60_000
OTHER = 7
CALLS = 60


def wanted(name: str) -> CreateTopicsRequest:
    setting = CreatableTopicConfig(name="retention.ms", value=str(MINUTE))
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=[setting])
    return CreateTopicsRequest(topics=[topic])


def altered(name: str, retention_ms: int) -> AlterConfigsRequest:
    configs = [AlterableConfig(name="retention.ms", value=str(retention_ms))]
    resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=configs)
    return AlterConfigsRequest(resources=[resource])


def retention(world: World) -> dict[str, int]:
    return {
        name: topic.partitions[0].log.config.retention_ms
        for name, topic in world.broker.topics.image.topics.items()
    }


async def refused_at_each_call(request: Any, version: int, fails: int = 1) -> AsyncIterator[World]:
    """Worlds in which `fails` calls of a request failed, one after the other, from each call on."""
    for step in range(CALLS):
        world = World()
        await world.call(wanted("a"), 7)
        failing = {world.fs.calls + step + 1 + number for number in range(fails)}
        world.fs.fail_at_each = failing
        before = world.fs.calls
        answer = await world.call(request, version)
        world.fs.fail_at_each = set()
        if world.fs.calls < before + step + 1:
            return
        (told,) = answer.topics if hasattr(answer, "topics") else answer.responses
        if told.error_code:
            yield world


async def test_a_refused_deletion_takes_no_record_that_is_acknowledged_after_it() -> None:
    seen = 0
    for fails in (1, 2, 8):
        async for world in refused_at_each_call(DeleteTopicsRequest(topic_names=["a"]), 4, fails):
            stored = await world.produce(b"kept", topic="a", acks=1)
            if stored.error_code:
                assert stored.error_code == ErrorCode.KAFKA_STORAGE_ERROR
                continue
            again = world.restarted()
            assert [each.value for each in records_of(again.partition("a").log)] == [b"kept"]
            seen += 1
    assert seen > 5


async def test_a_refused_topic_appears_with_its_settings_or_not_at_all() -> None:
    async for world in refused_at_each_call(wanted("b"), 7):
        await world.call(altered("a", OTHER), 2)
        for seed in range(4):
            found = retention(World(world.fs.after_crash(seed)))
            assert found in ({"a": OTHER}, {"a": OTHER, "b": MINUTE})


async def test_a_refused_topic_can_be_made_with_other_settings() -> None:
    for fails in (1, 8):
        async for world in refused_at_each_call(wanted("b"), 7, fails):
            await world.make_topic("b")
            default = retention(world)["b"]
            assert default != MINUTE
            assert retention(world.restarted()) == {"a": MINUTE, "b": default}


async def test_a_refused_setting_does_not_count_after_a_restart() -> None:
    async for world in refused_at_each_call(altered("a", OTHER), 2):
        assert retention(world) == {"a": MINUTE}
        assert retention(world.restarted()) == {"a": MINUTE}


async def test_a_refused_growth_is_taken_back() -> None:
    grown = CreatePartitionsTopic(name="a", count=4, assignments=None)
    world = World()
    await world.call(wanted("a"), 7)
    before = world.fs.read_bytes(world.broker.topics._path(FILE_NAME))
    world.fs.inject("sync directory", times=1)
    answer = await world.call(CreatePartitionsRequest(topics=[grown]), 3)
    assert answer.results[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.fs.read_bytes(world.broker.topics._path(FILE_NAME)) == before
