"""Idempotent clients whose bad records are set aside: no gap for producers, holes for consumers.

Batches lose records in the middle, at their ends, or all of them; three independent clients write
and read across the holes, and find what was set aside with its story in the quarantine.
"""

import time
import warnings

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.conformance.conftest import ELSEWHERE, MakeTopic, start_node
from tests.support.worlds.broker_process import start_broker

pytestmark = pytest.mark.skipif(
    bool(ELSEWHERE) or start_node is not start_broker, reason="only our broker sets records aside"
)

NOW = time.time_ns() // 1_000_000
GOOD, SECONDS, MICROSECONDS = NOW, NOW // 1000, NOW * 1000
# Nine batches; in each a letter is a record: g good, s seconds, m microseconds.
BATCHES = ["ggg", "sgm", "mmm", "gsg", "sss", "mss", "ggs", "mgg", "m"]
TIMES = {"g": GOOD, "s": SECONDS, "m": MICROSECONDS}
RECORDS = [(at, letter) for at, letter in enumerate("".join(BATCHES))]
KEPT = [at for at, letter in RECORDS if letter == "g"]
ASIDE = [at for at, letter in RECORDS if letter != "g"]


@pytest.fixture
def topic(make_topic: MakeTopic) -> str:
    return make_topic(
        horolog_timestamp_policy="quarantine",
        message_timestamp_before_max_ms="86400000",
    )


def write_with_librdkafka(bootstrap: str, topic: str, codec: str) -> list[int]:
    """Batch by batch, each one flushed."""
    offsets: list[int] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": 1000,
        }
    )
    number = 0
    for batch in BATCHES:
        for letter in batch:
            producer.produce(
                topic, str(number), letter, 0, timestamp=TIMES[letter],
                on_delivery=lambda error, message: offsets.append(
                    -1 if error else message.offset()
                ),
            )  # fmt: skip
            number += 1
        assert producer.flush(30) == 0
    return offsets


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_librdkafka_writes_and_reads_across_holes(bootstrap: str, topic: str, codec: str) -> None:
    assert write_with_librdkafka(bootstrap, topic, codec) == [at for at, _ in RECORDS]
    assert read_with_librdkafka(bootstrap, topic, len(KEPT)) == KEPT
    for start in (1, 3, 6, 10, 20):
        left = [at for at in KEPT if at >= start]
        assert read_with_librdkafka(bootstrap, topic, len(left), start) == left
    aside = f"{topic}.quarantine"
    assert len(read_with_librdkafka(bootstrap, aside, len(ASIDE))) == len(ASIDE)


def read_with_librdkafka(bootstrap: str, topic: str, count: int, start: int = 0) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, start)])
    offsets: list[int] = []
    deadline = time.monotonic() + 30
    while len(offsets) < count and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            offsets.append(message.offset())
    consumer.close()
    return offsets


async def test_aiokafka_writes_and_reads_across_holes(bootstrap: str, topic: str) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=1000
    ) as producer:
        offsets, number = [], 0
        for letters in BATCHES:
            batch = producer.create_batch()
            for letter in letters:
                batch.append(
                    key=letter.encode(), value=str(number).encode(), timestamp=TIMES[letter]
                )
                number += 1
            batch.close()
            done = await (await producer.send_batch(batch, topic, partition=0))
            offsets.append(done.offset)
    assert offsets == [0, 3, 6, 9, 12, 15, 18, 21, 24]
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, check_crcs=True) as consumer:
        partition = AioPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning()
        got: list[int] = []
        while len(got) < len(KEPT):
            polled = await consumer.getmany(timeout_ms=10_000)
            assert polled, f"silence after {got}"
            got += [record.offset for record in polled[partition]]
        assert got == KEPT
        quarantine = AioPartition(f"{topic}.quarantine", 0)
        consumer.assign([quarantine])
        await consumer.seek_to_beginning()
        aside = []
        while len(aside) < len(ASIDE):
            polled = await consumer.getmany(timeout_ms=10_000)
            assert polled, f"silence after {aside}"
            aside += polled[quarantine]
    stories = [dict(record.headers) for record in aside]
    assert [int(story["horolog.origin.offset"]) for story in stories] == ASIDE
    assert [int(record.value) for record in aside] == ASIDE
    assert {story["horolog.origin.topic"] for story in stories} == {topic.encode()}
    assert {story["horolog.reason"] for story in stories} == {
        b"past: seconds",
        b"future: microseconds",
    }


def test_kafka_python_reads_across_holes(bootstrap: str, topic: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kafka import KafkaConsumer
        from kafka import TopicPartition as PyPartition

        write_with_librdkafka(bootstrap, topic, "gzip")
        consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=20_000)
        consumer.assign([PyPartition(topic, 0)])
        consumer.seek_to_beginning()
        got = []
        for record in consumer:
            got.append(record.offset)
            if len(got) == len(KEPT):
                break
        consumer.close()
    assert got == KEPT
