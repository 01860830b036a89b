"""scripts/soak fleet: three brokers of one fleet under faults, and the verdict record by record.

Idempotent producers, members of a group and a copier in transactions go on through faults one after
the other: a node is killed, or loses its disk, a node is stopped for longer than its lease and
wakes up, one is asked to stop, PostgreSQL is killed, the object store is stopped. At the end each
value is there once, where it was acknowledged, the group has read all of it, and the copy has each
value once. Of each fault: the time to the next acknowledgement of a record that was sent after it,
of every partition.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from tests.soak.copier import COPY, Copier, copies
from tests.support.fleet.brokers import FleetOfBrokers, engines
from tests.support.tier.s3_server import S3Server

TOPIC, PARTITIONS = "t", 12
NODES = (1, 2, 3)
SETTINGS = {
    "offsets.topic.num.partitions": "6",
    "transaction.state.log.num.partitions": "6",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "horolog.tier.max.lag.ms": "4000",
    "remote.log.manager.task.interval.ms": "500",
    "horolog.fleet.checkpoint.ms": "5000",
}
PAUSE_SECONDS = 0.01
STOPPED_SECONDS = 5.0
AWAY_SECONDS = 3.0
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
            self.seen.update(each.value().decode() for each in found if not each.error())
            try:
                member.commit(asynchronous=False)
            except KafkaException:
                continue  # nothing to commit, or the coordinator is moving: the next one counts
        member.close()


class Faults:
    """What happens to the fleet and to its engines."""

    def __init__(self, fleet: FleetOfBrokers, store: S3Server, dice: random.Random) -> None:
        """Nothing happens yet."""
        self._fleet = fleet
        self._store = store
        self._dice = dice
        self.ways: Mapping[str, Callable[[], None]] = {
            "kill -9 of a node": self._kill,
            "a node's disk lost": self._lose_disk,
            "a node stopped, and awake again": self._stop_process,
            "SIGTERM of a node": self._stop,
            "kill -9 of PostgreSQL": self._kill_database,
            "the store stopped": self._stop_store,
        }

    def _kill(self) -> None:
        node = self._dice.choice(NODES)
        self._fleet.kill(node)
        time.sleep(AWAY_SECONDS)
        self._fleet.start(node, SETTINGS)

    def _lose_disk(self) -> None:
        node = self._dice.choice(NODES)
        self._fleet.kill(node)
        self._fleet.lose_disk(node)
        time.sleep(AWAY_SECONDS)
        self._fleet.start(node, SETTINGS)

    def _stop_process(self) -> None:
        process = self._fleet.running[self._dice.choice(NODES)]
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(STOPPED_SECONDS)
        os.kill(process.pid, signal.SIGCONT)

    def _stop(self) -> None:
        node = self._dice.choice(NODES)
        self._fleet.stop(node)
        self._fleet.start(node, SETTINGS)

    def _kill_database(self) -> None:
        self._fleet.database.kill()
        time.sleep(self._dice.choice((0.0, AWAY_SECONDS)))
        self._fleet.database.start()

    def _stop_store(self) -> None:
        with self._store.frozen():
            time.sleep(STOPPED_SECONDS)


class Waits:
    """Times to the next acknowledgement after each fault, by its kind (s)."""

    def __init__(self) -> None:
        """Nothing happened."""
        self.began: list[tuple[str, float]] = []

    def happens(self, kind: str) -> None:
        """A fault begins."""
        self.began.append((kind, time.monotonic()))

    def of(self, producers: list[Numbers]) -> Mapping[str, list[float]]:
        """For each fault the longest of all partitions."""
        found: dict[str, list[float]] = defaultdict(list)
        for kind, began in self.began:
            waits = []
            for partition in range(PARTITIONS):
                ends = [
                    answered
                    for each in producers
                    for sent, answered in each.acknowledged_at[partition]
                    if sent >= began
                ]
                waits.append(min(ends, default=float("inf")) - began)
            found[kind].append(max(waits))
        return found


def read_back(bootstrap: str, count: int) -> dict[Place, str]:
    """All records of the topic, from the beginning."""
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "log_level": 0})
    reader.assign([TopicPartition(TOPIC, each, 0) for each in range(PARTITIONS)])
    found: dict[Place, str] = {}
    end = time.monotonic() + SETTLES_WITHIN_SECONDS
    while len(found) < count and time.monotonic() < end:
        for each in reader.consume(2000, 1.0):
            if not each.error():
                found[Place(each.partition(), each.offset())] = each.value().decode()
    for each in reader.consume(2000, 1.0):  # anything beyond would be a record twice
        if not each.error():
            found[Place(each.partition(), each.offset())] = each.value().decode()
    reader.close()
    return found


def verdict(
    producers: list[Heard], unanswered: int, found: Mapping[Place, str], seen: Container[str]
) -> list[str]:
    """Broken promises; none is the aim."""
    faults = [f"refused: {each}" for one in producers for each in one.refused[:3]]
    if unanswered:
        faults.append(f"{unanswered} records were never answered")
    for each in producers:
        wrong = [place for place, value in each.places.items() if found.get(place) != value]
        faults += [f"{each.places[place]} is not at {place}" for place in wrong[:3]]
    counts = Counter(found.values())
    sent = sent_by(producers)
    faults += [f"{value} is there {count} times" for value, count in counts.items() if count > 1][
        :3
    ]
    faults += [f"{value} is not there" for value in sorted(sent - counts.keys())[:3]]
    faults += [f"nobody sent {value}" for value in sorted(counts.keys() - sent)[:3]]
    faults += [f"the group has not read {value}" for value in sorted(sent) if value not in seen][:3]
    return faults


def sent_by(producers: list[Heard]) -> set[str]:
    """Values that were sent."""
    return {f"{each.name}:{number}" for each in producers for number in range(each.sent)}


def show(console: Console, waits: Mapping[str, list[float]]) -> None:
    """A table of the times."""
    table = Table(box=None, pad_edge=False)
    for name in ("fault", "times", "to the next ack: p50 s", "p99 s", "longest s"):
        table.add_column(name, justify="left" if name == "fault" else "right")
    for kind, seconds in waits.items():
        most = quantiles(seconds, n=100)[98] if len(seconds) > 1 else seconds[0]
        table.add_row(
            kind, str(len(seconds)), f"{median(seconds):.2f}", f"{most:.2f}", f"{max(seconds):.2f}"
        )
    console.print(table)


def main() -> int:
    """Runs, and says what was found; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="scripts/soak fleet", description=__doc__)
    parser.add_argument("--faults", type=int, default=25, help="how many (default: 25)")
    parser.add_argument("--pause", type=float, default=6.0, help="seconds between two (default: 6)")
    parser.add_argument("--seed", type=int, default=1, help="of the dice (default: 1)")
    options = parser.parse_args()
    dice, console, waits = random.Random(options.seed), Console(), Waits()
    with engines() as (database, store), tempfile.TemporaryDirectory() as folder:
        fleet = FleetOfBrokers(Path(folder), database, store)
        try:
            for node in NODES:
                fleet.start(node, SETTINGS)
            bootstrap = fleet.bootstrap
            admin = AdminClient({"bootstrap.servers": bootstrap})
            made = admin.create_topics([NewTopic(each, PARTITIONS) for each in (TOPIC, COPY)])
            for each in made.values():
                each.result(60)
            producers, group = [Numbers(bootstrap, each) for each in range(3)], Group(bootstrap)
            copier = Copier(bootstrap, TOPIC, PARTITIONS)
            for each in (*producers, group, copier):
                each.begin()
            faults = Faults(fleet, store, dice)
            for number in range(options.faults):
                time.sleep(options.pause)
                kind = list(faults.ways)[number % len(faults.ways)]
                console.print(f"{number + 1}/{options.faults} {kind}")
                waits.happens(kind)
                faults.ways[kind]()
            time.sleep(options.pause)
            unanswered = sum(each.end() for each in producers)
            count = sum(each.sent for each in producers)
            group.end(count)
            copier.end(count, SETTLES_WITHIN_SECONDS)
            found = read_back(fleet.bootstrap, count)
            copied = copier.copied(SETTLES_WITHIN_SECONDS)
        finally:
            fleet.end()
    heard = [each.heard for each in producers]
    broken = verdict(heard, unanswered, found, group.seen) + copies(copied, sent_by(heard))
    show(console, waits.of(producers))
    console.print(f"{count} records, {options.faults} faults")
    for each in broken:
        console.print(f"BROKEN: {each}")
    console.print("every promise was kept" if not broken else f"{len(broken)} broken promises")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
