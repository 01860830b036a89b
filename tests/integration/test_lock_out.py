"""No request locks everybody out: not over a restart, not out of the listener of administrators."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from broker.cli.main import main
from broker.daemon.app import Broker
from broker.server.connection_counts import ADMIN_CONNECTIONS
from config.names import BROKER_KEYS
from config.sealed_json import sealed
from config.sources import load
from config.store import ConfigStore
from config.wire_rules import FIXED, LEAST_ON_WIRE
from protocol.apis import alter_client_quotas, describe_configs, metadata
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, running_broker

BROKER, SET, DELETE = 4, 0, 1
TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,ADMIN://127.0.0.1:0",
    "horolog.admin.listener.name": "admin",
}


async def alter(client: AsyncWireClient, key: str, value: str | None, node: str = "1") -> Any:
    config = AlterableConfig(
        name=key, config_operation=DELETE if value is None else SET, value=value
    )
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=node, configs=[config])
    answer = await client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return answer.responses[0]


async def is_served(stack: AsyncExitStack, broker: Broker, listener: str) -> bool:
    """Whether a new connection is answered; it stays open."""
    host, port = broker.services.server.listeners[listener].dialled
    client = await stack.enter_async_context(await AsyncWireClient.connect(host, port))
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        await client.call(metadata.MetadataRequest(topics=[]), 9)
        return True
    return False


@pytest.mark.parametrize(
    "key", ["max.connections", "max.connections.per.ip", "listener.name.plaintext.max.connections"]
)
@pytest.mark.parametrize("node", ["1", ""])
async def test_no_connections_at_all_is_refused(tmp_path: Path, key: str, node: str) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        refused = await alter(client, key, "0", node)
        assert refused.error_code == 42
        assert key in refused.error_message
        async with client_of(broker) as another:
            await another.call(metadata.MetadataRequest(topics=[]), 9)


async def test_connections_are_kept_for_administrators(tmp_path: Path) -> None:
    async with running_broker(tmp_path, TWO_LISTENERS) as broker, AsyncExitStack() as stack:
        host, port = broker.services.server.listeners["ADMIN"].dialled
        async with await AsyncWireClient.connect(host, port) as admin:
            for key in ("max.connections", "max.connections.per.ip"):
                assert (await alter(admin, key, "1")).error_code == 0
        assert await is_served(stack, broker, "PLAINTEXT")
        assert not await is_served(stack, broker, "PLAINTEXT")
        for _ in range(ADMIN_CONNECTIONS):
            assert await is_served(stack, broker, "ADMIN")
        assert not await is_served(stack, broker, "ADMIN"), "beyond those kept, as anybody"


async def test_what_a_stranger_set_is_taken_back_by_an_administrator_after_a_restart(
    tmp_path: Path,
) -> None:
    async with running_broker(tmp_path, TWO_LISTENERS) as broker, client_of(broker) as client:
        assert (await alter(client, "max.connections", "1")).error_code == 0
    async with running_broker(tmp_path, TWO_LISTENERS) as broker, AsyncExitStack() as stack:
        assert await is_served(stack, broker, "PLAINTEXT")
        assert not await is_served(stack, broker, "PLAINTEXT")
        host, port = broker.services.server.listeners["ADMIN"].dialled
        async with await AsyncWireClient.connect(host, port) as admin:
            assert (await alter(admin, "max.connections", None)).error_code == 0
        assert await is_served(stack, broker, "PLAINTEXT")


async def test_one_listener_has_a_limit_of_its_own(tmp_path: Path) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0"}
    key = "listener.name.other.max.connections"
    async with running_broker(tmp_path, settings) as broker, client_of(broker) as client:
        assert (await alter(client, key, "2")).error_code == 0
        assert (await alter(client, "listener.name.nobody.max.connections", "2")).error_code == 42
        wanted = describe_configs.DescribeConfigsResource(resource_type=BROKER, resource_name="1")
        told = await client.call(describe_configs.DescribeConfigsRequest(resources=[wanted]), 4)
        values = {each.name: each.value for each in told.results[0].configs}
        assert values[key] == "2"
        async with AsyncExitStack() as stack:
            served = [await is_served(stack, broker, "OTHER") for _ in range(3)]
            assert served == [True, True, False]
            assert await is_served(stack, broker, "PLAINTEXT")
            assert broker.services.probes.connections_refused["listener_max_connections"] == 1
    async with running_broker(tmp_path, settings) as broker:
        assert broker.services.config.broker_config.listener_max_connections == {"OTHER": 2}


async def test_a_flag_wins_over_what_was_set_before_and_cannot_be_changed(tmp_path: Path) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        assert (await alter(client, "max.connections", "7")).error_code == 0
        assert (await alter(client, "log.retention.hours", "7")).error_code == 0
    flags = {"max.connections": "50", "log.retention.ms": "1d"}
    async with running_broker(tmp_path, flags) as broker, client_of(broker) as client:
        assert broker.services.config.broker_config.max_connections == 50
        assert broker.services.config.topic_defaults.retention_ms == 86_400_000
        for key in ("max.connections", "log.retention.ms", "log.retention.hours"):
            refused = await alter(client, key, "9")
            assert refused.error_code == 42
            assert key in refused.error_message
            assert "--set" in refused.error_message
        assert (await alter(client, "max.connections", None)).error_code == 0
    async with running_broker(tmp_path) as broker:
        assert broker.services.config.broker_config.max_connections == 10_000


def test_what_a_file_says_gives_way_to_what_clients_set_as_with_kafka(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("max.connections=5\n")
    store = ConfigStore(load(environment={}, file=str(file)).layers)
    store.commit(store.prepare_broker("1", {"max.connections": "6"}))
    assert store.broker_config.max_connections == 6


@pytest.mark.parametrize("key", FIXED)
async def test_keys_that_are_not_for_clients_are_refused_with_the_reason(key: str) -> None:
    (found,) = [each for each in BROKER_KEYS if each.name == key]
    assert not found.dynamic
    store = ConfigStore()
    with pytest.raises(ValueError, match=key) as refused:
        store.prepare_broker("1", {key: found.default_text})
    assert FIXED[key] in str(refused.value)


@pytest.mark.parametrize(("key", "least"), LEAST_ON_WIRE.items())
async def test_a_client_cannot_go_below_what_is_safe(tmp_path: Path, key: str, least: int) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        assert (await alter(client, key, str(least - 1))).error_code == 42
        assert (await alter(client, key, str(least))).error_code == 0
    assert ConfigStore(load(flags=[f"{key}=0"], environment={}).layers)


@pytest.mark.parametrize(
    ("key", "least"),
    [("producer_byte_rate", 1024), ("consumer_byte_rate", 1024), ("request_percentage", 1)],
)
async def test_a_quota_for_everybody_leaves_room(tmp_path: Path, key: str, least: float) -> None:
    async with running_broker(tmp_path) as broker, client_of(broker) as client:
        below = least / 2
        for name, value, code in ((None, below, 42), (None, least, 0), ("one", below, 0)):
            entity = alter_client_quotas.EntityData(entity_type="client-id", entity_name=name)
            op = alter_client_quotas.OpData(key=key, value=value)
            entry = alter_client_quotas.EntryData(entity=[entity], ops=[op])
            request = alter_client_quotas.AlterClientQuotasRequest(entries=[entry])
            answer = await client.call(request, 1)
            assert answer.entries[0].error_code == code


async def test_a_stored_key_is_taken_back_while_the_broker_is_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    where = ["--data-dir", str(data)]
    async with running_broker(data) as broker, client_of(broker) as client:
        assert (await alter(client, "max.connections", "1", "")).error_code == 0
        assert (await alter(client, "max.connections", "2")).error_code == 0
        assert (await alter(client, "log.retention.ms", "1d")).error_code == 0
        assert await asyncio.to_thread(main, ["config", "unset", "max.connections", *where]) == 1
        assert "is in use: stop the broker" in capsys.readouterr().err
    file = data / "horolog-config.json"
    content = json.loads(file.read_text())
    content["brokers"][""]["max.connections"] = "0"  # as a version with other bounds stored it
    file.write_text(json.dumps(sealed(content)))
    with pytest.raises(ValueError, match=r"max\.connections: 0 is out of bounds.*config unset"):
        async with running_broker(data):
            pass
    assert main(["config", "unset", *where]) == 0
    told = capsys.readouterr().out
    assert "every broker: max.connections = 0\n" in told
    assert "broker 1: max.connections = 2\n" in told
    assert main(["config", "unset", "log.roll.ms", *where]) == 1
    assert "log.roll.ms is not stored" in capsys.readouterr().err
    assert main(["config", "unset", "max.connections", *where]) == 0
    assert capsys.readouterr().out.count("is taken back") == 2
    async with running_broker(data) as broker:
        assert broker.services.config.broker_config.max_connections == 10_000
        assert broker.services.config.topic_defaults.retention_ms == 86_400_000


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horolog.admin.listener.name": "PLAINTEXT"}, "is the only listener"),
        ({"horolog.admin.listener.name": "other"}, "listeners has no OTHER"),
        ({"listener.name.other.max.connections": "4"}, "listeners has no OTHER"),
    ],
)
def test_listeners_that_are_not_there_are_named_at_the_start(
    settings: dict[str, str], words: str
) -> None:
    flags = [f"{key}={value}" for key, value in settings.items()]
    with pytest.raises(ValueError, match=words):
        ConfigStore(load(flags=flags, environment={}).layers)
