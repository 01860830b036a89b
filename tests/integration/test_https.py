"""The HTTP port over TLS: probes, the API, limits of connections, renewal of its certificate."""

import asyncio
import json
import socket
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from broker.cli.main import main
from broker.daemon.app import Broker
from broker.daemon.tls_listeners import renew_certificates
from broker.http.port import tls_visit, visits
from broker.security.acl import Acl
from config.errors import ConfigError
from config.sources import load
from config.store import ConfigStore
from protocol.acls import CLUSTER_NAME, AclOperation, AclPermission, PatternType, ResourceType
from tests.support.clients.certificates import Authority, Signed
from tests.support.worlds.app import make_broker, running_broker

AUTHORITY = Authority()
SERVER = AUTHORITY.server()
TOKEN = "a-token-of-some-length"


def settings_of(tmp_path: Path, **more: str) -> dict[str, str]:
    file, tokens = SERVER.write(tmp_path / "server.pem"), tmp_path / "tokens"
    tokens.write_text(f"admin:{TOKEN}\nread:{'r' * 16}\n")
    tokens.chmod(0o600)
    return {
        "horolog.http.security.protocol": "SSL",
        "listener.name.http.ssl.keystore.location": str(file),
        "horolog.http.token.file": str(tokens),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@pytest.fixture
async def broker(tmp_path: Path) -> AsyncIterator[Broker]:
    async with running_broker(tmp_path / "data", settings_of(tmp_path)) as running:
        yield running


def trusting(client: Signed | None = None, tmp_path: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=AUTHORITY.pem)
    if client is not None and tmp_path is not None:
        context.load_cert_chain(client.write(tmp_path / "client.pem"))
    return context


async def ask(
    broker: Broker, path: str, context: ssl.SSLContext | None = None, **headers: str
) -> tuple[int, Any]:
    def blocking() -> tuple[int, Any]:
        connection = HTTPSConnection(str(broker.http), timeout=20, context=context or trusting())
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            is_json = "json" in answer.headers["Content-Type"]
            return answer.status, json.loads(body) if is_json else body
        finally:
            connection.close()

    return await asyncio.to_thread(blocking)


def shown(broker: Broker) -> bytes:
    assert broker.http is not None
    with (
        socket.create_connection(broker.http, timeout=20) as raw,
        trusting().wrap_socket(raw, server_hostname="localhost") as link,
    ):
        found = link.getpeercert(binary_form=True)
    assert found is not None
    return found


async def test_probes_metrics_and_the_api_come_by_https(broker: Broker) -> None:
    assert await ask(broker, "/livez") == (200, b"ok\n")
    status, metrics = await ask(broker, "/metrics")
    assert status == 200
    assert b'horolog_tls_certificate_not_after_seconds{listener="HTTP"}' in metrics
    assert (await ask(broker, "/api/topics"))[0] == 200
    assert broker.services.probes.tls_handshakes["HTTP"] == 3


async def test_plain_http_gets_no_answer_and_is_told(broker: Broker) -> None:
    assert broker.http is not None
    reader, writer = await asyncio.open_connection(*broker.http)
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    with suppress(ConnectionError):
        assert b"HTTP" not in await reader.read()
    writer.close()
    for _ in range(100):
        if broker.services.probes.tls_failures:
            break
        await asyncio.sleep(0.02)
    assert dict(broker.services.probes.tls_failures) == {"no_tls": 1}
    assert await ask(broker, "/livez") == (200, b"ok\n")


async def test_half_handshakes_have_a_time_and_do_not_keep_a_probe_out(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_visit, "HANDSHAKE_SECONDS", 0.5)
    monkeypatch.setattr(visits, "GRACE_SECONDS", 0.1)
    assert broker.http is not None
    assert await ask(broker, "/livez") == (200, b"ok\n")
    crowd = [await asyncio.open_connection(*broker.http) for _ in range(150)]
    for _, writer in crowd:
        writer.write(b"\x16\x03\x01\x02\x00\x01")
    began = time.monotonic()
    assert await ask(broker, "/livez") == (200, b"ok\n")
    assert time.monotonic() - began < 1.0
    async with asyncio.timeout(5):
        for reader, writer in crowd:
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
    refused = broker.services.probes.http_refusals
    assert refused["handshake_too_slow"] > 0
    assert refused["too_many_connections"] > 0
    assert sum(refused.values()) == 150


async def test_a_renewed_certificate_counts_for_new_connections_and_open_ones_stay(
    broker: Broker, tmp_path: Path
) -> None:
    assert broker.http is not None
    reader, writer = await asyncio.open_connection(
        *broker.http, ssl=trusting(), server_hostname="localhost"
    )

    async def probe() -> bytes:
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(3) == b"ok\n"
        return head.split(b"\r\n")[0]

    assert await probe() == b"HTTP/1.1 200 OK"
    renewed = AUTHORITY.server()
    renewed.write(tmp_path / "server.pem")
    await renew_certificates(broker.services)
    assert await asyncio.to_thread(shown, broker) == ssl.PEM_cert_to_DER_cert(
        renewed.certificate_pem
    )
    assert await probe() == b"HTTP/1.1 200 OK"
    writer.close()
    await writer.wait_closed()


async def test_a_certificate_of_a_client_names_its_user(tmp_path: Path) -> None:
    settings = settings_of(
        tmp_path,
        listener_name_http_ssl_client_auth="requested",
        listener_name_http_ssl_truststore_location=str(AUTHORITY.write(tmp_path / "ca.pem")),
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    )
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ops")])
    acl = Acl(
        ResourceType.CLUSTER, PatternType.LITERAL, CLUSTER_NAME, "User:CN=ops", "*",
        AclOperation.DESCRIBE, AclPermission.ALLOW,
    )  # fmt: skip
    async with running_broker(tmp_path / "data", settings) as broker:
        with_one = trusting(AUTHORITY.client(named), tmp_path)
        assert (await ask(broker, "/api/clock", with_one))[0] == 403
        await broker.services.authority.add([acl])
        assert (await ask(broker, "/api/clock", with_one))[0] == 200
        assert (await ask(broker, "/api/clock"))[0] == 401
        assert (await ask(broker, "/api/clock", Authorization=f"Bearer {TOKEN}"))[0] == 200


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["horolog.http.security.protocol=SSL"], "TLS needs a certificate"),
        (["listener.name.http.ssl.client.auth=none"], "horolog.http.security.protocol=SSL"),
        (
            ["horolog.http.security.protocol=SSL", "ssl.keystore.location=x", "listeners=HTTP://:0",
             "listener.security.protocol.map=HTTP:PLAINTEXT"],
            "another name",
        ),
    ],
)  # fmt: skip
def test_settings_that_contradict_one_another(flags: list[str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        ConfigStore(load(flags=flags, environment={}).layers)


async def test_a_certificate_that_cannot_be_shown_ends_the_start(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    AUTHORITY.server(days=-1).write(tmp_path / "server.pem")
    with pytest.raises(ConfigError, match=r"listener HTTP.*expired"):
        await make_broker(tmp_path / "data", settings).start()


async def test_commands_speak_https(
    broker: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    authority = str(AUTHORITY.write(tmp_path / "ca.pem"))
    http = ["--http", f"https://{broker.http}"]
    file = ["--token-file", str(tmp_path / "tokens")]
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={authority}\n"
    )

    async def run(*arguments: str) -> int:
        return await asyncio.to_thread(main, list(arguments))

    assert await run("clock", *http, "--ca-file", authority) == 0
    assert await run("clock", *http, "--command-config", str(properties)) == 0
    assert await run("top", "--once", *http, "--ca-file", authority) == 0
    assert await run("clock", "confirm", *http, "--ca-file", authority, *file) == 0
    capsys.readouterr()
    assert await run("clock", *http) == 2
    assert "--ca-file" in capsys.readouterr().err
    assert await run("clock", "--http", str(broker.http)) == 2
    assert "https://" in capsys.readouterr().err
    assert await run("health", *http) == 0
    assert capsys.readouterr().out == "ready\n"
    assert await run("health", *http, "--ca-file", authority) == 0
    assert await run("health", "--http", str(broker.http)) == 1
    assert "https://" in capsys.readouterr().out
    other = str(Authority("another").write(tmp_path / "other.pem"))
    assert await run("health", *http, "--ca-file", other) == 1
    monkeypatch.setenv("HOROLOG_HTTP_LISTENER", str(broker.http))
    monkeypatch.setenv("HOROLOG_HTTP_SECURITY_PROTOCOL", "SSL")
    assert await run("health") == 0
