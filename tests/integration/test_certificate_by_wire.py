"""Certificates of a listener renewed by IncrementalAlterConfigs, as Kafka's tools do it."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from broker.daemon.app import Broker
from broker.server.tls_listener import TlsListener
from broker.topics.stored_settings import stored_lines
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.integration.test_admin_trail import Lines, all_told, told
from tests.support.clients.certificates import Authority, Signed
from tests.support.clients.wire import AsyncWireClient
from tests.support.worlds.app import client_of, make_broker, running_broker

__all__ = ["told"]  # a fixture

AUTHORITY = Authority()
OF_SSL = "listener.name.ssl."
LOCATION = f"{OF_SSL}ssl.keystore.location"
KEY, CHAIN = f"{OF_SSL}ssl.keystore.key", f"{OF_SSL}ssl.keystore.certificate.chain"
SET, DELETE = 0, 1


def settings_of(file: Path) -> dict[str, str]:
    listeners = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    return {"listeners": listeners, "ssl.keystore.location": str(file)}


class World:
    def __init__(self, broker: Broker, client: AsyncWireClient, path: Path) -> None:
        self.broker = broker
        self.client = client
        self.path = path

    @property
    def listener(self) -> TlsListener:
        return self.broker.services.server.tls["SSL"]

    async def alter(self, *changes: tuple[str, str | None], node: str = "1") -> tuple[int, str]:
        configs = [
            AlterableConfig(
                name=name, config_operation=DELETE if value is None else SET, value=value
            )
            for name, value in changes
        ]
        resource = AlterConfigsResource(resource_type=4, resource_name=node, configs=configs)
        answer = await self.client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        (found,) = answer.responses
        return found.error_code, found.error_message or ""

    async def described(self, *names: str) -> dict[str, Any]:
        resource = DescribeConfigsResource(
            resource_type=4, resource_name="1", configuration_keys=list(names)
        )
        answer = await self.client.call(DescribeConfigsRequest(resources=[resource]), 4)
        return {each.name: each for each in answer.results[0].configs}

    async def shown(self) -> Signed | bytes:
        port = self.broker.services.server.listeners["SSL"].port
        return await asyncio.to_thread(shown_at, port)


def shown_at(port: int) -> bytes:
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as raw,
        context.wrap_socket(raw, server_hostname="localhost") as link,
    ):
        found = link.getpeercert(binary_form=True)
    assert found is not None
    return found


def der(signed: Signed) -> bytes:
    return ssl.PEM_cert_to_DER_cert(signed.certificate_pem)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    file = AUTHORITY.server().write(tmp_path / "server.pem")
    async with (
        running_broker(tmp_path / "data", settings_of(file)) as broker,
        client_of(broker) as client,
    ):
        yield World(broker, client, tmp_path)


async def test_another_file_and_the_same_file_again(world: World) -> None:
    port = world.broker.services.server.listeners["SSL"].port
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    open_one = await AsyncWireClient.connect("localhost", port, context)
    second, third = AUTHORITY.server(), AUTHORITY.server()
    other = second.write(world.path / "other.pem")
    assert await world.alter((LOCATION, str(other))) == (0, "")
    assert await world.shown() == der(second)
    third.write(other)
    assert await world.shown() == der(second)
    assert await world.alter((LOCATION, str(other))) == (0, "")
    assert await world.shown() == der(third)
    described = await world.described(LOCATION)
    assert (described[LOCATION].value, described[LOCATION].read_only) == (str(other), False)
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    assert await open_one.call(DescribeConfigsRequest(resources=[resource]), 4)
    await open_one.close()
    assert await world.alter((LOCATION, None)) == (0, "")
    assert await world.shown() != der(third)


def other_key(path: Path) -> str:
    file = path / "bad.pem"
    file.write_text(AUTHORITY.server().key_pem() + AUTHORITY.server().certificate_pem)
    file.chmod(0o600)
    return str(file)


def expired(path: Path) -> str:
    return str(AUTHORITY.server(days=-1).write(path / "bad.pem"))


def other_subject(path: Path) -> str:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "elsewhere")])
    return str(AUTHORITY.client(name).write(path / "bad.pem"))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (other_key, "does not fit"),
        (expired, "expired"),
        (other_subject, "ssl.allow.dn.changes"),
        (lambda path: str(path / "missing.pem"), "missing.pem"),
    ],
)
async def test_what_cannot_be_shown_is_refused_and_the_one_before_stays(
    world: World, make: Callable[[Path], str], reason: str
) -> None:
    before = await world.shown()
    code, message = await world.alter((LOCATION, make(world.path)))
    assert (code, reason in message) == (42, True), message
    assert "PRIVATE KEY" not in message
    assert await world.shown() == before
    assert LOCATION not in await world.described(LOCATION)


@pytest.mark.parametrize(
    ("name", "node"),
    [("ssl.keystore.location", "1"), (LOCATION, ""), ("listener.name.other.ssl.keystore.key", "1"),
     (f"{OF_SSL}ssl.client.auth", "1")],
)  # fmt: skip
async def test_only_certificates_of_one_listener_of_one_broker(
    world: World, name: str, node: str
) -> None:
    file = AUTHORITY.server().write(world.path / "other.pem")
    value = "none" if name.endswith("auth") else str(file)
    code, message = await world.alter((name, value), node=node)
    assert code == 42, message


async def test_keys_in_settings_are_kept_over_a_restart_and_never_shown(
    tmp_path: Path, told: Callable[[], Lines]
) -> None:
    """The certificate of the file has expired meanwhile: what was renewed counts."""
    file = AUTHORITY.server().write(tmp_path / "server.pem")
    renewed, settings, data = AUTHORITY.server(), settings_of(file), tmp_path / "data"
    key = renewed.key_pem("secret")
    async with running_broker(data, settings) as broker, client_of(broker) as client:
        world = World(broker, client, tmp_path)
        done = await world.alter(
            (LOCATION, ""), (KEY, key), (CHAIN, renewed.certificate_pem),
            (f"{OF_SSL}ssl.key.password", "secret"),
        )  # fmt: skip
        assert done == (0, "")
        assert await world.shown() == der(renewed)
        for each in (await world.described(KEY, f"{OF_SSL}ssl.key.password")).values():
            assert (each.value, each.is_sensitive) == (None, True)
        await all_told(broker.services.trail)
        (line,) = [each for each in told() if each["operation"] == "alter settings"]
        assert "[hidden]" in line["detail"]
        assert not any("PRIVATE" in str(each) or "secret" in str(each) for each in told())
        fs = broker.services.fs
    assert (data / "horolog-config.json").stat().st_mode & 0o077 == 0
    assert "PRIVATE" not in stored_lines(fs, str(data))
    AUTHORITY.server(days=-1).write(file)
    async with running_broker(data, settings) as broker, client_of(broker) as client:
        assert await World(broker, client, tmp_path).shown() == der(renewed)


async def test_a_broker_without_tls_has_no_certificate_to_renew(tmp_path: Path) -> None:
    broker = make_broker(tmp_path / "data")
    assert broker.services.resources.renewal is None
