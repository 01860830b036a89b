"""Real clients that bear restarts of a tiered broker: what they ask is asked until it is done."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.clients.wire import WireClient

WAIT_SECONDS = 90
BORN = frozenset((KafkaError.TOPIC_ALREADY_EXISTS,))
GONE = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC))
T0 = 1_790_000_000_000


def until(holds: Callable[[], bool], what: Callable[[], str]) -> None:
    """AssertionError with `what` unless it holds in time; a broker that is away is waited for."""
    ends = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            if holds():
                return
        except OSError:
            pass
        assert time.monotonic() < ends, what()
        time.sleep(0.05)


class StoryClients:
    """Clients of the broker at one address."""

    def __init__(self, bootstrap: str, value_bytes: int) -> None:
        """Nothing is asked."""
        self._bootstrap = bootstrap
        self._value_bytes = value_bytes

    def make_topic(self, name: str, config: Mapping[str, str]) -> None:
        """One of a single partition."""
        new = NewTopic(name, 1, 1, config=dict(config))
        self._surely(lambda admin: admin.create_topics([new])[name], BORN)

    def delete_topic(self, name: str) -> None:
        """The answer is there: the topic is not."""
        self._surely(lambda admin: admin.delete_topics([name])[name], GONE)

    def delete_records(self, topic: str, below: int) -> None:
        """The topic begins at `below` then."""
        where = TopicPartition(topic, 0, below)
        self._surely(lambda admin: admin.delete_records([where])[where], frozenset())

    def _surely(self, ask: Callable[[AdminClient], Future[Any]], done: frozenset[int]) -> None:
        """Asked until it is done; `done`: errors that say that an earlier request did it."""

        def was_done() -> bool:
            admin = AdminClient({"bootstrap.servers": self._bootstrap})
            try:
                ask(admin).result(20)  # the client has to live until then
            except KafkaException as error:
                return error.args[0].code() in done
            return True

        until(was_done, lambda: "an administrator's request is never done")

    def write(self, topic: str, first: int, count: int) -> None:
        """Records of which offset and number are one. AssertionError when some are not taken."""
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "batch.size": 2 * self._value_bytes,
            }
        )
        for number in range(first, first + count):
            value = value_of(topic, number, self._value_bytes)
            producer.produce(topic, value, timestamp=T0 + number)
            producer.poll(0)
        assert producer.flush(WAIT_SECONDS) == 0, f"{topic}: the broker does not take records"

    def check_all(self, topic: str, first: int, count: int) -> None:
        """AssertionError unless the topic has these records, each once, and nothing else."""
        found = self._read(topic, first, first + count)
        assert [offset for offset, _ in found] == list(range(first, first + count)), (
            f"{topic}: other offsets than {first} to {first + count - 1}"
        )
        for offset, value in found:
            assert value == value_of(topic, offset, self._value_bytes), f"{topic}: {offset}"

    def _read(self, topic: str, first: int, end: int) -> Sequence[tuple[int, bytes]]:
        consumer = Consumer(
            {"bootstrap.servers": self._bootstrap, "group.id": "r", "auto.offset.reset": "error"}
        )
        consumer.assign([TopicPartition(topic, 0, first)])
        found: list[tuple[int, bytes]] = []
        ends = time.monotonic() + WAIT_SECONDS
        while len(found) < end - first and time.monotonic() < ends:
            for message in consumer.consume(1000, 0.2):
                assert message.error() is None, f"{topic}: {message.error()}"
                offset, value = message.offset(), message.value()
                assert offset is not None
                found.append((offset, bytes(value or b"")))
        consumer.close()
        return found

    def offset_of(self, topic: str, timestamp: int) -> int:
        """Answer of ListOffsets; -1 with an error, too. OSError."""
        host, _, port = self._bootstrap.rpartition(":")
        client = WireClient(host, int(port))
        try:
            asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
            return int(client.call(request, 11).topics[0].partitions[0].offset)
        finally:
            client.close()


def value_of(topic: str, number: int, size_bytes: int) -> bytes:
    """Bytes of a record."""
    return random.Random(f"{topic} {number}").randbytes(size_bytes)
