"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs: for topics and for this broker."""

from typing import Any

import pytest

from protocol.apis import alter_configs, incremental_alter_configs
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import NODE_ID, World, altered

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
FROM_TOPIC, FROM_DYNAMIC_BROKER, FROM_DEFAULT = 1, 2, 5


async def describe(
    world: World, kind: int = TOPIC, name: str = "t", *keys: str, version: int = 4, **how: Any
) -> Any:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], **how)
    return (await world.call(request, version)).results[0]


async def value_of(world: World, key: str, kind: int = TOPIC, name: str = "t") -> tuple[str, int]:
    (entry,) = (await describe(world, kind, name, key)).configs
    return entry.value, entry.config_source


async def alter(
    world: World,
    *changes: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "t",
    version: int = 1,
    **how: Any,
) -> Any:
    """One resource, changed step by step (IncrementalAlterConfigs)."""
    resource = altered(kind, name, changes)
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource], **how)
    return (await world.call(request, version)).responses[0]


async def replace(
    world: World,
    configs: dict[str, str | None],
    kind: int = TOPIC,
    name: str = "t",
    version: int = 2,
    **how: Any,
) -> Any:
    """One resource, all its settings replaced (AlterConfigs)."""
    resource = alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            alter_configs.AlterableConfig(name=key, value=value) for key, value in configs.items()
        ],
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource], **how)
    return (await world.call(request, version)).responses[0]


@pytest.mark.parametrize("version", range(1, 5))
async def test_settings_of_a_topic_with_their_sources(world: World, version: int) -> None:
    await world.make_topic(retention_ms="60000")
    result = await describe(
        world, version=version, include_synonyms=True, include_documentation=True
    )
    assert (result.error_code, result.resource_type, result.resource_name) == (0, TOPIC, "t")
    entries = {each.name: each for each in result.configs}
    own, inherited = entries["retention.ms"], entries["segment.bytes"]
    assert (own.value, own.config_source) == ("60000", FROM_TOPIC)
    assert (inherited.value, inherited.config_source) == ("1073741824", FROM_DEFAULT)
    assert [each.name for each in own.synonyms] == ["retention.ms"]
    assert [each.name for each in inherited.synonyms] == ["log.segment.bytes"]
    if version >= 3:
        assert own.config_type == 5
        assert own.documentation


async def test_synonyms_and_texts_only_on_demand(world: World) -> None:
    await world.make_topic()
    result = await describe(world)
    assert all(not each.synonyms and each.documentation is None for each in result.configs)


async def test_only_the_keys_asked_for(world: World) -> None:
    await world.make_topic()
    result = await describe(world, TOPIC, "t", "retention.ms", "no.such.key")
    assert [each.name for each in result.configs] == ["retention.ms"]


async def test_settings_of_the_broker(world: World) -> None:
    result = await describe(world, BROKER, str(NODE_ID))
    names = {each.name for each in result.configs}
    assert {"node.id", "log.retention.ms", "delete.topic.enable"} <= names
    assert (await describe(world, BROKER, "")).configs == []


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "a/b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "7", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "7", ErrorCode.INVALID_REQUEST),
        (99, "t", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_resources_that_are_not_here(world: World, kind: int, name: str, code: int) -> None:
    await world.make_topic()
    assert (await describe(world, kind, name)).error_code == code
    assert (await alter(world, ("retention.ms", SET, "1"), kind=kind, name=name)).error_code == code
    assert (await replace(world, {"retention.ms": "1"}, kind, name)).error_code == code


@pytest.mark.parametrize("version", [0, 1])
async def test_a_step_changes_one_key_and_the_live_log(world: World, version: int) -> None:
    await world.make_topic(retention_ms="60000")
    await alter(world, ("retention.bytes", SET, "5"), version=version)
    assert await value_of(world, "retention.bytes") == ("5", FROM_TOPIC)
    assert await value_of(world, "retention.ms") == ("60000", FROM_TOPIC)
    assert world.partition().log.config.retention_bytes == 5
    await alter(world, ("retention.bytes", DELETE, None))
    assert await value_of(world, "retention.bytes") == ("-1", FROM_DEFAULT)
    assert world.partition().log.config.retention_bytes == -1


async def test_lists_grow_and_shrink(world: World) -> None:
    await world.make_topic()
    await alter(world, ("cleanup.policy", APPEND, "compact"))
    assert world.partition().log.config.cleanup_policy == {"compact", "delete"}
    await alter(world, ("cleanup.policy", SUBTRACT, "delete"))
    assert world.partition().log.config.cleanup_policy == {"compact"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("no.such.key", SET, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_refused_step_changes_nothing(
    world: World, change: tuple[str, int, str | None], code: int
) -> None:
    await world.make_topic(retention_ms="60000")
    answer = await alter(world, ("retention.bytes", SET, "5"), change)
    assert answer.error_code == code
    assert answer.error_message
    assert (await value_of(world, "retention.bytes"))[1] == FROM_DEFAULT
    assert await value_of(world, "retention.ms") == ("60000", FROM_TOPIC)


async def test_replacing_forgets_what_is_not_named(world: World) -> None:
    await world.make_topic(retention_ms="60000", retention_bytes="7")
    assert (await replace(world, {"retention.bytes": "8"}, version=0)).error_code == 0
    assert await value_of(world, "retention.bytes") == ("8", FROM_TOPIC)
    assert (await value_of(world, "retention.ms"))[1] == FROM_DEFAULT


async def test_settings_of_the_broker_reach_topics_without_their_own(world: World) -> None:
    await world.make_topic("plain")
    await world.make_topic("own", retention_ms="7")
    change = ("log.retention.ms", SET, "60000")
    assert (await alter(world, change, kind=BROKER, name=str(NODE_ID))).error_code == 0
    assert world.partition("plain").log.config.retention_ms == 60000
    assert world.partition("own").log.config.retention_ms == 7
    assert await value_of(world, "log.retention.ms", BROKER, str(NODE_ID)) == (
        "60000",
        FROM_DYNAMIC_BROKER,
    )


async def test_what_is_read_at_start_cannot_change(world: World) -> None:
    change = ("node.id", SET, "4")
    assert (await alter(world, change, kind=BROKER, name="1")).error_code != 0


async def test_validation_alone_changes_nothing(world: World) -> None:
    await world.make_topic()
    assert (await alter(world, ("retention.ms", SET, "1"), validate_only=True)).error_code == 0
    assert (await replace(world, {"retention.ms": "1"}, validate_only=True)).error_code == 0
    assert (await value_of(world, "retention.ms"))[1] == FROM_DEFAULT


async def test_a_resource_named_twice_is_left_alone(world: World) -> None:
    await world.make_topic()
    resources = [
        alter_configs.AlterConfigsResource(
            resource_type=TOPIC,
            resource_name="t",
            configs=[alter_configs.AlterableConfig(name="retention.ms", value=value)],
        )
        for value in ("1", "2")
    ]
    response = await world.call(alter_configs.AlterConfigsRequest(resources=resources), 2)
    assert {each.error_code for each in response.responses} == {ErrorCode.INVALID_REQUEST}


async def test_changes_outlive_the_process(world: World) -> None:
    await world.make_topic()
    await alter(world, ("retention.ms", SET, "60000"))
    await alter(world, ("log.retention.bytes", SET, "9"), kind=BROKER, name="")
    again = world.restarted()
    assert again.partition().log.config.retention_ms == 60000
    assert again.partition().log.config.retention_bytes == 9


async def test_a_change_that_cannot_be_stored_does_not_count(world: World) -> None:
    await world.make_topic()
    world.fs.inject("write", path="horolog-config", error="enospc")
    answer = await alter(world, ("retention.ms", SET, "60000"))
    assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (await value_of(world, "retention.ms"))[1] == FROM_DEFAULT
    assert (await alter(world, ("retention.ms", SET, "60000"))).error_code == 0
