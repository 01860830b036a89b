"""A bit that flipped on the disk while the broker was stopped: real clients are told, no other is
disturbed, and an operator hears of it.
"""

import asyncio
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from broker.daemon.app import Broker
from broker.runtime.event_log import journal
from protocol.records.scan import scan_batches
from storage.errors import DiskError
from storage.log.unverified_range import UnverifiedRange
from tests.support.worlds.app import running_broker

SETTINGS = {
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "horolog.scrub.max.bytes.per.second": "0",
}
COUNT = 30


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(journal, "write", found.append)
    return found


def produce(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": str(broker.bootstrap)})
    for number in range(COUNT):
        producer.produce(topic, b"%s %06d" % (topic.encode(), number))
        assert producer.flush(20) == 0  # a batch for each


def consumed(broker: Broker, topic: str, isolation: str, begin: int = 0) -> tuple[list[bytes], int]:
    """The values up to the end or the first error, and that error's code, 0 if none came."""
    settings = {
        "bootstrap.servers": str(broker.bootstrap),
        "group.id": f"reads-{topic}",
        "enable.auto.commit": False,
        "isolation.level": isolation,
        "check.crcs": True,
    }
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, 0, begin)])
        return _all_of(consumer, COUNT - begin)
    finally:
        consumer.close()


def _all_of(consumer: Consumer, count: int) -> tuple[list[bytes], int]:
    values: list[bytes] = []
    for message in _messages(consumer):
        error = message.error()
        if error is not None:
            return values, error.code()
        values.append(message.value())
        if len(values) == count:
            return values, 0
    pytest.fail(f"the consumer heard nothing more after {len(values)}")


def _messages(consumer: Consumer) -> Iterator[object]:
    while (message := consumer.poll(20)) is not None:
        yield message


def rot(path: Path, batch: int) -> None:
    """A bit in the last record of that batch is another."""
    data = bytearray(path.read_bytes())
    row = scan_batches(data).batches[batch]
    data[row[0] + row[5] - 2] ^= 1
    path.write_bytes(data)


async def metrics(broker: Broker) -> str:
    def scraped() -> str:
        with urllib.request.urlopen(f"http://{broker.http}/metrics") as answer:
            text: str = answer.read().decode()
        return text

    return await asyncio.to_thread(scraped)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
async def test_a_damaged_batch_is_refused_and_nothing_else(
    tmp_path: Path, lines: list[str], isolation: str
) -> None:
    data = tmp_path / "data"
    async with running_broker(data, SETTINGS) as broker:
        for topic in ("good", "rotten"):
            await asyncio.to_thread(produce, broker, topic)
    rot(data / "rotten-0" / "00000000000000000000.log", 12)
    async with running_broker(data, SETTINGS) as broker:
        values, error = await asyncio.to_thread(consumed, broker, "rotten", isolation)
        assert values == [b"rotten %06d" % number for number in range(12)]
        assert error == KafkaError.INVALID_MSG
        values, error = await asyncio.to_thread(consumed, broker, "good", isolation)
        assert (len(values), error) == (COUNT, 0)
        values, error = await asyncio.to_thread(consumed, broker, "rotten", isolation, 13)
        assert (len(values), error) == (COUNT - 13, 0), "who seeks behind it goes on"

        told = [line for line in lines if "event=damage_not_served" in line]
        assert len(told) == 1
        assert "log=rotten-0 offset=12" in told[0]
        text = await metrics(broker)
        assert 'horolog_topic_damaged_reads_total{topic="rotten"}' in text
        assert 'horolog_topic_damaged_reads_total{topic="good"}' not in text
        assert 'horolog_scrub_faulty_segments{partition="0",severity="damage",topic="rotten"}' in (
            text
        )
        await asyncio.to_thread(produce, broker, "rotten")  # it goes on taking records


async def test_a_disk_that_cannot_be_read_is_told_and_asked_again(
    tmp_path: Path, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is concluded from it: the next fetch looks again. A fault of our own is told."""
    data = tmp_path / "data"
    async with running_broker(data, SETTINGS) as broker:
        await asyncio.to_thread(produce, broker, "t")
    faults = [DiskError("t-0", "read", "Input/output error", 5), ValueError("of our own")]
    really_settle = UnverifiedRange.settle

    def settle(unverified: UnverifiedRange) -> None:
        if faults:
            raise faults.pop(0)
        really_settle(unverified)

    monkeypatch.setattr(UnverifiedRange, "settle", settle)
    async with running_broker(data, SETTINGS) as broker:
        values, error = await asyncio.to_thread(consumed, broker, "t", "read_uncommitted")
        assert (len(values), error) == (COUNT, 0), "a client tries again by itself"
        assert not faults
        told = [line for line in lines if "event=task_failed" in line]
        assert len(told) == 1
        assert "of our own" in told[0]
        refused = 'horolog_request_errors_total{api="Fetch",error="KAFKA_STORAGE_ERROR"} 2.0'
        assert refused in await metrics(broker)
