"""A real client under a quota: librdkafka hears that it is held back, and nothing is lost by it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, ThrottleEvent, TopicPartition
from confluent_kafka.admin import AdminClient

from protocol.apis import alter_client_quotas as quotas
from tests.conformance.conftest import create_topic
from tests.support.clients.wire import WireClient
from tests.support.worlds.broker_process import start_broker

EXERCISES = {"confluent-kafka": "quotas: writes and reads over its limit are held back"}
ALLOWED = 400_000  # bytes a second
COUNT, SIZE = 100, 10_000
SHORT_WINDOWS = {"quota.window.num": "2"}


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker on which clients named "busy" may write and read so much."""
    data: Path = tmp_path_factory.mktemp("quotas") / "data"
    with start_broker(data, SHORT_WINDOWS) as node:
        host, port = node.bootstrap.split(":")
        entity = quotas.EntityData(entity_type="client-id", entity_name="busy")
        ops = [
            quotas.OpData(key=key, value=ALLOWED)
            for key in ("producer_byte_rate", "consumer_byte_rate")
        ]
        entry = quotas.EntryData(entity=[entity], ops=ops)
        with WireClient(host, int(port)) as admin:
            admin.call(quotas.AlterClientQuotasRequest(entries=[entry]), 1)
        yield node.bootstrap


def held_back_ms(bootstrap: str, topic: str, name: str) -> tuple[int, int]:
    """How long a client of this name was told to rest as it wrote, and as it read, all records."""
    rests: list[int] = []

    def resting(told: ThrottleEvent) -> None:
        rests.append(round(1000 * told.throttle_time))

    settings = {"bootstrap.servers": bootstrap, "client.id": name, "throttle_cb": resting}
    producer = Producer({**settings, "batch.size": 100_000, "linger.ms": 5})
    for _ in range(COUNT):
        producer.produce(topic, b"v" * SIZE, partition=0)
    assert producer.flush(60) == 0
    written, rests = sum(rests), []
    consumer = Consumer({**settings, "group.id": name, "fetch.message.max.bytes": 100_000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    for number in range(COUNT):
        message = consumer.poll(60)
        assert message is not None
        assert message.offset() == number
    consumer.poll(0)
    consumer.close()
    return written, sum(rests)


def test_a_client_over_its_limit_is_told_and_loses_nothing(limited: str) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": limited}), "busy")
    written, read = held_back_ms(limited, topic, "busy")
    assert written > 0
    assert read > 0


def test_a_client_without_a_limit_is_never_told_to_rest(limited: str) -> None:
    topic = create_topic(AdminClient({"bootstrap.servers": limited}), "free")
    assert held_back_ms(limited, topic, "free") == (0, 0)
