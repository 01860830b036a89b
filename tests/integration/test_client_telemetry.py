"""Client telemetry over a socket: listed only with its setting, and shown at /metrics."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.daemon.app import Broker
from protocol.apis.api_versions import ApiVersionsRequest
from protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from protocol.apis.push_telemetry import PushTelemetryRequest
from protocol.records.compression import Codec, deflate
from tests.support.clients.wire import AsyncWireClient
from tests.support.patience import until
from tests.support.records.pushes import gauge, point, push_of, total
from tests.support.worlds.app import make_broker
from tests.support.worlds.handler_world import altered

TELEMETRY = {71, 72}


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def started(stack: AsyncExitStack, data_dir: Path, **settings: str) -> Broker:
    broker = make_broker(data_dir, {key.replace("_", "."): each for key, each in settings.items()})
    await broker.start()
    stack.push_async_callback(broker.stop)
    return broker


async def connected(stack: AsyncExitStack, broker: Broker) -> AsyncWireClient:
    return await stack.enter_async_context(await AsyncWireClient.connect(*broker.bootstrap))


async def listed(client: AsyncWireClient) -> set[int]:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1.5")
    return {each.api_key for each in (await client.call(request, 4)).api_keys}


async def scraped(broker: Broker) -> dict[str, Any]:
    """Families by name, as Prometheus' library reads them."""
    _, text = await asyncio.to_thread(broker._scraped, "metrics")
    return {each.name: each for each in text_string_to_metric_families(text.decode())}


async def test_without_the_setting_it_is_not_there(stack: AsyncExitStack, tmp_path: Path) -> None:
    broker = await started(stack, tmp_path / "data")
    client = await connected(stack, broker)
    assert not await listed(client) & TELEMETRY
    with pytest.raises((EOFError, OSError)):
        await client.call(GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0)), 0)


async def test_pushes_are_scraped_until_the_client_is_gone(
    stack: AsyncExitStack, tmp_path: Path
) -> None:
    broker = await started(stack, tmp_path / "data", horolog_client_telemetry_enable="true")
    client = await connected(stack, broker)
    assert await listed(client) >= TELEMETRY
    changes = [
        ("metrics", 0, "*"),
        ("interval.ms", 0, "100"),
        ("match", 0, r"client_software_name=t,client_software_version=1\.5"),
    ]
    request = IncrementalAlterConfigsRequest(resources=[altered(16, "all", changes)])
    assert (await client.call(request, 1)).responses[0].error_code == 0
    mine = await client.call(GetTelemetrySubscriptionsRequest(client_instance_id=UUID(int=0)), 0)
    assert (mine.error_code, mine.requested_metrics) == (0, ["*"])
    pushed = PushTelemetryRequest(
        client_instance_id=mine.client_instance_id,
        subscription_id=mine.subscription_id,
        compression_type=Codec.ZSTD,
        metrics=deflate(
            Codec.ZSTD, push_of(gauge("org.apache.kafka.x.y", point(2.5)), total("n", point(3)))
        ),
    )
    assert (await client.call(pushed, 0)).error_code == 0
    await asyncio.sleep(0.2)
    assert (await client.call(pushed, 0)).error_code == 0
    families = await scraped(broker)
    (shown,) = families["kafka_client_x_y"].samples
    assert shown.value == 2.5
    assert shown.labels.keys() == {"client_id", "client_instance_id"}
    assert families["kafka_client_n"].type == "counter"
    assert families["kafka_client_n"].samples[0].value == 6.0
    assert families["horolog_client_telemetry_pushes"].samples[0].value == 2.0
    services = broker.services
    assert len(services.software) == 1
    await client.close()
    await asyncio.to_thread(until, lambda: not services.server.connections, "the client is gone")
    assert len(services.client_telemetry.instances) == 0
    assert len(services.software) == 0
    assert "kafka_client_x_y" in await scraped(broker), "for a last scrape"
