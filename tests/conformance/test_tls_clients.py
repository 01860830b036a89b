"""Clients over TLS: what they produce comes back identical, and a wrong one disturbs nobody."""

import shutil
import subprocess
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients.certificates import Authority
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

EXERCISES = {
    "confluent-kafka": "TLS: records in and out, and a client that does not trust the broker",
    "kcat": "TLS: a file in and out",
}
RECORDS = 20_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[NodeProcess]:
    authority = Authority()
    authority.write(directory / "authority.pem")
    Authority("another").write(directory / "another.pem")
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": str(authority.server().write(directory / "server.pem")),
    }
    with start_broker(directory / "data", settings, log=directory / "log") as node:
        yield node


@pytest.fixture
def client(node: NodeProcess, directory: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "ssl",
        "ssl.ca.location": str(directory / "authority.pem"),
    }


@pytest.fixture
def topic(client: dict[str, str]) -> str:
    name = f"tls-{uuid.uuid4().hex[:8]}"
    admin = AdminClient(client)
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)
    return name


def test_records_of_librdkafka_come_back_identical(client: dict[str, str], topic: str) -> None:
    failed: list[KafkaError] = []
    producer = Producer({**client, "linger.ms": 5, "compression.type": "lz4"})
    values = [f"{n} ".encode() * (1 + n % 200) for n in range(RECORDS)]
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and failed.append(error))
        producer.poll(0)
    assert producer.flush(60) == 0
    assert not failed
    consumer = Consumer({**client, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received: list[bytes] = []
    while len(received) < RECORDS:
        messages = consumer.consume(5000, timeout=30)
        assert messages
        assert not [each.error() for each in messages if each.error()]
        received += [each.value() or b"" for each in messages]
    consumer.commit(asynchronous=False)
    consumer.close()
    assert received == values


@pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed")
def test_a_file_of_kcat_comes_back_identical(
    client: dict[str, str], topic: str, tmp_path: Path
) -> None:
    def kcat(*arguments: str) -> str:
        options = [part for name, value in client.items() for part in ("-X", f"{name}={value}")]
        done = subprocess.run(
            ["kcat", *options, "-q", "-t", topic, *arguments],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=90,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    source = tmp_path / "lines"
    source.write_text("".join(f"{n} {'x' * (n % 500)}\n" for n in range(RECORDS)))
    kcat("-P", "-p", "0", "-l", str(source))
    assert kcat("-C", "-p", "0", "-o", "beginning", "-e") == source.read_text()


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"security.protocol": "plaintext"}, "reason=no_tls"),
        ({"ssl.ca.location": "another.pem"}, "reason=refused_by_client"),
    ],
)
def test_a_client_that_is_set_up_wrongly_is_named_and_disturbs_nobody(
    client: dict[str, str], topic: str, directory: Path, wrong: dict[str, str], reason: str
) -> None:
    settings = {**client, **wrong}
    settings["ssl.ca.location"] = str(directory / settings["ssl.ca.location"])
    with pytest.raises(Exception, match=r"transport failure|timed out|broker"):
        AdminClient({**settings, "log_level": 0}).list_topics(timeout=3)
    assert reason in (directory / "log").read_text()
    assert topic in AdminClient(client).list_topics(timeout=20).topics


def test_the_end_of_the_certificate_and_handshakes_are_metrics(
    node: NodeProcess, topic: str
) -> None:
    with urllib.request.urlopen(f"http://{node.facts['http']}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    assert 'horolog_tls_certificate_not_after_seconds{listener="SSL"}' in text
    assert 'horolog_tls_handshakes_total{listener="SSL"}' in text
