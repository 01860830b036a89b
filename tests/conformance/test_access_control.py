"""Access control with real clients: Kafka's tool and librdkafka set entries, others feel them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.conformance.conftest import create_topic
from tests.support.kafka.kafka_oracle import available, run_tool
from tests.support.worlds.broker_process import start_broker

EXERCISES = {
    "confluent-kafka": "ACLs: created, described, deleted, felt by a producer and a consumer",
    "Kafka's command-line tools": "kafka-acls",
}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
ME = "User:ANONYMOUS"
SOON_SECONDS = 5
"""The next answer to a consumer has a change; its client, on a busy machine, takes its time."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with an authorizer; what no entry is about is allowed."""
    data: Path = tmp_path_factory.mktemp("acls") / "data"
    with start_broker(data, SETTINGS) as node:
        yield node.bootstrap


def denial(topic: str, operation: AclOperation = AclOperation.READ) -> AclBinding:
    return AclBinding(
        ResourceType.TOPIC, topic, ResourcePatternType.LITERAL, ME, "*", operation,
        AclPermissionType.DENY,
    )  # fmt: skip


def about(topic: str) -> AclBindingFilter:
    return AclBindingFilter(
        ResourceType.TOPIC, topic, ResourcePatternType.ANY, None, None, AclOperation.ANY,
        AclPermissionType.ANY,
    )  # fmt: skip


def add(admin: AdminClient, *entries: AclBinding) -> None:
    for done in admin.create_acls(list(entries)).values():
        done.result(10)


def remove(admin: AdminClient, topic: str) -> list[AclBinding]:
    (done,) = admin.delete_acls([about(topic)]).values()
    return list(done.result(10))


def written(bootstrap: str, topic: str) -> KafkaError | None:
    """The error of one record."""
    errors: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 10_000})
    producer.produce(topic, b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(20) == 0
    return errors[0]


def test_entries_are_created_described_and_deleted(guarded: str) -> None:
    admin = AdminClient({"bootstrap.servers": guarded})
    topic = create_topic(admin, "listed")
    entries = [denial(topic), denial(topic, AclOperation.DELETE)]
    add(admin, *entries)
    assert set(admin.describe_acls(about(topic)).result(10)) == set(entries)
    assert set(remove(admin, topic)) == set(entries)
    assert admin.describe_acls(about(topic)).result(10) == []


def test_a_producer_is_refused_and_let_in_again(guarded: str) -> None:
    admin = AdminClient({"bootstrap.servers": guarded})
    topic = create_topic(admin, "written")
    assert written(guarded, topic) is None
    add(admin, denial(topic, AclOperation.WRITE))
    error = written(guarded, topic)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    remove(admin, topic)
    assert written(guarded, topic) is None


def test_a_consumer_that_reads_feels_a_change_soon(guarded: str) -> None:
    admin = AdminClient({"bootstrap.servers": guarded})
    topic = create_topic(admin, "followed")
    assert written(guarded, topic) is None
    consumer = Consumer({"bootstrap.servers": guarded, "group.id": "follower"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    message = consumer.poll(10)
    assert message is not None
    assert message.error() is None
    add(admin, denial(topic))
    started = time.monotonic()
    message = consumer.poll(10)
    assert message is not None
    assert message.error() is not None
    assert message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert time.monotonic() - started < SOON_SECONDS
    remove(admin, topic)
    assert written(guarded, topic) is None
    until = time.monotonic() + 10
    while (message := consumer.poll(1)) is None or message.error() is not None:
        assert time.monotonic() < until, "what is allowed again is read again"
    assert message.offset() == 1
    consumer.close()


def test_a_hidden_topic_looks_as_one_that_is_not_there(guarded: str) -> None:
    admin = AdminClient({"bootstrap.servers": guarded})
    topic = create_topic(admin, "hidden")
    add(admin, denial(topic, AclOperation.ALL), denial("no-such-topic", AclOperation.ALL))
    listed = admin.list_topics(timeout=10).topics
    assert topic not in listed
    errors = [written(guarded, name) for name in (topic, "no-such-topic")]
    assert [error and error.code() for error in errors] == [
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
    ]
    remove(admin, topic)
    assert topic in admin.list_topics(timeout=10).topics


@pytest.mark.kafka
@pytest.mark.skipif(not available(), reason="needs java and mvn")
def test_kafkas_tool_adds_lists_and_removes(guarded: str) -> None:
    def acls(*arguments: str) -> str:
        return run_tool(
            "org.apache.kafka.tools.AclCommand", "--bootstrap-server", guarded, *arguments
        )

    who = ("--allow-principal", "User:alice", "--topic", "tooled")
    added = acls("--add", "--producer", *who, "--allow-host", "10.0.0.7")
    assert "operation=WRITE" in added
    listed = acls("--list", "--topic", "tooled")
    assert "principal=User:alice, host=10.0.0.7, operation=WRITE, permissionType=ALLOW" in listed
    prefixed = ("--resource-pattern-type", "prefixed")
    acls("--add", "--operation", "Read", "--deny-principal", "User:bob", "--topic", "to", *prefixed)
    fitting = acls("--list", "--topic", "tooled", "--resource-pattern-type", "match")
    assert "patternType=PREFIXED" in fitting
    acls("--remove", "--force", "--topic", "tooled", "--resource-pattern-type", "match")
    assert "alice" not in acls("--list")
