"""The bounds of record times by all their names, in every way in which a setting may come.

KIP-32 called both bounds `max.message.time.difference.ms`, Kafka 0.10 to 3.9
`message.timestamp.difference.max.ms`; either sets both, an explicit bound beside it wins, and a
topic's setting wins over the broker's whatever their names are (time.md 1).
"""

from pathlib import Path
from typing import Any

import pytest

from config.errors import ConfigError
from config.sources import load, variable_of_key
from config.store import ConfigStore
from protocol.apis import alter_configs, incremental_alter_configs
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.errors import ErrorCode
from protocol.records.builder import build_batch
from tests.support.worlds.handler_world import NODE_ID, World, produce_request

TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
BEFORE, AFTER = "message.timestamp.before.max.ms", "message.timestamp.after.max.ms"
ALIASES = ["max.message.time.difference.ms", "message.timestamp.difference.max.ms"]
FROM_TOPIC, FROM_BROKER, STATIC, DEFAULT = 1, 2, 4, 5
HOUR, FOREVER = 3_600_000, 2**63 - 1
with_aliases = pytest.mark.parametrize("alias", ALIASES)


async def admits(world: World, skew_ms: int) -> bool:
    """Whether a record so far off the broker's clock is taken."""
    answer = await world.produce(b"v", at=world.clock.now_ms() + skew_ms)
    assert answer.error_code in {0, ErrorCode.INVALID_TIMESTAMP}
    return answer.error_code == 0


async def bounds(world: World) -> tuple[int, int]:
    """What the topic's log really holds to: up to these it takes, one more it refuses."""
    config = world.partition().log.config
    before = config.message_timestamp_before_max_ms
    after = config.message_timestamp_after_max_ms
    for limit, sign in ((before, -1), (after, 1)):
        if limit != FOREVER:
            assert await admits(world, sign * limit)
            assert not await admits(world, sign * (limit + 1))
    return before, after


async def change(
    world: World, *changes: tuple[str, int, str | None], kind: int = TOPIC, name: str = "t"
) -> None:
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental_alter_configs.AlterableConfig(name=key, config_operation=op, value=value)
            for key, op, value in changes
        ],
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[resource])
    assert (await world.call(request, 1)).responses[0].error_code == 0


async def replace(world: World, configs: dict[str, str]) -> None:
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[alter_configs.AlterableConfig(name=k, value=v) for k, v in configs.items()],
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource])
    assert (await world.call(request, 2)).responses[0].error_code == 0


async def described(world: World, key: str) -> tuple[str, int, list[tuple[str, str, int]]]:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=[key]
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (entry,) = (await world.call(request, 4)).results[0].configs
    synonyms = [(each.name, each.value, each.source) for each in entry.synonyms]
    return entry.value, entry.config_source, synonyms


@with_aliases
@pytest.mark.parametrize("way", ["flag", "environment", "properties", "yaml"])
def test_on_the_broker_at_start(tmp_path: Path, alias: str, way: str) -> None:
    settings = {f"log.{alias}": "7", f"log.{AFTER}": "9"}
    sources: dict[str, Any] = {"environment": {}}
    if way == "flag":
        sources["flags"] = [f"{key}={value}" for key, value in settings.items()]
    elif way == "environment":
        sources["environment"] = {variable_of_key(key): text for key, text in settings.items()}
    else:
        sign = "=" if way == "properties" else ": "
        path = tmp_path / f"server.{way}"
        path.write_text("".join(f"{key}{sign}{value}\n" for key, value in settings.items()))
        sources["file"] = str(path)

    config = ConfigStore(load(**sources).layers).topic_defaults

    assert config.message_timestamp_before_max_ms == 7
    assert config.message_timestamp_after_max_ms == 9


@with_aliases
def test_the_name_of_a_topics_setting_on_the_broker_is_told(alias: str) -> None:
    with pytest.raises(ConfigError, match=f"default on the broker is log.{alias}"):
        load(flags=[f"{alias}=7"], environment={})


@with_aliases
async def test_with_the_topic(alias: str) -> None:
    world = World()
    await world.make_topic(**{alias.replace(".", "_"): "5000"})
    assert await bounds(world) == (5000, 5000)


@with_aliases
async def test_step_by_step_on_a_live_topic(alias: str) -> None:
    world = World()
    await world.make_topic()
    assert await bounds(world) == (FOREVER, HOUR)
    await change(world, (alias, SET, "5000"))
    assert await bounds(world) == (5000, 5000)
    await change(world, (BEFORE, SET, "70"))
    assert await bounds(world) == (70, 5000)
    await change(world, (AFTER, SET, "80"), (BEFORE, DELETE, None))
    assert await bounds(world) == (5000, 80)
    await change(world, (alias, DELETE, None))
    assert await bounds(world) == (FOREVER, 80)
    await change(world, (AFTER, DELETE, None))
    assert await bounds(world) == (FOREVER, HOUR)


@with_aliases
async def test_all_at_once_on_a_live_topic(alias: str) -> None:
    world = World()
    await world.make_topic()
    await replace(world, {alias: "5000"})
    assert await bounds(world) == (5000, 5000)
    await replace(world, {alias: "5000", AFTER: "60"})
    assert await bounds(world) == (5000, 60)
    await replace(world, {AFTER: "60"})
    assert await bounds(world) == (FOREVER, 60)
    await replace(world, {})
    assert await bounds(world) == (FOREVER, HOUR)


@with_aliases
async def test_on_the_broker_while_it_runs(alias: str) -> None:
    world = World()
    await world.make_topic()
    broker = {"kind": BROKER, "name": str(NODE_ID)}
    await change(world, (f"log.{alias}", SET, "5000"), **broker)
    assert await bounds(world) == (5000, 5000)
    await change(world, (f"log.{AFTER}", SET, "60"), **broker)
    assert await bounds(world) == (5000, 60)
    await change(world, (alias, SET, "300"))
    assert await bounds(world) == (300, 300)
    await change(world, (alias, DELETE, None))
    await change(world, (f"log.{alias}", DELETE, None), **broker)
    assert await bounds(world) == (FOREVER, 60)


@with_aliases
async def test_they_are_described_with_every_value_below(alias: str) -> None:
    world = World(**{f"log_{alias}".replace(".", "_"): "9"})
    await world.make_topic()
    await change(world, (alias, SET, "7"), (AFTER, SET, "5"))

    below = [(alias, "7", FROM_TOPIC), (f"log.{alias}", "9", STATIC)]
    assert await described(world, AFTER) == (
        "5",
        FROM_TOPIC,
        [(AFTER, "5", FROM_TOPIC), *below, (f"log.{AFTER}", str(HOUR), DEFAULT)],
    )
    assert await described(world, BEFORE) == (
        "7",
        FROM_TOPIC,
        [*below, (f"log.{BEFORE}", str(FOREVER), DEFAULT)],
    )
    value, source, synonyms = await described(world, alias)
    assert (value, source, synonyms[0]) == ("7", FROM_TOPIC, (alias, "7", FROM_TOPIC))


async def test_two_old_names_at_once_and_the_kips_own_wins() -> None:
    world = World()
    await world.make_topic()
    await change(world, (ALIASES[1], SET, "20"), (ALIASES[0], SET, "10"))
    assert await bounds(world) == (10, 10)


@with_aliases
async def test_what_was_set_is_in_force_after_a_restart(alias: str) -> None:
    world = World()
    await world.make_topic()
    await change(world, (alias, SET, "5000"))
    assert await bounds(world.restarted()) == (5000, 5000)


@pytest.mark.parametrize("version", [7, 8, 12])
async def test_a_refusal_lists_every_bad_record_since_produce_8(version: int) -> None:

    world = World()
    await world.make_topic()
    now = world.clock.now_ms()
    times = [now, now + 2 * HOUR, now - 5, now // 1000 + 2 * now]
    request = produce_request(build_batch([(time, None, b"v") for time in times]))

    answer = (await world.call(request, version)).responses[0].partition_responses[0]

    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (-1, -1, 0)
    listed = [each.batch_index for each in answer.record_errors]
    assert listed == ([1, 3] if version >= 8 else [])
    assert bool(answer.error_message) == (version >= 8)
