"""Clients of a broker in a container: on the host by a published port, and inside its network."""

import threading
from importlib.util import find_spec
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from tests.support.clients.containers import docker, image

PATIENCE_SECONDS = 30
ROUND_TRIP = """\
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
bootstrap, topic, text = sys.argv[1:]
producer = KafkaProducer(bootstrap_servers=bootstrap, acks='all')
producer.send(topic, text.encode()).get(20)
consumer = KafkaConsumer(bootstrap_servers=bootstrap, consumer_timeout_ms=20000)
place = TopicPartition(topic, 0)
consumer.assign([place])
consumer.seek_to_beginning(place)
print('read', next(consumer).value.decode())
"""


def written(bootstrap: str, topic: str, values: list[bytes]) -> None:
    """Writes them all with acks=all to partition 0; AssertionError for one that is refused."""
    refused: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 20_000})

    def judge(error: KafkaError | None, _: object) -> None:
        if error is not None:
            refused.append(error)

    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=judge)
    assert producer.flush(PATIENCE_SECONDS) == 0
    assert not refused


def read_all(bootstrap: str, topic: str, offset: int = 0) -> list[bytes]:
    """The values of partition 0 from an offset to the end."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "r", "enable.auto.commit": False}
    )
    place = TopicPartition(topic, 0, offset)
    try:
        _, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_SECONDS)
        consumer.assign([place])
        values: list[bytes] = []
        while len(values) < end - offset:
            messages = consumer.consume(min(10_000, end - offset - len(values)), timeout=10)
            assert messages, f"{len(values)} of {end - offset} came"
            values += [_value(message) for message in messages]
    finally:
        consumer.close()
    return values


def round_trip_inside(bootstrap: str, topic: str, text: str, *, network: str) -> str:
    """Output of a client in a container of that network that wrote a record and read it back."""
    library = find_spec("kafka")
    assert library is not None
    assert library.origin is not None
    client = ["--entrypoint", "python", image(), "-c", ROUND_TRIP, bootstrap, topic, text]
    place = [
        "--volume",
        f"{Path(library.origin).parent}:/clients/kafka:ro",
        "--env",
        "PYTHONPATH=/clients",
    ]
    return docker("run", "--rm", "--network", network, *place, *client)


class Load:
    """A producer on a thread of its own, and what was acknowledged to it.

    It rests for a hundredth of a second after each `burst` of records of `size` bytes.
    """

    def __init__(self, bootstrap: str, topic: str, *, size: int = 1000, burst: int = 20) -> None:
        self.acknowledged: set[bytes] = set()
        self.refused: list[KafkaError] = []
        self._filling = b"x" * size
        self._burst = burst
        self._topic = topic
        self._producer = Producer({
            "bootstrap.servers": bootstrap,
            "linger.ms": 5,
            "message.timeout.ms": 8000,
            "logger": None,
        })  # fmt: skip
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Waits until each record is acknowledged or given up."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(PATIENCE_SECONDS) == 0

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            try:
                self._producer.produce(
                    self._topic, b"%d " % number + self._filling, partition=0, callback=self._told
                )
            except BufferError:
                self._stop.wait(0.01)
            self._producer.poll(0)
            if number % self._burst == 0:
                self._stop.wait(0.01)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged.add(_value(message).split(b" ")[0])
        else:
            self.refused.append(error)


def _value(message: Message) -> bytes:
    error = message.error()
    assert error is None, error
    value = message.value()
    assert value is not None
    return value
