"""Three brokers as one, for a client that knows nothing of it: real processes and engines."""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from pipeline.broker_client import BrokerClient
from pipeline.errors import NoConnection
from protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from protocol.errors import ErrorCode
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

PARTITIONS = 6
PATIENCE = 60.0
STILL = 4
"""Looks, one a second, that find the same leaders."""


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    """Three brokers that run."""
    with some_brokers(tmp_path, both, (1, 2, 3)) as brokers:
        yield brokers


def leaders(admin: AdminClient, topic: str = "t") -> dict[int, int]:
    found = admin.list_topics(topic, timeout=10).topics[topic].partitions
    return {number: each.leader for number, each in found.items()}


def made(fleet: FleetOfBrokers, topic: str = "t", **config: str) -> AdminClient:
    """A topic whose partitions have leaders, made through one of the brokers."""
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    new = NewTopic(topic, PARTITIONS, config=dict(config))
    admin.create_topics([new])[topic].result(30)
    until(lambda: set(leaders(admin, topic).values()) == set(fleet.running), "no leaders")
    settled(admin, topic)
    return admin


def settled(admin: AdminClient, topic: str = "t") -> None:
    """Returns when nodes that have just come have their share."""
    seen: list[dict[int, int]] = []
    while len(seen) < STILL or any(each != seen[-1] for each in seen[-STILL:]):
        assert len(seen) < PATIENCE, "shards go on moving"
        time.sleep(1)
        seen.append(leaders(admin, topic))


class Sender:
    """An idempotent producer, and the values that were acknowledged."""

    def __init__(self, fleet: FleetOfBrokers) -> None:
        self._producer = Producer({
            "bootstrap.servers": fleet.bootstrap, "enable.idempotence": True,
            "message.timeout.ms": 120_000, "linger.ms": 5,
            "topic.metadata.refresh.interval.ms": 1000, "reconnect.backoff.max.ms": 200,
        })  # fmt: skip
        self.sent = 0
        self.places: dict[tuple[int, int], int] = {}
        self.refused: list[KafkaError] = []

    def send(self, count: int) -> None:
        for _ in range(count):
            number, self.sent = self.sent, self.sent + 1
            self._producer.produce(
                "t", str(number).encode(), partition=number % PARTITIONS,
                on_delivery=lambda error, message, number=number: self._heard(
                    error, message, number
                ),
            )  # fmt: skip
            self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(120) == 0
        assert self.refused == []

    def _heard(self, error: KafkaError | None, message, number: int) -> None:  # type: ignore[no-untyped-def]
        if error is not None:
            self.refused.append(error)
        else:
            self.places[message.partition(), message.offset()] = number


def read_all(fleet: FleetOfBrokers, count: int) -> dict[tuple[int, int], int]:
    """Values by partition and offset."""
    consumer = Consumer(
        {"bootstrap.servers": fleet.bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition("t", each, 0) for each in range(PARTITIONS)])
    found: dict[tuple[int, int], int] = {}
    end = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < end:
        for message in consumer.consume(1000, 1.0):
            assert message.error() is None, message.error()
            found[message.partition(), message.offset()] = int(message.value())
    consumer.close()
    return found


def test_any_node_answers_for_all(fleet: FleetOfBrokers) -> None:
    """A topic made on one node is written and read through the others."""
    admin = made(fleet)
    assert {each.id for each in admin.describe_cluster().result(10).nodes} == {1, 2, 3}
    sender = Sender(fleet)
    sender.send(3000)
    sender.flush()
    assert read_all(fleet, 3000) == sender.places
    for node in fleet.running.values():
        alone = AdminClient({"bootstrap.servers": node.bootstrap})
        assert leaders(alone) == leaders(admin)


def test_settings_and_topics_count_on_every_node(fleet: FleetOfBrokers) -> None:
    admin = made(fleet, **{"max.message.bytes": "2000"})
    resource = ConfigResource(ResourceType.TOPIC, "t")

    def shown(key: str) -> set[str]:
        found = set()
        for node in fleet.running.values():
            alone = AdminClient({"bootstrap.servers": node.bootstrap})
            [future] = alone.describe_configs([resource]).values()
            found.add(future.result(10)[key].value)
        return found

    until(lambda: shown("max.message.bytes") == {"2000"}, "the setting is not everywhere")
    assert shown("horolog.durability") == {"fsync"}
    admin.delete_topics(["t"])["t"].result(30)
    for node in fleet.running.values():
        alone = AdminClient({"bootstrap.servers": node.bootstrap})
        until(lambda alone=alone: "t" not in alone.list_topics(timeout=10).topics, "it stays")


def test_a_node_that_is_killed_loses_nothing(fleet: FleetOfBrokers) -> None:
    """Its partitions go to the others within a lease; what was acknowledged is where it was."""
    admin = made(fleet)
    sender = Sender(fleet)
    sender.send(1000)
    sender.flush()
    sender.send(1000)
    fleet.kill(2)
    sender.send(1000)
    sender.flush()
    assert set(leaders(admin).values()) == {1, 3}
    fleet.start(2)
    until(lambda: 2 in leaders(admin).values(), "it got nothing back")
    sender.send(1000)
    sender.flush()
    found = read_all(fleet, sender.sent)
    assert found == sender.places
    assert Counter(found.values()) == Counter(range(sender.sent))


def test_a_node_that_stops_hands_its_partitions_over(fleet: FleetOfBrokers) -> None:
    admin = made(fleet)
    sender = Sender(fleet)
    for node_id in (1, 2, 3):
        sender.send(500)
        fleet.stop(node_id)
        until(lambda node_id=node_id: node_id not in leaders(admin).values(), "it leads on")
        sender.send(500)
        fleet.start(node_id)
        until(lambda node_id=node_id: node_id in leaders(admin).values(), "it got nothing")
    sender.flush()
    assert read_all(fleet, sender.sent) == sender.places


def test_a_node_answers_when_it_knows_the_fleet(fleet: FleetOfBrokers) -> None:
    """Its first answer of all has the topic and its settings, though its disk has nothing."""
    made(fleet, **{"retention.ms": "12345678"})
    host, _, port = fleet.running[1].bootstrap.partition(":")
    fleet.kill(1)
    fleet.lose_disk(1)
    answers: list[tuple[int, str | None]] = []
    asking = threading.Thread(target=lambda: answers.append(first_answer(f"{host}:{port}")))
    asking.start()
    fleet.start(1)
    asking.join(PATIENCE)
    assert answers == [(ErrorCode.NONE, "12345678")]


def first_answer(address: str) -> tuple[int, str | None]:
    """Metadata's code for the topic and its retention, asked as soon as anybody answers."""
    topic = MetadataRequestTopic(name="t")
    resource = DescribeConfigsResource(
        resource_type=2, resource_name="t", configuration_keys=["retention.ms"]
    )
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with BrokerClient(address) as client:
                found = client.call(
                    MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
                )
                told = client.call(DescribeConfigsRequest(resources=[resource])).results[0]
                values = [each.value for each in told.configs]
                return found.topics[0].error_code, values[0] if values else None
        except NoConnection:
            assert time.monotonic() < end


def test_the_catalog_goes_and_comes_back(fleet: FleetOfBrokers) -> None:
    """What is committed is read meanwhile; what is sent waits, and counts once."""
    made(fleet)
    sender = Sender(fleet)
    sender.send(1000)
    sender.flush()
    fleet.database.kill()
    sender.send(600)
    assert len(read_all(fleet, 1000)) == 1000
    fleet.database.start()
    sender.flush()
    assert read_all(fleet, sender.sent) == sender.places


def test_records_that_were_deleted_stay_so_with_another_leader(fleet: FleetOfBrokers) -> None:
    admin = made(fleet)
    sender = Sender(fleet)
    sender.send(1200)
    sender.flush()
    asked = [TopicPartition("t", each, 100) for each in range(PARTITIONS)]
    for future in admin.delete_records(asked).values():
        assert future.result(30).low_watermark == 100
    fleet.kill(1)
    until(lambda: set(leaders(admin).values()) == {2, 3}, "no take-over")
    consumer = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": "none"})

    def ends(partition: int) -> tuple[int, int] | None:
        try:
            return consumer.get_watermark_offsets(TopicPartition("t", partition), timeout=20)
        except KafkaException:  # leaders are moving, and this call asks but once
            return None

    for each in range(PARTITIONS):
        found: list[tuple[int, int] | None] = []
        until(lambda each=each, found=found: found.append(ends(each)) or found[-1], "no ends")
        assert found[-1] == (100, 200)
    consumer.close()


def test_changes_through_all_nodes_at_one_time_all_count(fleet: FleetOfBrokers) -> None:
    """Topics with settings, appended settings and quotas: whoever is slower is not refused."""
    made(fleet)
    admins = {
        each: AdminClient({"bootstrap.servers": fleet.running[each].bootstrap})
        for each in fleet.running
    }

    def change(node: int) -> list[str]:
        admin, names = admins[node], []
        for number in range(8):
            names.append(f"of-{node}-{number}")
            new = NewTopic(names[-1], 1, config={"retention.ms": str(1000 + number)})
            admin.create_topics([new])[names[-1]].result(30)
            entry = ConfigEntry(
                "retention.bytes", str(number), incremental_operation=AlterConfigOpType.SET
            )
            # through a node that did not make the topic
            other = admins[node % len(admins) + 1]
            asked = ConfigResource(ResourceType.TOPIC, names[-1], incremental_configs=[entry])
            for result in other.incremental_alter_configs([asked]).values():
                result.result(30)
        return names

    with ThreadPoolExecutor(len(admins)) as pool:
        names = [name for each in pool.map(change, admins) for name in each]
    numbers = [*range(8)] * len(admins)
    for admin in admins.values():
        until(lambda: settings(admin, names, "retention.ms") == [f"{1000 + n}" for n in numbers])  # noqa: B023
        until(lambda: settings(admin, names, "retention.bytes") == [str(n) for n in numbers])  # noqa: B023


def settings(admin: AdminClient, topics: Sequence[str], key: str) -> list[str]:
    resources = [ConfigResource(ResourceType.TOPIC, each) for each in topics]
    answers = admin.describe_configs(resources)
    found = {each.name: answers[each].result(10)[key].value for each in resources}
    return [found[each] for each in topics]
