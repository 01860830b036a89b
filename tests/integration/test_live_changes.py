"""Under load of real clients a certificate is renewed and an ACL removed: nothing is lost.

Both have their effect within a second.
"""

import itertools
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.integration.test_certificate_renewal import shown
from tests.integration.test_sasl import PASSWORD, add_user
from tests.support.clients.certificates import Authority
from tests.support.worlds.broker_process import start_broker

AUTHORITY = Authority()
TOPIC = "orders"
SECOND = 1.0


class Writer(threading.Thread):
    """Writes one record after the other, as one user, until it is stopped."""

    def __init__(self, client: dict[str, Any]) -> None:
        super().__init__()
        self.acknowledged = 0
        self.errors: Counter[int] = Counter()
        self.first_error_at = 0.0
        self._producer = Producer({**client, "retries": 0, "linger.ms": 0})
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            try:
                self._producer.produce(TOPIC, b"x" * 100, on_delivery=self._told)
            except KafkaException as refused:  # the client knows already
                self._told(refused.args[0], None)
                break
            self._producer.poll(0.001)
        assert self._producer.flush(30) == 0

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(60)

    def _told(self, error: KafkaError | None, _: Message | None) -> None:
        if error is None:
            self.acknowledged += 1
        else:
            self.first_error_at = self.first_error_at or time.monotonic()
            self.errors[error.code()] += 1


def right(user: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, TOPIC, ResourcePatternType.LITERAL, f"User:{user}", "*", operation,
        AclPermissionType.ALLOW,
    )  # fmt: skip


def until(condition: Any, seconds: float = 20.0) -> float:
    """Seconds that it took."""
    began = time.monotonic()
    for _ in itertools.count():
        if condition():
            break
        assert time.monotonic() - began < seconds
        time.sleep(0.01)
    return time.monotonic() - began


def read(client: dict[str, Any], count: int) -> int:
    """Number of records of the topic, once there are so many."""
    consumer = Consumer({**client, "group.id": "readers", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    seen = 0
    while seen < count:
        messages = consumer.consume(min(1000, count - seen), 20)
        assert messages
        assert not any(each.error() for each in messages)
        seen += len(messages)
    seen += len(consumer.consume(1000, 0.3))
    consumer.close()
    return seen


def test_a_certificate_is_renewed_and_a_right_removed_under_load(tmp_path: Path) -> None:
    data, authority = tmp_path / "data", AUTHORITY.write(tmp_path / "authority.pem")
    for name in ("root", "alice", "bob"):
        add_user(data, name, PASSWORD)
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.location": str(AUTHORITY.server().write(tmp_path / "server.pem")),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root",
    }
    with start_broker(data, settings) as node:

        def client_of(user: str) -> dict[str, Any]:
            return {
                "bootstrap.servers": node.bootstrap, "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": user,
                "sasl.password": PASSWORD, "ssl.ca.location": str(authority),
            }  # fmt: skip

        admin = AdminClient(client_of("root"))
        admin.create_topics([NewTopic(TOPIC, 1)])[TOPIC].result(20)
        for entry in (right("alice", AclOperation.WRITE), right("bob", AclOperation.WRITE)):
            admin.create_acls([entry])[entry].result(20)
        alice, bob = Writer(client_of("alice")), Writer(client_of("bob"))
        alice.start()
        bob.start()
        until(lambda: min(alice.acknowledged, bob.acknowledged) > 100)

        renewed = AUTHORITY.server()
        location = str(renewed.write(tmp_path / "renewed.pem"))
        resource = ConfigResource(
            ConfigResource.Type.BROKER,
            "1",
            incremental_configs=[
                ConfigEntry(
                    "listener.name.sasl_ssl.ssl.keystore.location",
                    location,
                    incremental_operation=AlterConfigOpType.SET,
                )
            ],
        )
        before = shown(node.bootstrap, AUTHORITY.pem)
        began = time.monotonic()
        admin.incremental_alter_configs([resource])[resource].result(20)
        assert shown(node.bootstrap, AUTHORITY.pem) != before
        assert time.monotonic() - began < SECOND
        mark = min(alice.acknowledged, bob.acknowledged)
        until(lambda: min(alice.acknowledged, bob.acknowledged) > mark + 100)
        assert not alice.errors + bob.errors

        entry = right("bob", AclOperation.WRITE)
        gone = AclBindingFilter(
            entry.restype, entry.name, entry.resource_pattern_type, entry.principal, entry.host,
            entry.operation, entry.permission_type,
        )  # fmt: skip
        began = time.monotonic()
        assert admin.delete_acls([gone])[gone].result(20) == [entry]
        until(lambda: bool(bob.errors))
        assert bob.first_error_at - began < SECOND
        bob.stop()
        mark = alice.acknowledged
        until(lambda: alice.acknowledged > mark + 100)
        alice.stop()
        assert not alice.errors
        assert set(bob.errors) == {KafkaError.TOPIC_AUTHORIZATION_FAILED}
        written = alice.acknowledged + bob.acknowledged
        assert read(client_of("root"), written) == written
