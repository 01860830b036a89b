"""scripts/soak fleet: three brokers that are one under faults, and the verdict record by record.

Idempotent producers, members of a group and a copier in transactions go on through faults one after
the other: a node is killed, or loses its disk, a node is stopped for longer than its lease and
wakes up, one is asked to stop; of a fleet, PostgreSQL is killed, the object store is stopped, and a
node is cut off from one of the two. At the end each value is there once, where it was acknowledged,
the group has read all of it, and the copy has each value once. Of each fault: the time to the next
acknowledgement of a record that was sent after it, of every partition. `--peer kafka` does the same
to three Kafka brokers, for those times.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
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
from tests.soak.fleet.clusters import Cluster, FleetCluster, fleet, kafka
from tests.soak.fleet.faults import FleetFaults, NodeFaults
from tests.soak.fleet.verdict import Waits, sent_by, show, verdict

LEASE_MS = 1000


def parse() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/soak fleet", description=__doc__)
    parser.add_argument("--faults", type=int, default=25, help="how many (default: 25)")
    parser.add_argument("--pause", type=float, default=6.0, help="seconds between two (default: 6)")
    parser.add_argument("--seed", type=int, default=1, help="of the dice (default: 1)")
    parser.add_argument("--peer", choices=("horolog", "kafka"), default="horolog")
    parser.add_argument(
        "--lease-ms", type=int, default=LEASE_MS,
        help=f"after which a node is taken for gone (default: {LEASE_MS})",
    )  # fmt: skip
    return parser.parse_args()


def main() -> int:
    """Runs, and says what was found; 1 when a promise was broken."""
    options = parse()
    made = kafka if options.peer == "kafka" else fleet
    with tempfile.TemporaryDirectory() as folder, made(Path(folder), options.lease_ms) as cluster:
        broken = run(cluster, options)
    for each in broken:
        print(f"BROKEN: {each}")
    print("every promise was kept" if not broken else f"{len(broken)} broken promises")
    return 1 if broken else 0


def run(cluster: Cluster, options: argparse.Namespace) -> list[str]:
    """All faults, one after the other; broken promises."""
    dice, console, waits = random.Random(options.seed), Console(), Waits()
    bootstrap = cluster.bootstrap
    make_topics(bootstrap)
    producers, group = [Numbers(bootstrap, each) for each in range(3)], Group(bootstrap)
    copier = Copier(bootstrap, TOPIC, PARTITIONS)
    begin: list[Callable[[], None]] = [each.begin for each in producers]
    for each_begins in (*begin, group.begin, copier.begin):
        each_begins()
    faults = NodeFaults(cluster, dice)
    if isinstance(cluster, FleetCluster):
        faults = FleetFaults(cluster, dice)
    ways = list(faults.ways.items())
    for number in range(options.faults):
        time.sleep(options.pause)
        kind, happen = ways[number % len(ways)]
        console.print(f"{number + 1}/{options.faults} {kind}")
        waits.happens(kind)
        happen()
    time.sleep(options.pause)
    unanswered = sum(each.end() for each in producers)
    count = sum(each.sent for each in producers)
    group.end(count)
    copier.end(count, SETTLES_WITHIN_SECONDS)
    found, copied = read_back(bootstrap, count), copier.copied(SETTLES_WITHIN_SECONDS)
    heard = [each.heard for each in producers]
    show(console, waits.of(producers))
    console.print(f"{count} records, {options.faults} faults")
    return verdict(heard, unanswered, found, group.seen) + copies(copied, sent_by(heard))


def make_topics(bootstrap: str) -> None:
    """The topic of records, and that of the copy."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    made = admin.create_topics([NewTopic(each, PARTITIONS) for each in (TOPIC, COPY)])
    for each in made.values():
        each.result(60)


if __name__ == "__main__":
    sys.exit(main())
