"""A consume-transform-produce process with exactly-once, by confluent-kafka.

usage: python -m tests.conformance.transformer BOOTSTRAP INPUT OUTPUT GROUP TRANSACTIONAL_ID [DEBUG]

Copies every record of INPUT to OUTPUT, its value turned round, in transactions of up to 50 records
that carry the group's offsets. It runs until it is killed; an error that calls for it aborts the
transaction and goes back to what was committed, one that is final ends the process with status 3.
DEBUG are contexts of librdkafka (`eos,cgrp`), which go to standard error with all that it did.
"""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

FATAL = 3
FINAL = (KafkaError._FATAL, KafkaError.FENCED_INSTANCE_ID)
"""Errors after which a consumer reads nothing more; those that come as messages bear no mark."""
PATIENCE_SECONDS = 60


class Names(NamedTuple):
    """Of all that it deals with."""

    bootstrap: str
    source: str
    target: str
    group: str
    transactional_id: str


class Transformer:
    """One instance of the application."""

    def __init__(self, names: Names, debug: str = "") -> None:
        bootstrap, source, target, group, transactional_id = names
        shared = {"bootstrap.servers": bootstrap, "log_level": 0, "reconnect.backoff.max.ms": 200}
        if debug:
            shared |= {"debug": debug, "log_level": 7}
        self._told = print if debug else _nothing
        self._target = target
        self._consumer = Consumer(
            {
                **shared,
                "group.id": group,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "group.instance.id": transactional_id,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 300,
            }
        )
        self._producer = Producer(
            {**shared, "transactional.id": transactional_id, "transaction.timeout.ms": 10_000}
        )
        _patiently(lambda: self._producer.init_transactions(10))
        self._consumer.subscribe([source])

    def run(self) -> None:
        """Until it is killed."""
        while True:
            records = list(_sound(self._consumer.consume(50, 0.2)))
            if records:
                try:
                    self._transform(records)
                except KafkaException as failure:
                    error = failure.args[0]
                    self._told("failed:", error, file=sys.stderr, flush=True)
                    if error.fatal():
                        sys.exit(FATAL)
                    if not error.txn_requires_abort():
                        raise
                    self._go_back()

    def _transform(self, records: list[Message]) -> None:
        producer, consumer = self._producer, self._consumer
        producer.begin_transaction()
        for record in records:
            value = (record.value() or b"")[::-1]
            producer.produce(self._target, value, record.key(), partition=record.partition() or 0)
        positions = consumer.position(consumer.assignment())
        known = [each for each in positions if each.offset >= 0]
        read = [(each.partition(), each.offset()) for each in records]
        self._told("read", read, "positions", known, file=sys.stderr, flush=True)
        metadata = consumer.consumer_group_metadata()
        _patiently(lambda: producer.send_offsets_to_transaction(known, metadata, 10))
        _patiently(lambda: producer.commit_transaction(10))

    def _go_back(self) -> None:
        _patiently(lambda: self._producer.abort_transaction(10))
        for each in self._consumer.committed(self._consumer.assignment(), 30):
            if each.error is not None:
                raise KafkaException(each.error)
            at = max(each.offset, 0)
            self._told("back to", each.partition, each.offset, file=sys.stderr, flush=True)
            self._consumer.seek(TopicPartition(each.topic, each.partition, at))


def _sound(messages: Iterable[Message]) -> Iterator[Message]:
    """Records without the errors between them, but for one that is final."""
    for each in messages:
        error = each.error()
        if error is None:
            yield each
        elif error.fatal() or error.code() in FINAL:
            raise KafkaException(error)


def _nothing(*_: object, **__: object) -> None:
    """Without DEBUG."""


def _patiently(work: object) -> None:
    """Tries again what may be tried again: the broker is away now and then."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    assert callable(work)
    while True:
        try:
            work()
        except KafkaException as failure:
            if not failure.args[0].retriable() or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


if __name__ == "__main__":
    Transformer(Names(*sys.argv[1:6]), *sys.argv[6:7]).run()
