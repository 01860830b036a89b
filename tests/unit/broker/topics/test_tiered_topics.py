"""Topics with a tier, over their deletion and over starts of the broker."""

import pytest

from config.errors import ConfigError
from protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World

TIER = {"remote_log_storage_system_enable": "true", "horolog_tier_url": "s3://logs/a"}


def tiered_of(world: World) -> bool:
    return world.partition().log.config.remote_storage_enable


async def test_a_tier_is_there_again_after_a_start() -> None:
    world = World(**TIER)
    await world.make_topic(remote_storage_enable="true")
    assert tiered_of(World(world.fs.after_kill(), **TIER))


async def test_a_start_without_the_tier_names_the_topic_and_the_key() -> None:
    world = World(**TIER)
    await world.make_topic(remote_storage_enable="true")
    with pytest.raises(ConfigError, match="topic t has it") as refused:
        World(world.fs.after_kill())
    assert refused.value.key == "remote.log.storage.system.enable"
    assert "config unset" not in str(refused.value), "that would leave data behind in the store"


async def test_a_topic_of_a_deleted_ones_name_has_no_tier() -> None:
    world = World(**TIER)
    await world.make_topic(remote_storage_enable="true")
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1000)
    (deleted,) = (await world.call(request, 6)).responses
    assert deleted.error_code == ErrorCode.NONE
    await world.make_topic()
    assert not tiered_of(world)
