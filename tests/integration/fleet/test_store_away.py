"""A store that is away for long: the database of the fleet does not fill with what waits for it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients.scraped import metric_of
from tests.support.fleet.brokers import FleetOfBrokers, some_brokers
from tests.support.fleet.postgres_server import PostgresServer
from tests.support.patience import until
from tests.support.tier.s3_server import S3Server
from tests.support.worlds.node_process import NodeProcess

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

MIB = 1024 * 1024
RECORDS = 3000
A_COMMIT = 4 * MIB
"""The most that one brings."""
SETTINGS = {"horolog.fleet.rows.max.bytes": str(MIB), "horolog.fleet.checkpoint.ms": "1000"}


@pytest.fixture
def fleet(both: tuple[PostgresServer, S3Server], tmp_path: Path) -> Iterator[FleetOfBrokers]:
    with some_brokers(tmp_path, both, (1,), SETTINGS) as brokers:
        admin = AdminClient({"bootstrap.servers": brokers.bootstrap})
        admin.create_topics([NewTopic("t", 1)])["t"].result(30)
        yield brokers


def row_bytes(node: NodeProcess) -> float:
    return metric_of(node, "horolog_fleet_row_bytes")


def refusal_of(fleet: FleetOfBrokers) -> int | None:
    """The code that a producer which tries once hears; None: its record was taken."""
    heard: list[KafkaError | None] = []
    producer = Producer({"bootstrap.servers": fleet.bootstrap, "retries": 0})
    producer.produce("other", b"x", on_delivery=lambda error, _: heard.append(error))
    producer.flush(30)
    return None if heard[0] is None else heard[0].code()


def values_of(fleet: FleetOfBrokers, count: int) -> list[bytes]:
    reader = Consumer({"bootstrap.servers": fleet.bootstrap, "group.id": "reader"})
    reader.assign([TopicPartition("t", 0, 0)])
    found: list[bytes] = []
    end = time.monotonic() + 60
    while len(found) < count:
        assert time.monotonic() < end, f"{len(found)} of {count} were read"
        for each in reader.consume(500, 0.5):
            if each.error() is not None:
                raise KafkaException(each.error())
            found.append(each.value() or b"")
    reader.close()
    return found


def test_producers_wait_for_the_store_once_the_database_has_as_much_as_it_may(
    fleet: FleetOfBrokers, both: tuple[PostgresServer, S3Server]
) -> None:
    node, (_, store) = fleet.running[1], both
    admin = AdminClient({"bootstrap.servers": fleet.bootstrap})
    admin.create_topics([NewTopic("other", 1)])["other"].result(30)
    sent = [b"%05d" % number + b"v" * 10_000 for number in range(RECORDS)]
    producer = Producer({
        "bootstrap.servers": fleet.bootstrap, "enable.idempotence": True,
        "message.timeout.ms": 200_000, "queue.buffering.max.kbytes": 100_000,
    })  # fmt: skip
    with store.frozen():
        for value in sent:
            producer.produce("t", value)
        until(lambda: row_bytes(node) >= MIB, "nothing waits in the database")
        until(lambda: refusal_of(fleet) == KafkaError.NOT_ENOUGH_REPLICAS, "records are taken")
        waiting = row_bytes(node)
        assert waiting < MIB + A_COMMIT
        producer.flush(3)
        assert row_bytes(node) == waiting
        assert len(producer) > RECORDS // 2
    assert producer.flush(120) == 0
    assert values_of(fleet, RECORDS) == sent
    until(lambda: row_bytes(node) < MIB / 4, "what waited does not go to the store")
    assert refusal_of(fleet) is None
