"""Clients of many languages over TLS and SASL, unmodified, each as a user that has rights.

All of them write and read at the same time, every way in, a few at a time.
"""

import json
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.conformance.test_group_clients import QUICK
from tests.integration.test_sasl import PASSWORD, add_user
from tests.support.clients.certificates import Authority
from tests.support.clients.client_programs import CLIENTS, ClientProgram
from tests.support.clients.client_security import BEARER, ClientSecurity
from tests.support.clients.issuer import AUDIENCE, NAME, Issuer
from tests.support.ports import free_port
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "confluent-kafka, kafka-python, aiokafka, kafkajs, franz-go, sarama, kafka-go, kafka-clients": (
        "TLS alone, with SCRAM and OAUTHBEARER: writes, reads in a group, as a user with rights"
    ),
}
RECORDS, PARTITIONS = 100, 2
PATIENCE_SECONDS = 30
AT_A_TIME = 4
LACKING = {("kafka-go", "SASL_SSL-OAUTHBEARER")}
"""Mechanisms that a client library does not have."""
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OPEN = "secure-"
WAYS = ("SSL", "SASL_SSL-SCRAM-SHA-512", "SASL_SSL-OAUTHBEARER")


class Ways:
    """A broker, and the ways to reach it."""

    def __init__(self, folder: Path) -> None:
        """The broker is not started."""
        authority = Authority()
        file, keys = authority.write(folder / "authority.pem"), folder / "keys.json"
        issuer = Issuer()
        keys.write_text(json.dumps(issuer.published))
        self.ports = {"SSL": free_port(), "SASL_SSL": free_port()}
        self.settings = QUICK | {
            "listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in self.ports.items()),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512,OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
            "sasl.oauthbearer.expected.issuer": NAME,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "ssl.keystore.location": str(authority.server().write(folder / "server.pem")),
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:admin",
        }
        scram = ("SASL_SSL", file, "SCRAM-SHA-512")
        self.all = (
            ClientSecurity("SSL", file),
            ClientSecurity(*scram, "alice", PASSWORD),
            ClientSecurity("SASL_SSL", file, BEARER, token=issuer.token("alice")),
        )
        self.admin = ClientSecurity(*scram, "admin", PASSWORD)

    def bootstrap(self, security: ClientSecurity) -> str:
        return f"127.0.0.1:{self.ports[security.protocol]}"

    def prepare(self) -> None:
        """Topics, and the rights of the user and of nobody."""
        admin = AdminClient(
            {
                "bootstrap.servers": self.bootstrap(self.admin),
                "security.protocol": "SASL_SSL",
                "ssl.ca.location": str(self.admin.authority),
                "sasl.mechanism": self.admin.mechanism,
                "sasl.username": "admin",
                "sasl.password": PASSWORD,
            }
        )
        rights = [
            AclBinding(
                kind, OPEN, ResourcePatternType.PREFIXED, f"User:{user}", "*",
                AclOperation.ALL, AclPermissionType.ALLOW,
            )
            for kind in (ResourceType.TOPIC, ResourceType.GROUP)
            for user in ("alice", "ANONYMOUS")
        ]  # fmt: skip
        topics = [
            NewTopic(topic_of(client, way), PARTITIONS, 1) for client in CLIENTS for way in self.all
        ]
        made = [*admin.create_acls(rights).values(), *admin.create_topics(topics).values()]
        for each in made:
            each.result(30)


def topic_of(client: ClientProgram, way: ClientSecurity) -> str:
    return f"{OPEN}{client.name}-{way.name}"


def read_by(client: ClientProgram, way: ClientSecurity, bootstrap: str) -> set[tuple[int, int]]:
    """Partition and offset of what the client reads of what it wrote before."""
    topic = topic_of(client, way)
    writer = client.produce(bootstrap, topic, RECORDS, way)
    try:
        assert writer.wait() == 0, f"{client.name} did not write by {way.name}"
    finally:
        writer.close()
    reader = client.subscribe(bootstrap, topic, topic, way)
    try:
        ends = time.monotonic() + PATIENCE_SECONDS
        while len(reader.read()) < RECORDS and time.monotonic() < ends:
            time.sleep(0.1)
        return set(reader.read())
    finally:
        reader.close()


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp("secure")
    ways = Ways(folder)
    for user in ("admin", "alice"):
        add_user(folder / "data", user, PASSWORD)
    with start_broker(folder / "data", ways.settings):
        ways.prepare()
        yield ways


@pytest.fixture(scope="module")
def stories(ways: Ways) -> Iterator[dict[tuple[str, str], Future[set[tuple[int, int]]]]]:
    with ThreadPoolExecutor(AT_A_TIME) as threads:
        yield {
            (client.name, way.name): threads.submit(read_by, client, way, ways.bootstrap(way))
            for client in CLIENTS
            for way in ways.all
            if not client.absent() and (client.name, way.name) not in LACKING
        }


@pytest.mark.parametrize(
    ("client", "way"),
    [
        pytest.param(client, way, id=f"{client.name}-{way}")
        for client in CLIENTS
        for way in WAYS
        if (client.name, way) not in LACKING
    ],
)
def test_what_a_client_writes_it_reads(
    client: ClientProgram,
    way: str,
    stories: dict[tuple[str, str], Future[set[tuple[int, int]]]],
) -> None:
    if absent := client.absent():
        pytest.skip(absent)
    read = stories[client.name, way].result(4 * PATIENCE_SECONDS)
    by_partition = [
        sorted(offset for at, offset in read if at == partition) for partition in range(PARTITIONS)
    ]
    assert [each == list(range(len(each))) for each in by_partition] == [True] * PARTITIONS
    assert len(read) == RECORDS
