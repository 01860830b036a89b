"""The profile `secure`: one command makes certificates and users, and starts a broker with both."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients.containers import ROOT, Container, Stack, compose_command, until

BLOCK = re.compile(
    r"<!-- executed by tests/integration/containers/test_container_secure.py -->\n```sh\n(.*?)```",
    re.DOTALL,
)


@pytest.fixture(scope="module")
def secure() -> Iterator[tuple[Stack, Path]]:
    """The project, and the directory that its commands were typed in."""
    if not compose_command():
        pytest.skip("neither `docker compose` nor `docker-compose` is there")
    stack = Stack()
    try:
        yield stack, ROOT
    finally:
        print(stack.compose("--profile", "secure", "logs", "--no-color", check=False)[-8000:])
        stack.compose("--profile", "secure", "down", "--volumes", "--timeout", "1", check=False)


@pytest.fixture(scope="module")
def clients(
    secure: tuple[Stack, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, str]]:
    """Settings of each user, by the commands of the page."""
    stack, _ = secure
    (block,) = BLOCK.findall((ROOT / "docs/tasks/secure-a-broker.md").read_text())
    up, copy = block.splitlines()
    assert up == "docker compose --profile secure up --detach secure"
    stack.compose("--profile", "secure", "up", "--detach", "--no-build", "secure")
    broker = broker_of(stack)
    until("a healthy broker", lambda: broker.health == "healthy")
    place = tmp_path_factory.mktemp("clients")
    assert copy == "docker compose --profile secure cp secure:/data/clients ."
    command = ["docker", "cp", f"{broker.name}:/data/clients", str(place)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    found = {}
    for user in ("admin", "app"):
        text = (place / "clients" / f"{user}.properties").read_text()
        words = dict(re.findall(r'(username|password)="([^"]*)"', text))
        pem = re.search(r"ssl\.truststore\.certificates=(.*)", text)
        assert pem is not None
        assert pem[1].startswith("-----BEGIN CERTIFICATE----- ")
        found[user] = {
            "bootstrap.servers": f"localhost:{stack.secure_port}",
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(place / "clients" / "authority.crt"),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": words["username"],
            "sasl.password": words["password"],
        }
    return found


def broker_of(stack: Stack) -> Container:
    return Container(stack.compose("--profile", "secure", "ps", "-q", "secure").split()[-1])


def outcome(settings: dict[str, str], topic: str) -> int | None:
    errors: list[KafkaError | None] = []
    producer = Producer({**settings, "message.timeout.ms": 20_000})
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    return errors[0].code() if errors[0] is not None else None


def test_the_administrator_may_everything_and_the_application_nothing_yet(
    clients: dict[str, dict[str, str]],
) -> None:
    admin = AdminClient(clients["admin"])
    admin.create_topics([NewTopic("orders", 1, 1)])["orders"].result(30)
    assert outcome(clients["admin"], "orders") is None
    assert outcome(clients["app"], "orders") == KafkaError.TOPIC_AUTHORIZATION_FAILED


def test_wrong_passwords_do_not_get_in(clients: dict[str, dict[str, str]]) -> None:
    wrong = {**clients["admin"], "sasl.password": "wrong"}
    with pytest.raises(KafkaException):
        AdminClient(wrong).list_topics(timeout=5)


def test_secrets_are_their_owners_and_a_second_start_keeps_them(
    secure: tuple[Stack, Path], clients: dict[str, dict[str, str]]
) -> None:
    stack, _ = secure
    broker = broker_of(stack)
    listed = broker.execute("sh", "-c", "stat -c '%a %n' /data/secrets/* /data/audit/*")
    assert {line.split()[0] for line in listed.splitlines()} == {"600"}
    assert clients["admin"]["sasl.password"] not in broker.log
    stack.compose("--profile", "secure", "stop")
    stack.compose("--profile", "secure", "up", "--detach", "--no-build", "secure")
    again = broker_of(stack)
    until("a healthy broker", lambda: again.health == "healthy")
    assert AdminClient(clients["admin"]).list_topics(timeout=20).brokers
