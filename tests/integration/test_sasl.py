"""A SASL listener of a real broker: who has the password gets in, and nobody else disturbs."""

import subprocess
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from protocol.apis import metadata, sasl_authenticate, sasl_handshake
from tests.support.clients.certificates import Authority
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import HOROLOG, own_environment, start_broker
from tests.support.worlds.node_process import NodeFailed

with warnings.catch_warnings():
    # It reads its schemas by a function of Python's that is on its way out, and warnings fail us.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import KafkaProducer

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": ",".join(MECHANISMS),
}
PASSWORD = "correct horse"


def add_user(data_dir: Path, name: str, password: str) -> str:
    command = [str(HOROLOG), "users", "add", name, "--offline", "--data-dir", str(data_dir)]
    done = subprocess.run(
        command, input=f"{password}\n", text=True, capture_output=True, check=False, timeout=60,
        env=own_environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    data_dir = tmp_path_factory.mktemp("sasl") / "data"
    add_user(data_dir, "alice", PASSWORD)
    assert (data_dir / "horolog-users.json").stat().st_mode & 0o777 == 0o600
    with start_broker(data_dir, SETTINGS) as node:
        yield node


def properties(
    bootstrap: str, mechanism: str, password: str = PASSWORD, user: str = "alice"
) -> dict[str, Any]:
    return {
        "bootstrap.servers": bootstrap, "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password,
        "log_level": 0,
    }  # fmt: skip


def heard(found: dict[str, Any]) -> list[str]:
    """The errors of a client that never gets in."""
    errors: list[str] = []
    client = Producer({**found, "error_cb": lambda error: errors.append(error.str())})
    ends = time.monotonic() + 20
    while time.monotonic() < ends and not any(
        "uthentication" in each or "mechanism" in each for each in errors
    ):
        client.poll(0.2)
    return errors


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_librdkafka_writes_and_reads(broker: Any, mechanism: str) -> None:
    topic = f"by-{mechanism}"
    producer = Producer(properties(broker.bootstrap, mechanism))
    producer.produce(topic, b"value")
    assert producer.flush(30) == 0
    group = {"group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer({**properties(broker.bootstrap, mechanism), **group})
    consumer.subscribe([topic])
    message = consumer.poll(30)
    assert message is not None
    assert message.value() == b"value"
    consumer.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", PASSWORD)])
def test_librdkafka_with_a_wrong_password(
    broker: Any, mechanism: str, user: str, password: str
) -> None:
    errors = heard(properties(broker.bootstrap, mechanism, password, user))
    expected = "Invalid username or password" if mechanism == "PLAIN" else "invalid credentials"
    assert any(expected in each for each in errors), errors


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_kafka_python(broker: Any, mechanism: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism, sasl_plain_username="alice", sasl_plain_password=PASSWORD,
    )  # fmt: skip
    assert producer.send("by-kafka-python", b"value").get(timeout=30).offset >= 0
    producer.close()


async def test_aiokafka(broker: Any) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=broker.bootstrap, security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512", sasl_plain_username="alice", sasl_plain_password=PASSWORD,
    )  # fmt: skip
    await producer.start()
    try:
        assert (await producer.send_and_wait("by-aiokafka", b"value")).offset >= 0
    finally:
        await producer.stop()


def test_a_removed_user_is_disconnected_and_stays_out(broker: Any) -> None:
    admin = AdminClient(properties(broker.bootstrap, "SCRAM-SHA-256"))
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    added = UserScramCredentialUpsertion("carol", info, b"carol's", b"salt of carol")
    admin.alter_user_scram_credentials([added])["carol"].result(30)
    described = admin.describe_user_scram_credentials(["carol"])["carol"].result(30)
    assert [each.iterations for each in described.scram_credential_infos] == [4096]
    client = open_client(broker)
    assert plain(client, "carol", "carol's").error_code == 0
    assert client.call(metadata.MetadataRequest(topics=[]), 1).brokers
    gone = UserScramCredentialDeletion("carol", ScramMechanism.SCRAM_SHA_512)
    admin.alter_user_scram_credentials([gone])["carol"].result(30)
    client.socket.settimeout(20)
    assert client.receive_all() == b""
    client = open_client(broker)
    assert plain(client, "carol", "carol's").error_code == 58
    assert client.socket.recv(1) == b""


_opened: list[WireClient] = []


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    yield
    while _opened:
        _opened.pop().close()


def open_client(broker: Any) -> WireClient:
    host, _, port = broker.bootstrap.rpartition(":")
    _opened.append(WireClient(host, int(port)))
    return _opened[-1]


def plain(client: WireClient, user: str, password: str) -> Any:
    handshake = client.call(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert handshake.error_code == 0
    token = f"\0{user}\0{password}".encode()
    return client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=token), 2)


def test_after_the_proof_sasl_is_over(broker: Any) -> None:
    client = open_client(broker)
    assert plain(client, "alice", PASSWORD).error_code == 0
    again = client.call(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 1)
    assert (again.error_code, again.mechanisms) == (34, [])
    token = client.call(sasl_authenticate.SaslAuthenticateRequest(auth_bytes=b"x"), 2)
    assert token.error_code == 34
    text = "SaslAuthenticate request received after successful authentication"
    assert token.error_message == text
    assert client.call(metadata.MetadataRequest(topics=[]), 1).brokers


@pytest.mark.parametrize("size", [9, 5000, 70_000])
def test_a_stranger_hears_nothing(broker: Any, size: int) -> None:
    client = open_client(broker)
    client.socket.sendall(size.to_bytes(4, "big") + bytes(size))
    assert client.receive_all() == b""


def test_raw_tokens_of_old_clients(broker: Any) -> None:
    client = open_client(broker)
    assert client.call(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    token = f"\0alice\0{PASSWORD}".encode()
    client.socket.sendall(len(token).to_bytes(4, "big") + token)
    assert client.socket.recv(100) == bytes(4)
    assert client.call(metadata.MetadataRequest(topics=[]), 1).brokers
    client = open_client(broker)
    assert client.call(sasl_handshake.SaslHandshakeRequest(mechanism="PLAIN"), 0).error_code == 0
    client.socket.sendall(b"\0\0\0\4\0a\0b")
    assert client.socket.recv(100) == b""


def test_a_broker_that_nobody_could_enter_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(NodeFailed, match="horolog users add NAME --offline"):
        start_broker(tmp_path / "data", SETTINGS)
    add_user(tmp_path / "data", "alice", PASSWORD)
    start_broker(tmp_path / "data", SETTINGS).stop()


def test_users_that_cannot_be_read_refuse_the_start(tmp_path: Path) -> None:
    add_user(tmp_path / "data", "alice", PASSWORD)
    file = tmp_path / "data" / "horolog-users.json"
    file.write_text(file.read_text().replace("4096", "4097", 1))
    with pytest.raises(NodeFailed, match="checksum"):
        start_broker(tmp_path / "data", SETTINGS)


def test_passwords_are_not_shown_to_the_network(tmp_path: Path) -> None:
    add_user(tmp_path / "data", "alice", PASSWORD)
    open_to_all = SETTINGS | {"listeners": "SASL_PLAINTEXT://0.0.0.0:0"}
    with pytest.raises(NodeFailed, match=r"horolog\.sasl\.plaintext\.allowed"):
        start_broker(tmp_path / "data", open_to_all)
    start_broker(tmp_path / "data", open_to_all | {"horolog.sasl.plaintext.allowed": "true"}).stop()


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A client's properties for a SASL_SSL listener, beside one in the clear."""
    folder = tmp_path_factory.mktemp("sasl-ssl")
    authority = Authority()
    authority.write(folder / "authority.pem")
    add_user(folder / "data", "alice", PASSWORD)
    settings = {
        "listeners": "CLIENTS://127.0.0.1:0,LOCAL://127.0.0.1:0",
        "listener.security.protocol.map": "CLIENTS:SASL_SSL,LOCAL:SASL_PLAINTEXT",
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "ssl.keystore.location": str(authority.server().write(folder / "server.pem")),
    }
    with start_broker(folder / "data", settings) as node:
        yield {
            **properties(node.bootstrap, "PLAIN"),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(folder / "authority.pem"),
        }


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_sasl_within_tls(encrypted: dict[str, Any], mechanism: str) -> None:
    client = encrypted | {"sasl.mechanism": mechanism}
    topic = f"within-tls-{mechanism}"
    producer = Producer(client)
    values = [b"%d " % number * 5000 for number in range(200)]
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    consumer = Consumer({**client, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received = [consumer.poll(30) for _ in values]
    assert [each.value() for each in received if each is not None] == values
    consumer.close()


def test_sasl_within_tls_with_a_wrong_password(encrypted: dict[str, Any]) -> None:
    errors = heard(encrypted | {"sasl.password": "wrong"})
    assert any("Invalid username or password" in each for each in errors), errors


def test_a_listener_has_mechanisms_of_its_own(encrypted: dict[str, Any]) -> None:
    errors = heard(encrypted | {"sasl.mechanism": "SCRAM-SHA-256"})
    assert any("PLAIN,SCRAM-SHA-512" in each for each in errors), errors
