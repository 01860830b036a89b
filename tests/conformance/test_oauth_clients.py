"""Clients of other languages log in by OAUTHBEARER over TLS, and renew their sessions."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.conformance.test_group_clients import QUICK
from tests.integration.test_oauth import AGAIN, settings_of
from tests.support.clients.certificates import Authority
from tests.support.clients.client_programs import CLIENTS, ClientProgram, Running
from tests.support.clients.client_security import BEARER, ClientSecurity
from tests.support.clients.issuer import Issuer, IssuerServer, key_of
from tests.support.clients.scraped import metric_of
from tests.support.kafka import kafka_oracle
from tests.support.kafka.kafka_oracle import SCRIPT, TOPICS_TOOL
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

EXERCISES = {
    "kafka-clients": "OAUTHBEARER: log-in by its own OIDC client, and sessions that are renewed",
    "franz-go, sarama, kafkajs": "OAUTHBEARER: writes within TLS, and reads over several sessions",
}
NAMED = [each for each in CLIENTS if each.name in ("franz-go", "sarama", "kafkajs")]
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
SECRET = "a-secret-of-the-client"


class World(NamedTuple):
    node: NodeProcess
    server: IssuerServer
    folder: Path

    @property
    def authority(self) -> str:
        return str(self.folder / "authority.pem")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("oauth-clients")
    authority = Authority()
    authority.write(folder / "authority.pem")
    pem = authority.server().write(folder / "server.pem")
    with IssuerServer(Issuer(key_of("RSA"), key_of(kid="ec")), pem) as server:
        settings = {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "ssl.keystore.location": str(pem),
            "listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms": "3000",
            **settings_of(folder, f"{server.url}/keys"),
            **QUICK,
        }
        with start_broker(folder / "data", settings) as node:
            yield World(node, server, folder)


def client_of(world: World) -> dict[str, Any]:
    """Properties of librdkafka."""
    issuer = world.server.issuer
    return {
        "bootstrap.servers": world.node.bootstrap, "security.protocol": "SASL_SSL",
        "ssl.ca.location": world.authority, "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (issuer.token(), time.time() + 300),
    }  # fmt: skip


def java_properties(world: World) -> str:
    """A file as Kafka's tools take it with --command-config."""
    options = {
        "clientId": "app", "clientSecret": SECRET, "scope": "kafka",
        "ssl.truststore.type": "PEM", "ssl.truststore.location": world.authority,
    }  # fmt: skip
    jaas = " ".join(f'{name}="{value}"' for name, value in options.items())
    lines = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": world.authority,
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"{world.server.url}/token",
        "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        "retries": "10",  # the tool's own 0 fails where a slow machine lets a session end
        "sasl.jaas.config": f"{PACKAGE}.OAuthBearerLoginModule required {jaas};",
    }
    file = world.folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return str(file)


def java(world: World, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={world.server.url}/token"
    at = "--bootstrap-server", world.node.bootstrap, "--command-config", java_properties(world)
    return subprocess.run(
        [sys.executable, str(SCRIPT), "tool", tool, *at, *arguments],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=110,
        env={**os.environ, "JAVA_TOOL_OPTIONS": allowed},
    )  # fmt: skip


needs_java = pytest.mark.skipif(not kafka_oracle.available(), reason="needs java and mvn")


@needs_java
@pytest.mark.kafka
def test_java_by_its_own_oidc_client(world: World) -> None:
    done = java(world, TOPICS_TOOL, "--create", "--topic", "java")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "java" in java(world, TOPICS_TOOL, "--list").stdout
    assert "/token" in world.server.asked


@needs_java
@pytest.mark.kafka
def test_java_over_several_sessions_loses_no_record(world: World) -> None:
    """Three seconds a session; it authenticates again on its connection.

    At work for fifteen seconds, less what a slow machine takes to log in first.
    """
    count, before = 3000, metric_of(world.node, AGAIN)
    done = java(
        world, "org.apache.kafka.tools.VerifiableProducer", "--topic", "java-sessions",
        "--max-messages", str(count), "--throughput", "200",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert not [each for each in told if each["name"] == "producer_send_error"]
    assert told[-1]["acked"] == count
    again = metric_of(world.node, AGAIN) - before
    print(f"{again:.0f} proofs again")
    assert again >= 2
    assert "reason=session_expired" not in world.node.log.read_text()
    assert read_back(world, "java-sessions", count) == [b"%d" % number for number in range(count)]


@pytest.mark.parametrize("program", NAMED, ids=lambda each: each.name)
def test_clients_with_a_token(world: World, program: ClientProgram) -> None:
    """They write, and a subscriber reads for longer than a session lasts."""
    if program.absent():
        pytest.skip(program.absent())
    authority, token = Path(world.authority), world.server.issuer.token()
    security = ClientSecurity("SASL_SSL", authority, BEARER, token=token)
    count, topic = 100, f"by-{program.name}"
    admin = AdminClient(client_of(world))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    writer = program.produce(world.node.bootstrap, topic, count, security)
    assert writer.wait() == 0
    assert writer.lines() == [f"written {count}"]
    reader = program.subscribe(world.node.bootstrap, topic, topic, security)
    try:
        _until_read(reader, count)
        time.sleep(4)
        more = program.produce(world.node.bootstrap, topic, count, security)
        assert more.wait() == 0
        more.close()
        _until_read(reader, 2 * count)
    finally:
        reader.close()
        writer.close()


def _until_read(reader: Running, count: int) -> None:
    """Each offset once or, after a connection that ended, once more."""
    deadline = time.monotonic() + 40
    while len({offset for _, offset in reader.read()}) < count:
        assert reader.running
        assert time.monotonic() < deadline, len(reader.read())
        time.sleep(0.05)


def read_back(world: World, topic: str, count: int) -> list[bytes | None]:
    """The values of a topic's first records, by a client with a session of its own."""
    consumer = Consumer({**client_of(world), "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes | None] = []
    while len(values) < count:
        messages = consumer.consume(count, 20)
        assert messages
        values += [each.value() for each in messages if not each.error()]
    consumer.close()
    return values
