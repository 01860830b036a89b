"""Producers that were written for Kafka wait while the disk is low, and deliver once it is not."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from kafka import KafkaProducer

from tests.support.worlds.watched_broker import WatchedBroker

WAITS_SECONDS = 1.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path / "data") as broker:
        broker.make_topic("t")
        yield broker


def reserve(broker: WatchedBroker, size_bytes: int) -> None:
    """What must stay free; far more than there is makes any disk low."""
    entry = ConfigEntry(
        "horolog.disk.reserve.bytes", str(size_bytes), incremental_operation=AlterConfigOpType.SET
    )
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.process.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(30)
    pause = threading.Event()
    for _ in range(200):
        if broker.metric("horolog_disk_low") == (1 if size_bytes else 0):
            return
        pause.wait(0.05)
    raise AssertionError("it was not noticed")


def by_confluent(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    errors: list[object] = []
    producer.produce("t", b"v", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0
    assert errors == [None]


def by_kafka_python(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    assert producer.send("t", b"v").get(60).offset == 0
    producer.close()


def by_aiokafka(bootstrap: str) -> None:
    async def produce() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        assert (await producer.send_and_wait("t", b"v")).offset == 0
        await producer.stop()

    asyncio.run(produce())


@pytest.mark.parametrize("produce", [by_confluent, by_kafka_python, by_aiokafka])
def test_a_producer_waits_and_delivers_once(
    broker: WatchedBroker, produce: Callable[[str], None]
) -> None:
    reserve(broker, 1 << 60)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            produce(broker.process.bootstrap)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    broker.wait_for("horolog_disk_refused_batches_total")
    thread.join(WAITS_SECONDS)
    assert thread.is_alive(), failed
    reserve(broker, 0)
    thread.join(60)
    assert not thread.is_alive()
    assert not failed
    consumer = Consumer({"bootstrap.servers": broker.process.bootstrap, "group.id": "g"})
    consumer.assign([TopicPartition("t", 0, 0)])
    assert [each.value() for each in consumer.consume(2, 2)] == [b"v"]
    consumer.close()
    broker.check_unharmed()
