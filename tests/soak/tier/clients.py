"""Clients of the run, each a process of its own: one writes, one reads from the start meanwhile."""

import time
from multiprocessing.synchronize import Event
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.soak.tier.records import Contents, key_of, time_of, value_of

TOPIC, PARTITIONS = "volume", 2
AT_ONCE = 2000
FLUSH_SECONDS = 300
SILENCE_SECONDS = 120
"""A client that hears nothing for so long gives up: the broker stands still."""
DELIVERY_MS = 600_000
PASSING = {KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._PARTITION_EOF}


class Writer:
    """Writes so many records to each partition, as fast as they are taken in."""

    def __init__(self, bootstrap: str, records: int) -> None:
        """`records`: of a partition."""
        self.written = Contents("writer")
        self._records = records
        self._acknowledged = 0
        self._heard_at = 0.0
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "queue.buffering.max.kbytes": 65_536,
            "delivery.timeout.ms": DELIVERY_MS,
            "retry.backoff.ms": 50,
            "retry.backoff.max.ms": 500,
            "logger": None,
        })  # fmt: skip

    def run(self, stop: Event) -> Contents:
        """Until all is acknowledged, or nothing is for long."""
        began = self._heard_at = time.monotonic()
        for number in range(self._records):
            for partition in range(PARTITIONS):
                self._send(partition, number)
            if stop.is_set() or self.written.faults:
                break
        left = self._producer.flush(FLUSH_SECONDS)
        if left:
            self.written.fault(f"{left} records were never answered")
        self.written.seconds = time.monotonic() - began
        return self.written

    def _send(self, partition: int, number: int) -> None:
        key, value, time_ms = (
            key_of(partition, number),
            value_of(partition, number),
            time_of(number),
        )
        silent_at, told = time.monotonic() + SILENCE_SECONDS, self._acknowledged
        while True:
            try:
                self._producer.produce(
                    TOPIC, value, key, partition=partition, timestamp=time_ms,
                    on_delivery=self._told,
                )  # fmt: skip
                break
            except BufferError:
                self._producer.poll(0.1)
            if self._acknowledged == told and time.monotonic() > silent_at:
                self.written.fault(f"nothing was acknowledged for {SILENCE_SECONDS} s")
                return
        self._producer.poll(0)
        self.written.add(partition, number, time_ms, key, value)

    def _told(self, error: KafkaError | None, _: Message) -> None:
        self._acknowledged += 1
        now = time.monotonic()
        self.written.heard(now - self._heard_at)
        self._heard_at = now
        if error is not None:
            self.written.fault(f"not acknowledged: {error}")


def write(bootstrap: str, records: int, stop: Event, report: Any) -> None:
    """A writer's process."""
    report.put(Writer(bootstrap, records).run(stop))


def read(bootstrap: str, records: int, name: str, stop: Event, report: Any) -> None:
    """A reader's process: all partitions from the start, until it has all of them."""
    found = Contents(name)
    consumer = Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": f"volume-{name}",
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.message.max.bytes": 8 << 20,
        "queued.max.messages.kbytes": 65_536,
        "logger": None,
    })  # fmt: skip
    consumer.assign([TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)])
    began = heard = time.monotonic()
    while found.records < records * PARTITIONS and not (stop.is_set() or found.faults):
        messages = consumer.consume(AT_ONCE, 0.5)
        for message in messages:
            _take(found, message)
        now = time.monotonic()
        if messages:
            found.heard(now - heard)
            heard = now
        if now - heard > SILENCE_SECONDS:
            found.fault(f"nothing came for {SILENCE_SECONDS} s, after {found.records} records")
    found.seconds = time.monotonic() - began
    consumer.close()
    report.put(found)


def _take(found: Contents, message: Message) -> None:
    error = message.error()
    if error is not None:
        if error.code() not in PASSING:
            found.fault(str(error))
        return
    partition, offset = message.partition() or 0, message.offset() or 0
    found.take(
        partition, offset, message.timestamp()[1], message.key() or b"", message.value() or b""
    )
