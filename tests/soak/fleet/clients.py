"""Clients of the run: idempotent producers, members of a group, and a reader of it all."""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

TOPIC, PARTITIONS = "t", 12
PAUSE_SECONDS = 0.01
SETTLES_WITHIN_SECONDS = 90.0


class Place(NamedTuple):
    """Where a record is."""

    partition: int
    offset: int


class Heard(NamedTuple):
    """What one producer sent, and what it was answered."""

    name: int
    sent: int
    places: Mapping[Place, str]
    refused: list[str]


class Numbers:
    """An idempotent producer: what it sent, what was acknowledged where and when."""

    def __init__(self, bootstrap: str, name: int) -> None:
        """Sends nothing yet."""
        self.name = name
        self.sent = 0
        self.places: dict[Place, str] = {}
        self.acknowledged_at: dict[int, list[tuple[float, float]]] = defaultdict(list)
        """By partition: when a record was sent, and when it was acknowledged."""
        self.refused: list[str] = []
        self._ends = threading.Event()
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2,
            "message.timeout.ms": 300_000, "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500, "retry.backoff.max.ms": 500,
            "log_level": 0,
        })  # fmt: skip
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Sends from now on."""
        self._thread.start()

    def end(self) -> int:
        """Sends no more; what is left without an answer."""
        self._ends.set()
        self._thread.join()
        return self._producer.flush(SETTLES_WITHIN_SECONDS)

    @property
    def heard(self) -> Heard:
        """When it has ended."""
        return Heard(self.name, self.sent, self.places, self.refused)

    def _run(self) -> None:
        while not self._ends.is_set():
            self._send()
            self._producer.poll(0)
            time.sleep(PAUSE_SECONDS)

    def _send(self) -> None:
        number, self.sent = self.sent, self.sent + 1
        value, at = f"{self.name}:{number}", time.monotonic()

        def heard(error, message) -> None:  # type: ignore[no-untyped-def]
            if error is not None:
                self.refused.append(str(error))
                return
            if message.offset() is not None:  # None: it was stored by an earlier try
                self.places[Place(message.partition(), message.offset())] = value
            self.acknowledged_at[message.partition()].append((at, time.monotonic()))

        self._producer.produce(
            TOPIC, value.encode(), partition=number % PARTITIONS, on_delivery=heard
        )


class Group:
    """Two members of a group, which commit what they have read."""

    def __init__(self, bootstrap: str) -> None:
        """Joins when it begins."""
        self.seen: Counter[str] = Counter()
        self._bootstrap = bootstrap
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(2)]

    def begin(self) -> None:
        """Reads from now on."""
        for each in self._threads:
            each.start()

    def end(self, wanted: int) -> None:
        """Reads on until so many values were seen, or for long enough."""
        end = time.monotonic() + SETTLES_WITHIN_SECONDS
        while len(self.seen) < wanted and time.monotonic() < end:
            time.sleep(0.2)
        self._ends.set()
        for each in self._threads:
            each.join()

    def _run(self) -> None:
        member = Consumer({
            "bootstrap.servers": self._bootstrap, "group.id": "soak", "log_level": 0,
            "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "session.timeout.ms": 10_000, "topic.metadata.refresh.interval.ms": 1000,
            "reconnect.backoff.max.ms": 500,
        })  # fmt: skip
        member.subscribe([TOPIC])
        while not self._ends.is_set():
            found = member.consume(500, 0.2)
            self.seen.update((each.value() or b"").decode() for each in found if not each.error())
            try:
                member.commit(asynchronous=False)
            except KafkaException:
                continue  # nothing to commit, or the coordinator is moving: the next one counts
        member.close()


def place_of(message: Message) -> Place:
    """Where a message is."""
    return Place(message.partition() or 0, message.offset() or 0)


def read_back(bootstrap: str, count: int) -> dict[Place, str]:
    """All records of the topic, from the beginning; fewer when none comes for a while."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 0})
    reader.assign([TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)])
    found: dict[Place, str] = {}
    last = time.monotonic()
    while len(found) < count and time.monotonic() < last + SETTLES_WITHIN_SECONDS:
        for each in reader.consume(2000, 1.0):
            if not each.error():
                found[place_of(each)], last = (each.value() or b"").decode(), time.monotonic()
    for each in reader.consume(2000, 1.0):  # anything beyond would be a record twice
        if not each.error():
            found[place_of(each)] = (each.value() or b"").decode()
    reader.close()
    return found
