"""Rights go with the user of a connection: who logs in has its own, and those of nobody else."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.integration.test_sasl import PASSWORD, SETTINGS, add_user, properties
from tests.support.worlds.broker_process import start_broker

LIMITED = {
    **SETTINGS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}
USERS = ("root", "alice", "bob")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Denies what no entry allows; `root` may do everything, `alice` may write to `orders`."""
    data: Path = tmp_path_factory.mktemp("rights") / "data"
    for name in USERS:
        add_user(data, name, PASSWORD)
    with start_broker(data, LIMITED) as node:
        admin = AdminClient(client_of(node.bootstrap, "root"))
        admin.create_topics([NewTopic("orders", 1)])["orders"].result(10)
        entry = AclBinding(
            ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, "User:alice", "*",
            AclOperation.WRITE, AclPermissionType.ALLOW,
        )  # fmt: skip
        admin.create_acls([entry])[entry].result(10)
        yield node.bootstrap


def client_of(bootstrap: str, user: str) -> dict[str, Any]:
    return properties(bootstrap, "SCRAM-SHA-512", user=user)


def outcome(bootstrap: str, user: str) -> int | None:
    """The error code of one record, None for none."""
    errors: list[KafkaError | None] = []
    producer = Producer({**client_of(bootstrap, user), "message.timeout.ms": 10_000})
    producer.produce("orders", b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    return errors[0].code() if errors[0] is not None else None


@pytest.mark.parametrize(
    ("user", "code"),
    [("root", None), ("alice", None), ("bob", KafkaError.TOPIC_AUTHORIZATION_FAILED)],
)
def test_who_writes(bootstrap: str, user: str, code: int | None) -> None:
    assert outcome(bootstrap, user) == code


@pytest.mark.parametrize(("user", "topics"), [("root", 1), ("alice", 1), ("bob", 0)])
def test_who_sees_the_topic(bootstrap: str, user: str, topics: int) -> None:
    assert len(AdminClient(client_of(bootstrap, user)).list_topics(timeout=10).topics) == topics


@pytest.mark.parametrize("user", ["alice", "bob"])
def test_who_may_not_change_the_rights(bootstrap: str, user: str) -> None:
    entry = AclBinding(
        ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, f"User:{user}", "*",
        AclOperation.ALL, AclPermissionType.ALLOW,
    )  # fmt: skip
    admin = AdminClient(client_of(bootstrap, user))
    with pytest.raises(KafkaException) as refused:
        admin.create_acls([entry])[entry].result(10)
    assert refused.value.args[0].code() == KafkaError.CLUSTER_AUTHORIZATION_FAILED
