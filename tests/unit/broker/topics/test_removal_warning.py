"""A change that would delete data at the next pass says so when it is only validated."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from broker.topics.removal_warning import Loss, warning_text
from broker.topics.retention_preview import Leaving
from protocol.apis import alter_configs, incremental_alter_configs
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import NODE_ID, World, altered

HOUR = 3_600_000
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1


async def world_with_history(partitions: int = 1, **configs: str) -> World:
    """Segments of one batch each: three hours, two hours and one hour old, and one of now."""
    world = World()
    await world.make_topic(partitions=partitions, internal_segment_bytes="150", **configs)
    for _ in range(4):
        for index in range(partitions):
            answer = await world.produce(b"v" * 40, at=world.clock.now_ms(), partition=index)
            assert answer.error_code == 0
        world.clock.advance(HOUR)
    world.clock.advance(-HOUR)
    return world


async def validate(
    world: World, *changes: tuple[str, int, str | None], kind: int = TOPIC, name: str = "t"
) -> str:
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[altered(kind, name, changes)], validate_only=True
    )
    (answer,) = (await world.call(request, 1)).responses
    assert answer.error_code == 0
    return str(answer.error_message)


async def replace(world: World, validate_only: bool, **configs: str) -> Any:
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name="t",
        configs=[
            alter_configs.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    return (await world.call(request, 2)).responses[0]


async def test_by_age() -> None:
    world = await world_with_history()

    text = await validate(world, ("retention.ms", SET, str(HOUR + HOUR // 2)))

    assert text == (
        "would remove 2 segments, 216 B, at the next pass: offsets 0-1 of t-0, "
        "records until 2023-11-14T23:13:20.000Z"
    )


async def test_saying_it_changes_nothing() -> None:
    world = await world_with_history()
    before = world.partition().log.snapshot

    assert await validate(world, ("retention.ms", SET, "1"))

    assert world.partition().log.snapshot is before
    assert world.broker.config.topic_overrides("t") == {"internal.segment.bytes": "150"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retention.bytes", "324"),
        ("horolog.retention.before.timestamp", "1700000000001"),
    ],
)
async def test_by_everything_that_removes(key: str, value: str) -> None:
    world = await world_with_history()
    assert "would remove 1 segment, 108 B" in await validate(world, (key, SET, value))


async def test_without_a_word_when_nothing_more_goes() -> None:
    world = await world_with_history(retention_ms=str(HOUR + HOUR // 2))

    assert await validate(world, ("retention.ms", SET, str(2 * HOUR - 1))) == ""
    assert await validate(world, ("retention.ms", SET, "-1")) == ""
    assert await validate(world, ("segment.ms", SET, "1")) == ""


async def test_the_end_of_an_override_is_a_change_too() -> None:
    world = await world_with_history(retention_ms="-1")
    world.clock.advance(8 * 24 * HOUR)

    assert "would remove 4 segments" in await validate(world, ("retention.ms", DELETE, None))


async def test_a_change_of_the_brokers_default_tells_of_all_topics_that_have_it() -> None:
    world = await world_with_history(partitions=5)
    await world.make_topic("own", retention_ms="-1")

    text = await validate(world, ("log.retention.ms", SET, "1"), kind=BROKER, name=str(NODE_ID))

    assert text.startswith("would remove 15 segments, ")
    assert text.endswith("; and of 2 more partitions")


async def test_replacing_all_settings_tells_it_as_well() -> None:
    world = await world_with_history()

    answer = await replace(world, True, retention_ms="1")
    assert answer.error_code == 0
    assert answer.error_message.startswith("would remove 3 segments, 324 B")
    assert (await replace(world, True)).error_message == ""


async def test_a_change_that_counts_is_answered_as_ever() -> None:
    world = await world_with_history()

    answer = await replace(world, False, retention_ms="1")

    assert (answer.error_code, answer.error_message) == (0, "")


def test_times_that_no_calendar_shows_are_left_out() -> None:
    partition: Any = SimpleNamespace(__repr__=lambda: "t-0")
    leaving = Leaving(1, 10, 0, 5, 2**63 - 1, 2**63 - 1, {})
    assert "records until" not in warning_text([Loss(partition, leaving)])


async def alter_broker(world: World, *changes: tuple[str, int, str | None]) -> tuple[int, str]:
    (outcome,) = await alter_brokers(world, {"": changes})
    return outcome


async def alter_brokers(
    world: World, changes: Mapping[str, Iterable[tuple[str, int, str | None]]]
) -> list[tuple[int, str]]:
    resources = [altered(BROKER, broker, settings) for broker, settings in changes.items()]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources=resources)
    answers = (await world.call(request, 1)).responses
    return [(each.error_code, each.error_message or "") for each in answers]


SHORTER = ("log.retention.ms", SET, "1")
COMPACTED = ("log.cleanup.policy", SET, "compact")
CONFIRMED = ("horolog.confirm", SET, "true")


@pytest.mark.parametrize(
    ("change", "told"),
    [(SHORTER, "would remove 3 segments, "), (COMPACTED, "would begin to compact t-0.")],
)
async def test_a_change_for_all_topics_that_takes_data_wants_a_word(
    change: tuple[str, int, str], told: str
) -> None:
    world = await world_with_history()
    before = world.broker.config.topic_config("t")

    code, message = await alter_broker(world, change)

    assert code == ErrorCode.POLICY_VIOLATION
    assert told in message
    assert message.endswith("add horolog.confirm=true to the same request")
    assert world.broker.config.topic_config("t") == before
    assert await alter_broker(world, change, CONFIRMED) == (0, "")
    assert world.broker.config.topic_config("t") != before
    assert "horolog.confirm" not in world.broker.config.serialise()


async def test_a_change_that_takes_nothing_wants_no_word() -> None:
    world = await world_with_history(retention_ms="-1", cleanup_policy="delete")
    assert await alter_broker(world, SHORTER) == (0, "")
    assert await alter_broker(world, COMPACTED) == (0, "")
    assert await alter_broker(world, ("log.retention.ms", DELETE, None)) == (0, "")


async def test_changes_that_take_data_only_together_want_a_word() -> None:
    world = await world_with_history()
    own = str(NODE_ID)
    long = ("log.retention.ms", SET, "-1")
    assert await alter_brokers(world, {own: [long]}) == [(0, "")]

    hidden, shown = await alter_brokers(
        world, {"": [SHORTER], own: [("log.retention.ms", DELETE, None)]}
    )

    assert hidden == (0, "")
    assert shown[0] == ErrorCode.POLICY_VIOLATION
    assert world.broker.config.topic_config("t").retention_ms == -1


async def test_the_word_is_true_and_belongs_to_brokers() -> None:
    world = await world_with_history()
    code, message = await alter_broker(world, SHORTER, ("horolog.confirm", SET, "yes"))
    assert (code, message) == (
        ErrorCode.INVALID_CONFIG, "horolog.confirm must be true"
    )  # fmt: skip
    answer = await replace(world, False, retention_ms="1", horolog_confirm="true")
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert "horolog.confirm" in answer.error_message


async def test_what_is_only_validated_wants_no_word() -> None:
    world = await world_with_history()
    text = await validate(world, SHORTER, kind=BROKER, name=str(NODE_ID))
    assert text.startswith("would remove 3 segments, ")
