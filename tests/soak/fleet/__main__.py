"""scripts/soak fleet: three brokers that are one under faults, and the verdict record by record.

Idempotent producers, members of a group and a copier in transactions go on through faults one after
the other: a node is killed, or loses its disk, a node is stopped for longer than its lease and
wakes up, one is asked to stop; of a fleet, PostgreSQL or the object store is killed, the store is
stopped, and a node is cut off from one of the two. At the end each value is there once, where it
was acknowledged, the group has read all of it, and the copy has each value once. Of each fault: the
time to the next acknowledgement of a record that was sent after it, of every partition.
`--peer kafka` does the same to three Kafka brokers with three copies, of which two acknowledge, for
those times; there a node is cut off from the other two. As root each node is in a network namespace
of its own, and a cut is one of its cables.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from tests.soak.copier import COPY, Copier, copies
from tests.soak.fleet.clients import (
    PARTITIONS,
    SETTLES_WITHIN_SECONDS,
    TOPIC,
    Group,
    Numbers,
    read_back,
)
from tests.soak.fleet.clusters import Cluster
from tests.soak.fleet.faults import FleetFaults, KafkaFaults, NodeFaults
from tests.soak.fleet.horolog_fleet import FleetCluster, fleet
from tests.soak.fleet.kafka_cluster import KafkaCluster, kafka
from tests.soak.fleet.switch import why_not
from tests.soak.fleet.verdict import Waits, sent_by, show, verdict
from tests.support.ended import ends_in_order

LEASE_MS = 1000


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/soak fleet", description=__doc__)
    parser.add_argument("--faults", type=int, default=25, help="how many (default: 25)")
    parser.add_argument(
        "--only", action="append", default=[], metavar="WORDS",
        help="faults with these words in their name alone; may be given again",
    )  # fmt: skip
    parser.add_argument("--pause", type=float, default=6.0, help="seconds between two (default: 6)")
    parser.add_argument(
        "--stopped", type=float, default=5.0,
        help="seconds for which a process is stopped (default: 5)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of the dice (default: 1)")
    parser.add_argument("--peer", choices=("horolog", "kafka"), default="horolog")
    parser.add_argument(
        "--lease-ms", type=int, default=LEASE_MS,
        help=f"after which a node is taken for gone (default: {LEASE_MS})",
    )  # fmt: skip
    parser.add_argument(
        "--keep", type=Path, metavar="DIR",
        help="a new directory for all data and logs, which stays; with the copier's log",
    )  # fmt: skip
    return parser.parse_args()


def main() -> int:
    """Runs, and says what was found; 1 when a promise was broken."""
    options, console = parse(), Console()
    ends_in_order()
    made = kafka if options.peer == "kafka" else fleet
    reason = why_not()
    if reason is not None:
        instead = "no cuts" if options.peer == "kafka" else "cuts are stopped forwarders"
        console.print(f"{reason}: {instead}")
    with (
        folder_of(options.keep) as folder,
        made(folder, options.lease_ms, in_namespaces=reason is None) as cluster,
    ):
        broken = Soak(cluster, options, console).run()
    for each in broken:
        print(f"BROKEN: {each}")
    print("every promise was kept" if not broken else f"{len(broken)} broken promises")
    return 1 if broken else 0


@contextmanager
def folder_of(kept: Path | None) -> Iterator[Path]:
    """A directory for all of it."""
    if kept is None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)  # PostgreSQL is another user
            yield Path(folder)
        return
    kept.mkdir(parents=True)
    yield kept.resolve()


class Soak:
    """One run: clients that go on, and faults one after the other."""

    def __init__(self, cluster: Cluster, options: argparse.Namespace, console: Console) -> None:
        """Nothing is sent yet."""
        self._options, self._console = options, console
        self._cluster, self._bootstrap = cluster, cluster.bootstrap
        self._waits = Waits()
        self._producers = [Numbers(self._bootstrap, each) for each in range(3)]
        self._group = Group(self._bootstrap)
        self._copier = Copier(self._bootstrap, TOPIC, PARTITIONS, options.keep)

    def run(self) -> list[str]:
        """All of it; broken promises."""
        make_topics(self._bootstrap)
        for each in self._producers:
            each.begin()
        self._group.begin()
        self._copier.begin()
        self._break()
        time.sleep(self._options.pause)
        return self._judged()

    def _break(self) -> None:
        faults = faults_of(self._cluster, self._options)
        ways = list(chosen(faults, self._options.only).items())
        for number in range(self._options.faults):
            time.sleep(self._options.pause)
            kind, happen = ways[number % len(ways)]
            at = time.strftime("%H:%M:%S")
            self._console.print(f"{at} {number + 1}/{self._options.faults} {kind}")
            self._waits.happens(kind)
            faults.node = 0
            happen()
            if faults.node:
                self._console.print(f"         it was node {faults.node}")

    def _judged(self) -> list[str]:
        unanswered = sum(each.end() for each in self._producers)
        count = sum(each.sent for each in self._producers)
        settled = [time.monotonic()]
        self._group.end(count)
        settled.append(time.monotonic())
        self._copier.end(count, SETTLES_WITHIN_SECONDS)
        settled.append(time.monotonic())
        found, copied = (
            read_back(self._bootstrap, count),
            self._copier.copied(SETTLES_WITHIN_SECONDS),
        )
        heard = [each.heard for each in self._producers]
        show(self._console, self._waits.of(self._producers))
        for line in self._waits.slowest(self._producers):
            self._console.print(line)
        starts = self._copier.starts
        self._console.print(f"{count} records, {self._options.faults} faults, {starts} copiers")
        group, copier = settled[1] - settled[0], settled[2] - settled[1]
        self._console.print(f"group at the end after {group:.1f} s, copier {copier:.1f} s later")
        for value in [each for each, times in copied.items() if times > 1][:20]:
            self._console.print(f"{value} was copied to {', '.join(self._copier.places[value])}")
        return verdict(heard, unanswered, found, self._group.seen) + copies(copied, sent_by(heard))


def faults_of(cluster: Cluster, options: argparse.Namespace) -> NodeFaults:
    """Faults that there are for it."""
    dice = random.Random(options.seed)
    if isinstance(cluster, FleetCluster):
        return FleetFaults(cluster, dice, options.stopped)
    assert isinstance(cluster, KafkaCluster)
    return KafkaFaults(cluster, dice, options.stopped)


def chosen(faults: NodeFaults, only: list[str]) -> Mapping[str, Callable[[], None]]:
    """Ways that were asked for; all, where nothing was said."""
    ways = {
        kind: happen
        for kind, happen in faults.ways.items()
        if not only or any(words in kind for words in only)
    }
    if not ways:
        sys.exit(f"no fault has such words; there are: {', '.join(faults.ways)}")
    return ways


def make_topics(bootstrap: str) -> None:
    """The topic of records, and that of the copy."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(each, PARTITIONS) for each in (TOPIC, COPY)])
    for each in made.values():
        each.result(60)


if __name__ == "__main__":
    sys.exit(main())
