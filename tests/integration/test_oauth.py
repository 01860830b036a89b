"""OAUTHBEARER with a real broker: tokens of a small provider let in, over TLS, and nothing else."""

import json
import os
import signal
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, Producer

from protocol.apis import fetch, metadata, sasl_authenticate, sasl_handshake
from protocol.apis.metadata import MetadataRequestTopic
from tests.integration.test_sasl import KafkaProducer
from tests.support.clients.certificates import Authority
from tests.support.clients.issuer import (
    AUDIENCE,
    NAME,
    Issuer,
    IssuerServer,
    key_of,
    raw_token,
)
from tests.support.clients.scraped import metric_of
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeFailed, NodeProcess


class World(NamedTuple):
    node: NodeProcess
    server: IssuerServer
    folder: Path

    @property
    def trusted(self) -> str:
        return str(self.folder / "authority.pem")

    @property
    def log(self) -> str:
        return (self.folder / "data.log").read_text()


def settings_of(folder: Path, url: str) -> dict[str, str]:
    return {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": url,
        "sasl.oauthbearer.expected.issuer": NAME,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "horolog.sasl.oauthbearer.truststore.location": str(folder / "authority.pem"),
        "connection.failed.authentication.delay.ms": "0",
    }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("oauth")
    authority = Authority()
    authority.write(folder / "authority.pem")
    pem = authority.server().write(folder / "server.pem")
    issuer = Issuer(key_of(), key_of("RSA", "rsa"))
    with IssuerServer(issuer, pem) as server:
        settings = {
            "listeners": "SASL_SSL://127.0.0.1:0",
            "ssl.keystore.location": str(pem),
            **settings_of(folder, f"{server.url}/keys"),
        }
        with start_broker(folder / "data", settings) as node:
            yield World(node, server, folder)


def properties(world: World, seconds: float = 300) -> dict[str, Any]:
    """A client that gets a token from a function."""
    issuer = world.server.issuer
    return {
        "bootstrap.servers": world.node.bootstrap, "security.protocol": "SASL_SSL",
        "ssl.ca.location": world.trusted, "sasl.mechanism": "OAUTHBEARER", "log_level": 0,
        "oauth_cb": lambda _: (issuer.token("alice", seconds), time.time() + seconds),
    }  # fmt: skip


def written_and_read(client: dict[str, Any], topic: str, values: list[bytes]) -> list[bytes | None]:
    producer = Producer(client)
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer({**client, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received = [consumer.poll(30) for _ in values]
    consumer.close()
    return [None if each is None else each.value() for each in received]


def test_librdkafka_with_a_function(world: World) -> None:
    values = [b"%d" % number for number in range(100)]
    assert written_and_read(properties(world), "by-function", values) == values


def test_librdkafka_by_oidc(world: World) -> None:
    client = properties(world)
    del client["oauth_cb"]
    client |= {
        "sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.client.id": "app",
        "sasl.oauthbearer.client.secret": "secret", "sasl.oauthbearer.scope": "kafka",
        "sasl.oauthbearer.token.endpoint.url": f"{world.server.url}/token",
        "https.ca.location": world.trusted,
    }  # fmt: skip
    assert written_and_read(client, "by-oidc", [b"value"]) == [b"value"]


def test_kafka_python(world: World) -> None:
    from kafka.net.sasl.oauth import AbstractTokenProvider as Provider

    class Tokens(Provider):
        def token(self) -> str:
            return world.server.issuer.token()

    producer = KafkaProducer(
        bootstrap_servers=world.node.bootstrap, security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Tokens(),
        ssl_cafile=world.trusted,
    )  # fmt: skip
    assert producer.send("by-kafka-python", b"value").get(timeout=30).offset >= 0
    producer.close()


async def test_aiokafka(world: World) -> None:
    class Tokens(AbstractTokenProvider):
        async def token(self) -> str:
            return world.server.issuer.token()

    producer = AIOKafkaProducer(
        bootstrap_servers=world.node.bootstrap, security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=Tokens(),
        ssl_context=create_ssl_context(cafile=world.trusted),
    )  # fmt: skip
    await producer.start()
    try:
        assert (await producer.send_and_wait("by-aiokafka", b"value")).offset >= 0
    finally:
        await producer.stop()


# -- tokens that do not hold, and sessions that end


def open_client(world: World) -> WireClient:
    host, _, port = world.node.bootstrap.rpartition(":")
    client = WireClient(host, int(port))
    trusting = ssl.create_default_context(cafile=world.trusted)
    client.socket = trusting.wrap_socket(client.socket, server_hostname="localhost")
    return client


@pytest.fixture
def client(world: World) -> Iterator[WireClient]:
    with open_client(world) as found:
        yield found


def say(client: WireClient, data: bytes) -> Any:
    return client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=data), 2)


def shake(client: WireClient, mechanism: str = "OAUTHBEARER") -> Any:
    return client.call(sasl_handshake.SaslHandshakeRequest(mechanism=mechanism), 1)


def first_message(token: str) -> bytes:
    return f"n,,\x01auth=Bearer {token}\x01\x01".encode()


def log_in(client: WireClient, token: str) -> Any:
    assert shake(client).error_code == 0
    return say(client, first_message(token))


def is_served(client: WireClient) -> bool:
    return bool(client.call(metadata.MetadataRequest(topics=[]), 1).brokers)


def is_refused(client: WireClient, token: str) -> bool:
    """True when a token has the answers that Kafka gives to one that does not hold."""
    status = b'{"status":"invalid_token"}'
    first = log_in(client, token)
    assert (first.error_code, bytes(first.auth_bytes), first.session_lifetime_ms) == (0, status, 0)
    second = say(client, b"\x01")
    assert (second.error_code, second.error_message) == (58, status.decode())
    return client.receive_all() == b""


def test_a_session_lasts_as_long_as_its_token(world: World, client: WireClient) -> None:
    answer = log_in(client, world.server.issuer.token(seconds=100))
    assert answer.error_code == 0
    assert 90_000 < answer.session_lifetime_ms <= 100_000
    assert is_served(client)


@pytest.mark.parametrize(
    "forge",
    [
        lambda issuer: raw_token({"alg": "none"}, issuer.claims()),
        lambda issuer: raw_token({"alg": "HS256", "kid": "one"}, issuer.claims(), bytes(32)),
        lambda issuer: issuer.token(seconds=-60),
        lambda issuer: issuer.token(nbf=int(time.time()) + 60),
        lambda issuer: issuer.token(iss="https://evil"),
        lambda issuer: issuer.token(aud="evil"),
        lambda issuer: issuer.token(sub=None),
        lambda issuer: issuer.token(key=key_of(kid="one")),
        lambda issuer: issuer.token(more="x" * 45_000, sub=7),
        lambda issuer: raw_token(b"[" * 40_000, b"[" * 5_000),
    ],
)
def test_a_token_that_does_not_hold(world: World, client: WireClient, forge: Any) -> None:
    assert is_refused(client, forge(world.server.issuer))


def test_a_message_that_is_none_and_a_token_that_is_too_long(world: World) -> None:
    with open_client(world) as client:
        assert shake(client).error_code == 0
        answer = say(client, b"n,,\x01auth=Basic x\x01\x01")
        assert answer.error_code == 58
        assert answer.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism OAUTHBEARER"
        )
    with open_client(world) as client:
        assert shake(client).error_code == 0
        long = sasl_authenticate.SaslAuthenticateRequest(auth_bytes=first_message("x" * 70_000))
        with suppress(OSError):
            client.send(long, 2)
            assert client.receive_all() == b""
        assert "65536" in world.log


def test_who_asks_for_another_name_is_told(world: World, client: WireClient) -> None:
    assert shake(client).error_code == 0
    token = world.server.issuer.token()
    answer = say(client, f"n,a=bob,\x01auth=Bearer {token}\x01\x01".encode())
    assert answer.error_code == 58
    assert "authorization id (bob) that is different" in answer.error_message


def test_no_token_is_in_the_log(world: World) -> None:
    token = world.server.issuer.token()
    with open_client(world) as client:
        assert is_refused(client, token[:-4] + "AAAA")
    text = world.log
    assert "authentication_failed" in text
    for part in token.split("."):
        assert part[:20] not in text


def test_a_new_key_lets_in_at_once_and_a_flood_of_unknown_ones_asks_no_more(world: World) -> None:
    server, issuer = world.server, world.server.issuer
    before = server.asked.count("/keys")
    added = key_of(kid=f"added-{time.time()}")
    issuer.keys.append(added)
    with open_client(world) as client:
        assert log_in(client, issuer.token(key=added)).error_code == 0
        assert is_served(client)
    for number in range(30):
        with open_client(world) as client:
            assert log_in(client, issuer.token(key=key_of(kid=f"n{number}"))).auth_bytes
    assert server.asked.count("/keys") == before + 1


def test_a_session_that_is_over_ends_with_the_next_request(world: World) -> None:
    closed = metric_of(world.node, "horolog_connections_closed_total")
    with open_client(world) as client:
        assert log_in(client, world.server.issuer.token(seconds=2)).session_lifetime_ms <= 2000
        assert is_served(client)
        time.sleep(2.1)
        client.send(metadata.MetadataRequest(topics=[]), 1)
        assert client.receive_all() == b""
    assert metric_of(world.node, "horolog_connections_closed_total") == closed + 1
    assert "reason=session_expired" in world.log


def test_an_expired_session_may_still_begin_anew(world: World, client: WireClient) -> None:
    issuer = world.server.issuer
    for _ in range(3):
        assert log_in(client, issuer.token(seconds=2)).error_code == 0
        time.sleep(2.1)
    assert log_in(client, issuer.token()).session_lifetime_ms > 250_000
    assert is_served(client)


def test_oftener_than_each_second_is_refused_and_the_session_goes_on(
    world: World, client: WireClient
) -> None:
    issuer = world.server.issuer
    log_in(client, issuer.token())
    assert log_in(client, issuer.token()).error_code == 0
    again = shake(client)
    assert (again.error_code, again.mechanisms) == (34, [])
    assert is_served(client)


def test_a_session_keeps_its_user(world: World, client: WireClient) -> None:
    issuer = world.server.issuer
    log_in(client, issuer.token("alice"))
    answer = log_in(client, issuer.token("bob"))
    text = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert (answer.error_code, answer.error_message) == (58, text)
    assert client.receive_all() == b""


def test_what_was_asked_before_is_answered_in_its_turn(world: World, client: WireClient) -> None:
    """A fetch waits for records while the client proves its name again."""
    issuer = world.server.issuer
    log_in(client, issuer.token())
    waits = fetch.FetchRequest(max_wait_ms=20_000, min_bytes=1, topics=[])
    topic = fetch.FetchTopic(
        topic="by-nobody", partitions=[fetch.FetchPartition(partition=0, partition_max_bytes=99)]
    )
    client.call(metadata.MetadataRequest(topics=[MetadataRequestTopic(name="by-nobody")]), 1)
    waits.topics.append(topic)
    fetched = client.send(waits, 4)
    shaken = client.send(sasl_handshake.SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
    began = time.monotonic()
    client.receive(*fetched)
    assert client.receive(*shaken).error_code == 0
    assert time.monotonic() - began < 10
    assert say(client, first_message(issuer.token())).error_code == 0
    assert is_served(client)


def test_librdkafka_over_several_sessions_loses_no_record(tmp_path: Path) -> None:
    """The client authenticates again when nine tenths of a session are over."""
    with IssuerServer(Issuer()) as server:
        key = "listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms"
        with start(tmp_path, f"{server.url}/keys", **{key: "3000"}) as node:
            sent, received = _exchanged(node, server.issuer, seconds=9)
            again = metric_of(node, AGAIN)
            assert "session_expired" not in node.log.read_text()
    print(f"{len(sent)} records, {again:.0f} proofs again")
    assert received == sent
    assert again >= 4


def _exchanged(node: NodeProcess, issuer: Issuer, seconds: float) -> tuple[list[bytes], list[Any]]:
    client = {
        "bootstrap.servers": node.bootstrap, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _: (issuer.token(), time.time() + 300),
    }  # fmt: skip
    failed: list[Any] = []
    producer = Producer({**client, "linger.ms": 1, "retries": 0})
    consumer = Consumer({**client, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["sessions"])
    sent: list[bytes] = []
    received: list[Any] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or len(received) < len(sent):
        if time.monotonic() < ends:
            sent.append(b"%d" % len(sent))
            producer.produce("sessions", sent[-1], on_delivery=lambda *each: failed.append(each[0]))
        producer.poll(0)
        received += [each.value() for each in consumer.consume(100, 0.005) if not each.error()]
        assert time.monotonic() < ends + 30
    assert producer.flush(30) == 0
    assert not any(failed)
    consumer.close()
    return sent, received


AGAIN = r"horolog_sasl_authentications_total\{kind=\"again\".*\}"


# -- where the keys come from


def start(folder: Path, url: str, **more: str) -> NodeProcess:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        **settings_of(folder, url), **more,
    }  # fmt: skip
    del settings["horolog.sasl.oauthbearer.truststore.location"]
    return start_broker(folder / "data", settings)


def in_clear(node: NodeProcess) -> WireClient:
    host, _, port = node.bootstrap.rpartition(":")
    return WireClient(host, int(port))


def test_keys_from_a_file(tmp_path: Path) -> None:
    issuer, file = Issuer(), tmp_path / "my keys.json"
    url = f"file://{tmp_path}/my%20keys.json"
    with pytest.raises(NodeFailed, match=r"of listener SASL_PLAINTEXT: .*my keys"):
        start(tmp_path, url)
    file.write_text(json.dumps({"keys": []}))
    with pytest.raises(NodeFailed, match="no asymmetric key"):
        start(tmp_path, url)
    file.write_text(json.dumps(issuer.published))
    with start(tmp_path, url) as node:
        with in_clear(node) as client:
            assert log_in(client, issuer.token()).session_lifetime_ms > 0
        issuer.keys[0] = key_of(kid="two")
        file.write_text(json.dumps(issuer.published))
        os.kill(node.pid, signal.SIGHUP)
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            with in_clear(node) as client:
                if log_in(client, issuer.token()).session_lifetime_ms:
                    break
        else:
            raise AssertionError("the new key does not count")


def test_a_provider_that_hangs_holds_up_nobody_and_is_asked_again(tmp_path: Path) -> None:
    with IssuerServer(Issuer()) as server:
        freed = threading.Event()
        server.answers["/keys"] = lambda _: freed.wait(60) and None
        began = time.monotonic()
        with start(tmp_path, f"{server.url}/keys") as node:
            assert time.monotonic() - began < 15
            assert 'detail="no whole answer within 5 seconds"' in node.log.read_text()
            with in_clear(node) as client:
                assert is_refused(client, server.issuer.token())
            server.answers.clear()
            freed.set()
            deadline = time.monotonic() + 20
            while not metric_of(node, "horolog_sasl_signing_keys_age_seconds"):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            with in_clear(node) as client:
                assert log_in(client, server.issuer.token()).session_lifetime_ms > 0


def test_unsecured_tokens_on_loopback(tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "horolog.sasl.oauthbearer.unsecured": "true",
    }
    with start_broker(tmp_path / "data", settings) as node, in_clear(node) as client:
        token = raw_token({"alg": "none"}, {"sub": "alice", "exp": time.time() + 60})
        assert log_in(client, token).session_lifetime_ms > 50_000
        assert is_served(client)
