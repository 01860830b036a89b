"""Rounds of kill -9 while compacted partitions are written, read and cleaned: nothing is lost.

HOROLOG_KILL_CLEANING_ROUNDS (3) makes it as long as one likes. Each partition has one producer,
which notes every acknowledgement outside of the broker; keys are few, so that each round is cleaned
several times over.
"""

import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.conformance.conftest import create_topic
from tests.conformance.test_confluent_client import consumer_of
from tests.conformance.test_kill import free_address
from tests.support.worlds.broker_process import start_broker

ROUNDS = int(os.environ.get("HOROLOG_KILL_CLEANING_ROUNDS", "3"))
PARTITIONS, KEYS, BURST = 2, 500, 200
LOAD_SECONDS = 1.5
SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.threads": "2",
    "log.cleaner.io.max.bytes.per.second": "8000000",  # so that a run lasts long enough to be met
    "horolog.crash.loop.starts": "0",
}
OFF = {"log.cleaner.enable": "false", "horolog.crash.loop.starts": "0"}
pytestmark = pytest.mark.timeout(120 + 30 * ROUNDS)


class Ledger:
    """What one producer was told is stored: by key the last sequence, and its offset."""

    def __init__(self, address: str, partition: int) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.sent: dict[bytes, int] = {}
        self.failed: list[str] = []
        self._partition = partition
        self._stopping = threading.Event()
        self._producer = Producer({
            "bootstrap.servers": address, "acks": "all", "enable.idempotence": partition == 0,
            "message.timeout.ms": 90_000, "reconnect.backoff.max.ms": 200,
            "retry.backoff.max.ms": 200, "linger.ms": 1, "log_level": 0,
            "compression.type": ("lz4", "none")[partition],
        })  # fmt: skip

    def run(self) -> None:
        sequence = 0
        while not self._stopping.is_set():
            for _ in range(BURST):
                sequence += 1
                key = b"%d" % (sequence * 7919 % KEYS)
                self.sent[key] = sequence
                value = b"%d:" % sequence + bytes(100)
                self._send(key, value)
            self._producer.poll(0.02)
        if self._producer.flush(90):
            self.failed.append("some were never answered")

    def _send(self, key: bytes, value: bytes) -> None:
        while True:
            try:
                return self._producer.produce(
                    "t", value, key, partition=self._partition, on_delivery=self._told
                )
            except BufferError:  # the broker is away for long
                self._producer.poll(0.1)

    def stop(self) -> None:
        self._stopping.set()

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        sequence = int((message.value() or b"").partition(b":")[0])
        self.acknowledged[message.key() or b""] = sequence, message.offset() or 0


@contextmanager
def producing(address: str) -> Iterator[list[Ledger]]:
    ledgers = [Ledger(address, number) for number in range(PARTITIONS)]
    threads = [threading.Thread(target=ledger.run) for ledger in ledgers]
    for thread in threads:
        thread.start()
    try:
        yield ledgers
    finally:
        for ledger, thread in zip(ledgers, threads, strict=True):
            ledger.stop()
            thread.join()


def latest(address: str, partition: int) -> dict[bytes, tuple[int, int]]:
    """By key the last sequence that a plain consumer reads, and its offset."""
    found: dict[bytes, tuple[int, int]] = {}
    with closing(consumer_of(address)) as consumer:
        _, end = consumer.get_watermark_offsets(TopicPartition("t", partition), timeout=30)
        consumer.assign([TopicPartition("t", partition, 0)])
        offset = -1
        while offset < end - 1:
            for message in read(consumer):
                assert message.offset() > offset
                offset = message.offset()
                sequence = int(message.value().partition(b":")[0])
                found[message.key()] = sequence, offset
    return found


def read(consumer: Consumer) -> list[Message]:
    """What comes next.

    librdkafka asks for twice as much after each answer without a record that it can use, never for
    less again, and reports a gigabyte as an error (its issue 3752): what is compacted while it
    reads leaves such answers behind. It goes on after that error.
    """
    batch = consumer.consume(1, timeout=30)
    assert batch, "silence"
    errors = {each.error().code() for each in batch if each.error() is not None}
    assert errors <= {KafkaError.MSG_SIZE_TOO_LARGE}
    return [each for each in batch if each.error() is None]


def temporary(data: Path) -> list[Path]:
    """Files that exist only while a run is under way."""
    return [path for path in data.glob("t-*/*") if path.suffix in {".cleaned", ".swap"}]


def meet_a_run(data: Path) -> None:
    """Returns somewhere in the middle of one."""
    until = time.monotonic() + 60
    while not temporary(data):
        assert time.monotonic() < until, "nothing is cleaned"
        time.sleep(0.001)
    time.sleep(random.random() * 0.2)


def test_nothing_acknowledged_is_lost_while_logs_are_cleaned(tmp_path: Path) -> None:
    address, data, log = free_address(), tmp_path / "data", tmp_path / "broker.log"
    node = start_broker(data, SETTINGS, listen=address, log=log)
    try:
        create_topic(
            AdminClient({"bootstrap.servers": address}), "t", PARTITIONS, cleanup_policy="compact",
            segment_bytes="1048576", min_cleanable_dirty_ratio="0.01", file_delete_delay_ms="100",
        )  # fmt: skip
        with producing(address) as ledgers:
            for _ in range(ROUNDS):
                time.sleep(LOAD_SECONDS)
                meet_a_run(data)
                node.kill()
                node = start_broker(data, OFF, listen=address, log=log)
                assert temporary(data) == [], "files of a run that was killed stay"
                node.kill()
                node = start_broker(data, SETTINGS, listen=address, log=log)
            time.sleep(LOAD_SECONDS)
        for number, ledger in enumerate(ledgers):
            assert ledger.failed == []
            found = latest(address, number)
            for key, (sequence, offset) in ledger.acknowledged.items():
                assert found[key] == (sequence, offset) or found[key][0] > sequence
            assert set(found) == set(ledger.sent)
        assert node.stop() == 0
        assert temporary(data) == []
    finally:
        node.kill()
    told = log.read_text()
    assert "event=log_cleaned" in told
    assert "event=log_not_cleaned" not in told
    assert "event=task_failed" not in told
