"""AlterClientQuotas and DescribeClientQuotas: codes, filters, and what a restart keeps."""

from typing import Any

import pytest

from broker.quotas.quota_file import FILE_NAME
from protocol.apis import alter_client_quotas as alter_api
from protocol.apis import describe_client_quotas as describe_api
from protocol.errors import ErrorCode
from tests.support.worlds.handler_world import World

Parts = list[tuple[str, str | None]]
RATE = "producer_byte_rate"
USER: Parts = [("user", "u")]
CLIENT: Parts = [("client-id", "c"), ("user", "u")]
DEFAULTS: Parts = [("client-id", None), ("user", None)]
EXACT, DEFAULT, ANY = range(3)


def entry(parts: Parts, **limits: float | None) -> alter_api.EntryData:
    return alter_api.EntryData(
        entity=[alter_api.EntityData(entity_type=kind, entity_name=name) for kind, name in parts],
        ops=[
            alter_api.OpData(key=key, value=value or 0.0, remove=value is None)
            for key, value in limits.items()
        ],
    )


async def alter(world: World, *entries: alter_api.EntryData, validate_only: bool = False) -> Any:
    """The code of each entity."""
    request = alter_api.AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return [each.error_code for each in (await world.call(request, 1)).entries]


async def describe(
    world: World, *components: tuple[str, int, str | None], strict: bool = False
) -> Any:
    """The limits by entity, or the error."""
    request = describe_api.DescribeClientQuotasRequest(
        components=[
            describe_api.ComponentData(entity_type=kind, match_type=how, match=name)
            for kind, how, name in components
        ],
        strict=strict,
    )
    response = await world.call(request, 1)
    if response.error_code:
        return response.error_code
    return {
        tuple((part.entity_type, part.entity_name) for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in response.entries
    }


def measures(world: World) -> bool:
    return world.broker.quotas.enforced is not None


async def filled(world: World) -> None:
    entries = [entry(USER, producer_byte_rate=5), entry(CLIENT, consumer_byte_rate=6)]
    assert await alter(world, *entries, entry(DEFAULTS, request_percentage=12.5)) == [0, 0, 0]


async def test_limits_are_set_removed_and_outlive_a_restart(world: World) -> None:
    await filled(world)
    assert await alter(world, entry(CLIENT, consumer_byte_rate=None)) == [0]
    expected = {tuple(USER): {RATE: 5}, tuple(DEFAULTS): {"request_percentage": 12.5}}
    assert await describe(world) == expected
    again = world.restarted()
    assert await describe(again) == expected
    assert measures(again)


async def test_nothing_is_measured_while_nobody_has_a_limit(world: World) -> None:
    seen = [measures(world)]
    for value in (5.0, None):
        await alter(world, entry(USER, producer_byte_rate=value))
        seen.append(measures(world))
    assert seen == [False, True, False]


async def test_a_check_changes_nothing(world: World) -> None:
    assert await alter(world, entry(USER, producer_byte_rate=5), validate_only=True) == [0]
    assert await describe(world) == {}


async def test_a_refused_entity_changes_nothing_and_the_others_count(world: World) -> None:
    codes = await alter(
        world, entry(USER, producer_byte_rate=5, nonsense=1), entry(CLIENT, producer_byte_rate=6)
    )
    assert codes == [ErrorCode.INVALID_REQUEST, 0]
    assert await describe(world) == {tuple(CLIENT): {RATE: 6}}


async def test_an_entity_named_twice_is_refused(world: World) -> None:
    twice = [entry(USER, producer_byte_rate=5), entry(USER, producer_byte_rate=6)]
    assert await alter(world, *twice) == [ErrorCode.INVALID_REQUEST]
    assert await describe(world) == {}


async def test_removing_what_is_not_there_is_done(world: World) -> None:
    assert await alter(world, entry(USER, nonsense=None)) == [0]


async def test_a_disk_that_refuses_leaves_the_old_limits(world: World) -> None:
    await filled(world)
    before = await describe(world)
    world.fs.inject("write", path=FILE_NAME)
    assert await alter(world, entry(USER, producer_byte_rate=9)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert await describe(world) == before


@pytest.mark.parametrize(
    ("components", "strict", "found"),
    [
        ([], False, [USER, CLIENT, DEFAULTS]),
        ([], True, []),
        ([("user", ANY, None)], False, [USER, CLIENT, DEFAULTS]),
        ([("user", ANY, None)], True, [USER]),
        ([("user", EXACT, "u")], False, [USER, CLIENT]),
        ([("user", EXACT, "u")], True, [USER]),
        ([("user", DEFAULT, None)], False, [DEFAULTS]),
        ([("user", EXACT, "u"), ("client-id", EXACT, "c")], True, [CLIENT]),
        ([("ip", ANY, None)], False, []),
    ],
)
async def test_a_filter_finds_what_kafka_finds(
    world: World, components: list[tuple[str, int, str | None]], strict: bool, found: list[Parts]
) -> None:
    await filled(world)
    described = await describe(world, *components, strict=strict)
    assert described.keys() == {tuple(parts) for parts in found}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "x")], ErrorCode.INVALID_REQUEST),
        ([("user", 5, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("group", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
async def test_a_filter_that_cannot_be_is_refused(
    world: World, components: list[tuple[str, int, str | None]], code: ErrorCode
) -> None:
    assert await describe(world, *components) == code
