"""Subscriptions and pushes by the rules of Kafka 4.3's `ClientMetricsManager`, at a still clock."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from broker.runtime.event_log import journal
from broker.telemetry.instances import MOST_INSTANCES
from protocol.apis import get_telemetry_subscriptions as get
from protocol.apis import push_telemetry as push
from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.errors import ErrorCode
from protocol.records.compression import Codec, deflate
from tests.support.records.pushes import gauge, point, push_of, total
from tests.support.worlds.handler_world import World, altered

ZERO, ONE = UUID(int=0), UUID(int=1)
CLIENT_METRICS = 16
INTERVAL = 1000
SOME = push_of(gauge("g", point(1.0)), total("c", point(2.0)))
SECOND = 1000


@pytest.fixture
async def world() -> World:
    made = World(horolog_client_telemetry_enable="true")
    await subscribe(made, "all", metrics="*", interval_ms=str(INTERVAL))
    return made


async def subscribe(world: World, name: str, **settings: str | None) -> None:
    """Settings with underscores for dots; None deletes one."""
    changes = [
        (key.replace("_", "."), 0 if value is not None else 1, value)
        for key, value in settings.items()
    ]
    request = IncrementalAlterConfigsRequest(resources=[altered(CLIENT_METRICS, name, changes)])
    response = await world.call(request, 1)
    assert response.responses[0].error_code == 0, response


async def asked(world: World, instance_id: UUID = ZERO) -> Any:
    return await world.call(get.GetTelemetrySubscriptionsRequest(client_instance_id=instance_id), 0)


async def pushed(world: World, subscription: Any, **fields: Any) -> int:
    """The code of a push for what `asked` answered."""
    named: dict[str, Any] = {
        "client_instance_id": subscription.client_instance_id,
        "subscription_id": subscription.subscription_id,
        "metrics": SOME,
        **fields,
    }
    response = await world.call(push.PushTelemetryRequest(**named), 0)
    return int(response.error_code)


def values(world: World) -> dict[str, list[float]]:
    """Of all series, by name."""
    return {
        name: list(family.values.values())
        for name, family in world.broker.client_telemetry.series.families()
    }


async def test_a_client_gets_an_id_and_its_subscription(world: World) -> None:
    answer = await asked(world)
    assert answer.error_code == 0
    assert answer.client_instance_id not in (ZERO, ONE)
    assert answer.requested_metrics == ["*"]
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.push_interval_ms == INTERVAL
    assert answer.telemetry_max_bytes == 1048576
    assert answer.delta_temporality is True
    assert (await asked(world)).client_instance_id != answer.client_instance_id


async def test_without_subscriptions_nothing_is_asked_for() -> None:
    answer = await asked(World())
    assert (answer.requested_metrics, answer.push_interval_ms) == ([], 300_000)


async def test_subscriptions_that_match_add_up_at_the_shortest_interval(world: World) -> None:
    await subscribe(world, "all", metrics=None, interval_ms=None)
    await subscribe(world, "one", metrics="b,a", interval_ms="7000", match="client_id=te.t")
    await subscribe(world, "two", metrics="c,a", interval_ms="5000")
    await subscribe(world, "no", metrics="d", interval_ms="100", match="client_id=es")
    answer = await asked(world)
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a", "b", "c"], 5000)
    await subscribe(world, "two", metrics="*", interval_ms="3600000")
    answer = await asked(world, answer.client_instance_id)
    assert (answer.requested_metrics, answer.push_interval_ms) == (["*"], 7000)
    await subscribe(world, "one", interval_ms="3600000")
    answer = await asked(world, answer.client_instance_id)
    assert answer.push_interval_ms == 300_000, "never longer than by default"


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        ("client_id=test,client_software_name=rdkafka", True),
        ("client_id=test,client_software_name=other", False),
        (r"client_software_version=2\.1.*", True),
        (r"client_source_address=10\.0\.0\.\d+", True),
        ("client_source_address=10.0.0", False),
        ("client_source_port=50000", True),
        ("client_source_port=5", False),
        ("client_instance_id=.{22}", True),
        ("client_instance_id=.{21}", False),
    ],
)
async def test_patterns_are_for_the_whole_of_each_fact(
    world: World, match: str, matches: bool
) -> None:
    request = ApiVersionsRequest(client_software_name="rdkafka", client_software_version="2.1.0")
    assert (await world.call(request, 3)).error_code == 0
    await subscribe(world, "all", metrics="m", match=match)
    assert ((await asked(world)).requested_metrics == ["m"]) is matches


async def test_a_client_that_names_no_software_has_an_unknown_one(world: World) -> None:
    await subscribe(world, "all", metrics="m", match="client_software_name=unknown")
    assert (await asked(world)).requested_metrics == ["m"]


async def test_a_pattern_that_cannot_be_matched_in_linear_time_matches_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(journal, "write", lines.append)
    await subscribe(world, "all", metrics="m", match=r"client_id=(t)est(?!x)")
    assert (await asked(world)).requested_metrics == []
    assert any("client_metrics_pattern_not_used" in line for line in lines)


async def test_a_client_asks_once_an_interval(world: World) -> None:
    first = await asked(world)
    world.clock.advance(INTERVAL - 1)
    early = await asked(world, first.client_instance_id)
    assert early.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert early.client_instance_id == ZERO
    world.clock.advance(1)
    assert (await asked(world, first.client_instance_id)).error_code == 0


async def test_a_client_pushes_at_once_and_then_once_an_interval(world: World) -> None:
    first = await asked(world)
    world.clock.advance(1)
    assert await pushed(world, first) == 0
    world.clock.advance(INTERVAL - 1)
    assert await pushed(world, first) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    world.clock.advance(1)
    assert await pushed(world, first) == 0
    assert values(world) == {"kafka_client_g": [1.0], "kafka_client_c_total": [4.0]}


async def test_a_client_that_ends_pushes_early_and_no_more(world: World) -> None:
    first = await asked(world)
    assert await pushed(world, first) == 0
    assert await pushed(world, first, terminating=True) == 0
    assert values(world)["kafka_client_c_total"] == [4.0]
    assert await pushed(world, first, terminating=True) == ErrorCode.INVALID_REQUEST
    world.clock.advance(INTERVAL)
    assert await pushed(world, first) == ErrorCode.INVALID_REQUEST
    assert await pushed(world, first) == 0, "what counts is the request before, as in Kafka"


@pytest.mark.parametrize("instance_id", [ZERO, ONE])
async def test_a_push_needs_an_id(world: World, instance_id: UUID) -> None:
    first = await asked(world)
    code = await pushed(world, first, client_instance_id=instance_id)
    assert code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 5}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"\0" * 1048577}, ErrorCode.TELEMETRY_TOO_LARGE),
        (
            {"metrics": deflate(Codec.ZSTD, b"\0" * (1 << 24)), "compression_type": 4},
            ErrorCode.TELEMETRY_TOO_LARGE,
        ),
        ({"metrics": b"\xff\xff"}, ErrorCode.INVALID_RECORD),
        ({"metrics": b"\xff\xff", "compression_type": 4}, ErrorCode.INVALID_RECORD),
        ({"metrics": b""}, ErrorCode.NONE),
    ],
)
async def test_bad_pushes_have_codes(world: World, fields: dict[str, Any], code: ErrorCode) -> None:
    first = await asked(world)
    assert await pushed(world, first, **fields) == code
    assert values(world) == {}
    may_ask = code in (
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    )
    again = await asked(world, first.client_instance_id)
    assert again.error_code == (0 if may_ask else ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    world.clock.advance(INTERVAL)
    assert await pushed(world, first) == 0
    assert values(world)


async def test_what_changed_is_heard_at_once(world: World) -> None:
    first = await asked(world)
    assert await pushed(world, first) == 0
    await subscribe(world, "all", metrics="m")
    assert await pushed(world, first) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    second = await asked(world, first.client_instance_id)
    assert second.error_code == 0
    assert second.subscription_id != first.subscription_id
    assert await pushed(world, second) == ErrorCode.THROTTLING_QUOTA_EXCEEDED, "as in Kafka"
    world.clock.advance(INTERVAL)
    assert await pushed(world, second) == 0


async def test_other_settings_change_no_subscription(world: World) -> None:
    first = await asked(world)
    request = IncrementalAlterConfigsRequest(
        resources=[altered(32, "g", [("consumer.session.timeout.ms", 0, "50000")])]
    )
    assert (await world.call(request, 1)).responses[0].error_code == 0
    again = await asked(world, first.client_instance_id)
    assert again.error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


async def test_another_node_knows_the_subscription(world: World) -> None:
    """Its id follows from what all nodes know."""
    other = World()
    await subscribe(other, "all", metrics="*", interval_ms=str(INTERVAL))
    assert await pushed(other, await asked(world)) == 0


async def test_clients_that_are_silent_are_forgotten_with_their_series(world: World) -> None:
    telemetry = world.broker.client_telemetry
    first = await asked(world)
    assert await pushed(world, first) == 0
    world.clock.advance(60 * SECOND - 1)
    await telemetry.expire()
    assert (len(telemetry.instances), len(values(world))) == (1, 2)
    world.clock.advance(1)
    await telemetry.expire()
    assert (len(telemetry.instances), values(world)) == (0, {})


async def test_a_long_interval_is_waited_for_three_times(world: World) -> None:
    await subscribe(world, "all", interval_ms="100000")
    telemetry = world.broker.client_telemetry
    assert await pushed(world, await asked(world)) == 0
    world.clock.advance(300 * SECOND - 1)
    await telemetry.expire()
    assert (len(telemetry.instances), len(values(world))) == (1, 2)
    world.clock.advance(1)
    await telemetry.expire()
    assert (len(telemetry.instances), values(world)) == (0, {})


@pytest.mark.parametrize(("terminating", "seconds"), [(True, 60), (False, 150)])
async def test_last_values_stay_for_a_while_when_the_connection_ends(
    world: World, terminating: bool, seconds: int
) -> None:
    await subscribe(world, "all", interval_ms="100000")
    telemetry = world.broker.client_telemetry
    assert await pushed(world, await asked(world), terminating=terminating) == 0
    telemetry.connection_lost(1)
    assert len(telemetry.instances) == 0
    world.clock.advance(seconds * SECOND - 1)
    await telemetry.expire()
    assert len(values(world)) == 2
    world.clock.advance(1)
    await telemetry.expire()
    assert values(world) == {}


async def test_the_client_silent_for_longest_makes_room(world: World) -> None:
    telemetry = world.broker.client_telemetry
    first, second = await asked(world), await asked(world)
    for _ in range(MOST_INSTANCES - 2):
        await asked(world)
    assert len(telemetry.instances) == MOST_INSTANCES
    assert await pushed(world, first) == 0
    await asked(world)
    assert len(telemetry.instances) == MOST_INSTANCES
    assert telemetry.instances.evicted == 1
    assert telemetry.instances.get(first.client_instance_id) is not None
    assert telemetry.instances.get(second.client_instance_id) is None


async def test_pushes_that_wait_have_a_bound(world: World) -> None:
    world.lanes.held = True
    waiting = []
    for _ in range(17):
        first = await asked(world)
        request = push.PushTelemetryRequest(
            client_instance_id=first.client_instance_id,
            subscription_id=first.subscription_id,
            metrics=b"\0" * (1 << 20),
        )
        answer = world.begin(request, 0)
        task = world.broker.loop.create_task(answer)
        waiting.append(task)
        await asyncio.sleep(0)
    assert [each.done() for each in waiting] == [False] * 16 + [True]
    assert waiting[-1].result().error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert world.broker.client_telemetry.series.dropped == {"busy": 1}
    for _ in range(16):
        world.lanes.release()
    assert [(await each).error_code for each in waiting[:16]] == [ErrorCode.INVALID_RECORD] * 16
    world.lanes.held = False
    assert await pushed(world, await asked(world)) == 0


async def test_a_client_that_goes_while_its_push_is_read_leaves_its_last_values(
    world: World,
) -> None:
    telemetry = world.broker.client_telemetry
    world.lanes.held = True
    first = await asked(world)
    task = asyncio.create_task(pushed(world, first))
    await asyncio.sleep(0)
    telemetry.connection_lost(1)
    world.lanes.release()
    assert await task == 0
    assert len(values(world)) == 2
    world.clock.advance(60 * SECOND)
    await telemetry.expire()
    assert values(world) == {}
