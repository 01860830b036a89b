"""The clients of a soak, each a process of its own: a writer, a reader, and groups that churn.

Each ends when it is told to and reports what it has seen as one value.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.synchronize import Event
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.soak.oracle import RECORD, Numbers

LOG, STATE, GROUP = "soak-log", "soak-state", "soak-group"
PARTITIONS, KEYS, RECORD_BYTES = 4, 2000, 1000
STATE_EVERY = 10  # one record of ten goes to the compacted topic
SLICE_SECONDS, BURST = 0.01, 200  # records between two looks around, at full speed
CATCH_UP_SECONDS = 0.5  # what was lost beyond that, on a busy machine, is not made up for
MOST_MEMBERS, CHANGE_SECONDS, POLLED_AT_ONCE = 3, 2.0, 2000
FLUSH_SECONDS = 60
IDLE = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TRANSPORT,
    KafkaError._PARTITION_EOF,
}


@dataclass
class Written:
    """What a writer has done. Numbers are ends: one past the last."""

    acknowledged: dict[int, int] = field(default_factory=dict)
    keys_sent: dict[bytes, int] = field(default_factory=dict)
    keys_acknowledged: dict[bytes, int] = field(default_factory=dict)
    records: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)


class Writer:
    """Writes to both topics; `rate` in records a second, 0 for as fast as it goes."""

    def __init__(self, bootstrap: str, rate: float, first: dict[int, int]) -> None:
        """`first` has the number that each partition of the log goes on with."""
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 20,
            "queue.buffering.max.kbytes": 32_768,
            "logger": None,
        })  # fmt: skip
        self._rate = rate
        self._numbers = [first.get(partition, 0) for partition in range(PARTITIONS)]
        self._filling = b"x" * (RECORD_BYTES - RECORD.size)
        self._dice = random.Random(1)
        self.written = Written()

    def run(self, stop: Event) -> Written:
        began = time.monotonic()
        count, late = 0, 0.0
        while not stop.is_set():
            due = count + BURST
            if self._rate:
                due = int((time.monotonic() - late - began) * self._rate)
                lost = max(0.0, (due - count) / self._rate - CATCH_UP_SECONDS)
                late += lost
                due -= int(lost * self._rate)
            for number in range(count, due):
                self._log(number) if number % STATE_EVERY else self._state()
            count = max(count, due)
            self._producer.poll(SLICE_SECONDS if self._rate else 0)
        self.written.seconds = time.monotonic() - began
        if self._producer.flush(FLUSH_SECONDS):
            self.written.faults.append("writer: records were never answered")
        return self.written

    def _log(self, turn: int) -> None:
        partition = turn % PARTITIONS
        number = self._numbers[partition]
        self._numbers[partition] += 1

        def told(error: KafkaError | None, _: Message) -> None:
            ends = self.written.acknowledged
            if error is not None:
                self.written.faults.append(f"writer: {partition}/{number}: {error}")
            elif number != ends.get(partition, number):
                self.written.faults.append(f"writer: {partition}/{number} answered out of turn")
            ends[partition] = number + 1
            self.written.records += 1

        value = RECORD.pack(partition, number) + self._filling
        self._send(LOG, value, None, partition, told)

    def _state(self) -> None:
        index = self._dice.randrange(KEYS)
        key = b"key-%d" % index
        number = self.written.keys_sent.get(key, -1) + 1
        self.written.keys_sent[key] = number

        def told(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self.written.faults.append(f"writer: {key.decode()}: {error}")
            else:
                self.written.keys_acknowledged[key] = number
            self.written.records += 1

        self._send(STATE, RECORD.pack(0, number), key, index % 2, told)

    def _send(
        self, topic: str, value: bytes, key: bytes | None, partition: int, told: Callable[..., None]
    ) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, partition=partition, on_delivery=told)
            except BufferError:
                self._producer.poll(0.05)
            else:
                return


def write(bootstrap: str, rate: float, first: dict[int, int], stop: Event, report: Any) -> None:
    """A writer's process."""
    report.put(Writer(bootstrap, rate, first).run(stop))


def consumer(bootstrap: str, group: str, **more: Any) -> Consumer:
    """One that never commits by itself and begins at the start of the log."""
    return Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "logger": None,
        **more,
    })  # fmt: skip


def follow(bootstrap: str, stop: Event, report: Any) -> None:
    """Reads the log as it is written, all of it and in order."""
    numbers = Numbers("reader", may_repeat=False)
    reader = consumer(bootstrap, "soak-reader")
    reader.assign([TopicPartition(LOG, index, 0) for index in range(PARTITIONS)])
    while not stop.is_set():
        for message in reader.consume(POLLED_AT_ONCE, 0.2):
            take(reader, numbers, message)
    reader.close()
    report.put(numbers)


def take(reader: Consumer, numbers: Numbers, message: Message) -> None:
    """A message, or what went wrong in its place. A jump over what retention removed is none."""
    error = message.error()
    if error is not None:
        if error.code() not in IDLE:
            numbers.fault(str(error))
        return
    partition, offset = message.partition() or 0, message.offset() or 0
    if offset > numbers.expected.get(partition, offset):
        start, _ = reader.get_watermark_offsets(TopicPartition(LOG, partition), timeout=30)
        if start >= offset:
            numbers.begin(partition, offset)
    numbers.saw(partition, message.value() or b"")


def churn(bootstrap: str, stop: Event, report: Any) -> None:
    """Members of one group come and go; groups are made, commit, and are deleted."""
    numbers, dice = Numbers("group", may_repeat=True), random.Random(2)
    members: list[Consumer] = []
    admin = AdminClient({"bootstrap.servers": bootstrap})
    changes, change_at = 0, 0.0
    while not stop.is_set():
        if time.monotonic() >= change_at:
            change_at = time.monotonic() + CHANGE_SECONDS
            changes += 1
            change(bootstrap, members, dice)
            pass_by(bootstrap, admin, f"soak-once-{changes}")
        for member in members:
            messages = member.consume(POLLED_AT_ONCE, 0.05)
            for message in messages:
                take(member, numbers, message)
            if messages:
                member.commit(asynchronous=True)
    for member in members:
        member.close()
    report.put(numbers)


def change(bootstrap: str, members: list[Consumer], dice: random.Random) -> None:
    """One member more or one less."""
    if members and (len(members) == MOST_MEMBERS or dice.random() < 0.5):
        members.pop(dice.randrange(len(members))).close()
    else:
        members.append(consumer(bootstrap, GROUP))
        members[-1].subscribe([LOG])


def pass_by(bootstrap: str, admin: AdminClient, group: str) -> None:
    """A group that commits once and is deleted."""
    once = consumer(bootstrap, group)
    once.commit(offsets=[TopicPartition(STATE, 0, 0)], asynchronous=False)
    once.close()
    admin.delete_consumer_groups([group])[group].result(30)
