"""Real clients that bear restarts of a tiered broker: what they ask is asked until it is done."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.clients.wire import WireClient

WAIT_SECONDS = 90
BORN = frozenset((KafkaError.TOPIC_ALREADY_EXISTS,))
GONE = frozenset((KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC))
T0 = 1_790_000_000_000
LATEST = -1


class Stored(NamedTuple):
    """A record as a consumer gets it."""

    offset: int
    key: bytes | None
    value: bytes


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


class Written(NamedTuple):
    """Records of a topic, from `first` on to that before `end`."""

    topic: str
    first: int
    end: int
    keys: int = 0
    """So many keys in turn; 0: none."""


class StoryClients:
    """Clients of the broker at one address."""

    def __init__(self, bootstrap: str, value_bytes: int) -> None:
        """Nothing is asked."""
        self._bootstrap = bootstrap
        self._value_bytes = value_bytes
        self._common: dict[str, str | int | float] = {
            "bootstrap.servers": bootstrap,
            "reconnect.backoff.max.ms": 200,
        }
        self._producer: Producer | None = None

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

    def alter_topic(self, name: str, key: str, value: str) -> None:
        """One setting of it."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        what = ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry])
        self._surely(lambda admin: admin.incremental_alter_configs([what])[what], frozenset())

    def _surely(self, ask: Callable[[AdminClient], Future[Any]], done: frozenset[int]) -> None:
        """Asked until it is done; `done`: errors that say that an earlier request did it."""

        def was_done() -> bool:
            admin = AdminClient(dict(self._common))
            try:
                ask(admin).result(20)  # the client has to live until then
            except KafkaException as error:
                return error.args[0].code() in done
            return True

        until(was_done, lambda: "an administrator's request is never done")

    def write(self, wanted: Sequence[Written]) -> None:
        """Records of which offset and number are one. AssertionError when some are not taken."""
        producer = self._producer = self._producer or Producer(
            {
                **self._common,
                "enable.idempotence": True,
                "linger.ms": 5,
                "batch.size": 2 * self._value_bytes,
            }
        )
        for topic, first, end, keys in wanted:
            for number in range(first, end):
                value = value_of(topic, number, self._value_bytes)
                producer.produce(topic, value, key_of(number, keys), timestamp=T0 + number)
                producer.poll(0)
        assert producer.flush(WAIT_SECONDS) == 0, "the broker does not take records"

    def check(self, wanted: Sequence[Written]) -> None:
        """AssertionError unless each topic has these records, each once, and nothing else.

        Of a topic with keys: the last of each key, and of the others each at most once.
        """
        found = self._read({each.topic: (each.first, each.end) for each in wanted})
        for topic, first, end, keys in wanted:
            offsets = [each.offset for each in found[topic]]
            assert offsets == sorted(set(offsets)), f"{topic}: records come twice, or in disorder"
            due = set(range(end - keys if keys else first, end))
            assert due <= set(offsets), f"{topic}: {sorted(due - set(offsets))} are missing"
            assert keys or due == set(offsets), f"{topic}: more than {first} to {end - 1}"
            for each in found[topic]:
                value = value_of(topic, each.offset, self._value_bytes)
                known = Stored(each.offset, key_of(each.offset, keys), value)
                assert each == known, f"{topic}: {each.offset} is another record"

    def _read(self, wanted: Mapping[str, tuple[int, int]]) -> Mapping[str, Sequence[Stored]]:
        """From one offset on to that before another, which is never compacted away."""
        consumer = Consumer({**self._common, "group.id": "r", "auto.offset.reset": "error"})
        consumer.assign([TopicPartition(topic, 0, first) for topic, (first, _) in wanted.items()])
        found: dict[str, list[Stored]] = {topic: [] for topic in wanted}
        left, ends = set(wanted), time.monotonic() + WAIT_SECONDS
        while left and time.monotonic() < ends:
            for message in consumer.consume(1000, 0.05):
                assert message.error() is None, message.error()
                topic, offset, key = message.topic(), message.offset(), message.key()
                assert topic is not None
                assert offset is not None
                value = bytes(message.value() or b"")
                found[topic].append(Stored(offset, key and bytes(key), value))
                if offset == wanted[topic][1] - 1:
                    left.discard(topic)
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


def key_of(number: int, keys: int) -> bytes | None:
    """One of so many keys; None without keys."""
    return b"%d" % (number % keys) if keys else None


def value_of(topic: str, number: int, size_bytes: int) -> bytes:
    """Bytes of a record."""
    return random.Random(f"{topic} {number}").randbytes(size_bytes)
