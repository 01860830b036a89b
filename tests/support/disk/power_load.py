"""Clients at work while the power goes, and what each was promised.

All of them note promises outside of the broker's disk. Producers of plain and keyed records live
through every cut, so that what they send again is judged, too; transactions begin again each time.
"""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.clients.wire import WireClient

PLAIN, KEYED, MOVED = "plain", "keyed", "moved"
PARTITIONS = 2
KEYS, BURST, PAUSE_SECONDS = 100, 40, 0.01
FIRST_TIME_MS = 1_700_000_000_000
TRANSACTIONAL = {
    "transactional.id": "mover",
    "transaction.timeout.ms": 10_000,
    "message.timeout.ms": 10_000,
}
PATIENT = {
    "acks": "all", "message.timeout.ms": 120_000, "reconnect.backoff.max.ms": 200,
    "retry.backoff.max.ms": 200, "linger.ms": 2, "log_level": 0,
}  # fmt: skip
RECORDS_OF_A_TRANSACTION = 3
ANSWER_SECONDS, ALL_ANSWERED_SECONDS = 2, 120
STUCK_SECONDS = 20
"""A client that has not come back by then is left to itself: librdkafka was seen to wait for
minutes in `send_offsets_to_transaction`, whatever its time-out, with no request to the broker under
way."""


class Writer:
    """Records `SEQUENCE:` to one partition, without a pause, through all cuts."""

    def __init__(self, address: str, topic: str, partition: int, codec: str) -> None:
        self.topic, self.partition = topic, partition
        self.acknowledged: dict[int, int] = {}
        """Sequence by offset, of each record that was promised."""
        self.sent = 0
        self.failed: list[str] = []
        self._working = threading.Event()
        self._is_idle = threading.Event()
        self._is_stopping = False
        self._producer = Producer({
            **PATIENT, "bootstrap.servers": address, "enable.idempotence": True,
            "compression.type": codec,
        })  # fmt: skip
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def go_on(self) -> None:
        """Send again, until `rest`."""
        self._is_idle.clear()
        self._working.set()

    def rest(self) -> None:
        """Send nothing more; return when all that was sent is answered. The broker must be up."""
        self._working.clear()
        if not self._is_idle.wait(ALL_ANSWERED_SECONDS):
            self.failed.append(f"{self.topic}-{self.partition}: some are never answered")

    def stop(self) -> None:
        """Send nothing ever again."""
        self._is_stopping = True
        self._working.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping:
            if not self._working.is_set():
                self._producer.flush(ALL_ANSWERED_SECONDS)
                self._is_idle.set()
                self._working.wait()
                continue
            for _ in range(BURST):
                self._send(self.sent)
                self.sent += 1
            self._producer.poll(PAUSE_SECONDS)
            time.sleep(PAUSE_SECONDS)

    def _send(self, sequence: int) -> None:
        while True:
            try:
                self._producer.produce(
                    self.topic, value_of(sequence), key_of(self.topic, sequence),
                    partition=self.partition, timestamp=time_of(sequence), on_delivery=self._told,
                )  # fmt: skip
            except BufferError:
                if self._is_stopping:
                    return
                self._producer.poll(0.1)
            else:
                return

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(f"{self.topic}-{self.partition}: {error}")
            return
        sequence = int((message.value() or b"").partition(b":")[0])
        self.acknowledged[message.offset() or 0] = sequence


def value_of(sequence: int) -> bytes:
    """Value of record `sequence`: its bytes differ from others'."""
    return b"%d:" % sequence + bytes([sequence % 251]) * 120


def key_of(topic: str, sequence: int) -> bytes:
    """Keys of the compacted topic come again; others do not."""
    return b"%d" % (sequence * 7919 % KEYS if topic == KEYED else sequence)


def time_of(sequence: int) -> int:
    """Record time (ms) of record `sequence`: 40 a second, so that look-ups by time are judged."""
    return FIRST_TIME_MS + sequence // 4 * 100


@dataclass(slots=True)
class Promises:
    """Outcomes of the transactions and commits of one data directory."""

    committed: set[int] = field(default_factory=set)
    """Transactions whose commit was answered."""
    aborted: set[int] = field(default_factory=set)
    """Transactions whose abort was answered."""
    begun: int = 0
    """Transactions that were begun, numbered from 0."""
    position: int = 0
    """The latest position of the plain group whose commit was answered."""
    asked_position: int = 0
    """The latest position that a commit was asked for."""


class Movers:
    """Transactions with offsets in them, and plain commits, until the power goes."""

    def __init__(self, address: str, promises: Promises, seed: int) -> None:
        """Settle what the last cut left open (`init_transactions`), then begin."""
        self._promises = promises
        self._dice = random.Random(seed)
        self._stopping = threading.Event()
        self._producer = Producer({**PATIENT, **TRANSACTIONAL, "bootstrap.servers": address})
        self._producer.init_transactions(60)
        self._address = address
        self._threads: list[threading.Thread] = []

    def begin(self) -> None:
        """Start both."""
        self._threads = [
            threading.Thread(target=self._until_told, args=(work,), daemon=True)
            for work in (self._transactions(), self._commits())
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Wait until both have ended: they do at the first error after this, too.

        What a client that is stuck had begun is not promised; the next one fences it.
        """
        self._stopping.set()
        for thread in self._threads:
            thread.join(STUCK_SECONDS)

    def _until_told(self, step: Callable[[], None]) -> None:
        while not self._stopping.is_set():
            try:
                step()
            except (KafkaException, OSError):
                return  # the power is gone: what was not answered is not promised

    def _transactions(self) -> Callable[[], None]:
        producer, promises = self._producer, self._promises
        metadata = self._consumer("mover").consumer_group_metadata()

        def step() -> None:
            number = promises.begun
            promises.begun += 1
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                for index in range(RECORDS_OF_A_TRANSACTION):
                    producer.produce(MOVED, b"%d:%d" % (number, index), partition=partition)
            position = [TopicPartition(PLAIN, 0, number)]
            producer.send_offsets_to_transaction(position, metadata, ANSWER_SECONDS)
            if self._dice.random() < 0.4:
                producer.flush(ANSWER_SECONDS)
                producer.abort_transaction(ANSWER_SECONDS)
                promises.aborted.add(number)
            else:
                producer.commit_transaction(ANSWER_SECONDS)
                promises.committed.add(number)

        return step

    def _commits(self) -> Callable[[], None]:
        promises, host, port = self._promises, *self._address.split(":")
        client = WireClient(host, int(port), timeout_seconds=ANSWER_SECONDS)

        def step() -> None:
            promises.asked_position += 1
            answer = client.call(commit_request("reader", promises.asked_position), 8)
            if answer.topics[0].partitions[0].error_code != 0:
                raise ConnectionError("refused")
            promises.position = promises.asked_position
            time.sleep(PAUSE_SECONDS)

        return step

    def _consumer(self, group: str) -> Consumer:
        return Consumer({
            "bootstrap.servers": self._address, "group.id": group, "enable.auto.commit": False,
            "log_level": 0,
        })  # fmt: skip


def commit_request(group: str, position: int) -> OffsetCommitRequest:
    """A commit by no member, for partition 1 of the plain topic."""
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=position)
    topic = OffsetCommitRequestTopic(name=PLAIN, partitions=[partition])
    return OffsetCommitRequest(group_id=group, topics=[topic])
