"""aiokafka and kafka-python in transactions with offsets: what was committed is read, alone."""

import warnings
from collections.abc import Iterable

import kafka
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from kafka.structs import OffsetAndMetadata

from tests.conformance.conftest import MakeTopic

EXERCISES = {"aiokafka, kafka-python": "transactions with offsets"}
TRANSACTIONS, RECORDS = 4, 5
COMMITTED = [f"{turn}-{number}" for turn in (0, 2) for number in range(RECORDS)]


def judged(bootstrap: str, topic: str, group: str) -> tuple[list[str], int]:
    """What a reader of committed records finds, and how far the group is."""
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    place = Place(topic, 0, 0)
    reader.assign([place])
    found: list[str] = []
    while (message := reader.poll(20)) is not None and not message.error():
        found.append((message.value() or b"").decode())
    (committed,) = reader.committed([place], 20)
    reader.close()
    return found, committed.offset


def values(turn: int) -> Iterable[bytes]:
    return (f"{turn}-{number}".encode() for number in range(RECORDS))


async def test_aiokafka(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    await producer.start()
    for turn in range(TRANSACTIONS):
        await producer.begin_transaction()
        for value in values(turn):
            await producer.send(topic, value, partition=0)
        offsets = {TopicPartition(topic, 0): turn + 1}
        await producer.send_offsets_to_transaction(offsets, f"{topic}-g")
        if turn % 2:
            await producer.abort_transaction()
        else:
            await producer.commit_transaction()
    await producer.stop()
    assert judged(bootstrap, topic, f"{topic}-g") == (COMMITTED, TRANSACTIONS - 1)


@pytest.mark.filterwarnings("ignore")
def test_kafka_python(bootstrap: str, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
        producer.init_transactions()
        for turn in range(TRANSACTIONS):
            producer.begin_transaction()
            for value in values(turn):
                producer.send(topic, value, partition=0)
            offsets = {kafka.TopicPartition(topic, 0): OffsetAndMetadata(turn + 1, "", -1)}
            producer.send_offsets_to_transaction(offsets, f"{topic}-g")
            if turn % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
        producer.close()
    assert judged(bootstrap, topic, f"{topic}-g") == (COMMITTED, TRANSACTIONS - 1)
