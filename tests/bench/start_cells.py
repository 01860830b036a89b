"""Starts: on nothing, on thousands of partitions, after kill -9 with much to scan."""

import time
from collections.abc import Mapping
from itertools import repeat

from tests.bench import process, topics
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import (
    PRODUCE_VERSION,
    batch_of,
    batches_over_time,
    produce,
    produce_many,
)
from tests.bench.peers import Peer, remove
from tests.bench.pump import pump, refuse
from tests.bench.wire import Wire, answer

PARTITIONS_A_TOPIC = 100
SEGMENTS = 3
RECORD_BYTES = 300


def seconds_figure(under: float, must: float | None = None) -> Figure:
    return Figure("ready after", "s", "lower", must, under=under)


def measure_empty(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """To the first Metadata answer on a directory that was formatted but never used."""
    directory = peer.fresh_directory()
    peer.start_another(directory).stop()
    node = peer.start_another(directory)
    took = time.monotonic() - node.began
    cpu = process.cpu_seconds(node.pid)
    node.stop()
    remove(directory)
    return {"ready after": startup(node.facts, took), "CPU": cpu}


def startup(facts: Mapping[str, str], took: float) -> float:
    """A node that formats first, in another process, tells how long the broker itself took."""
    return float(facts.get("seconds", took))


def measure_many_partitions(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Partitions of three segments each, after a clean stop."""
    directory = peer.fresh_directory()
    with peer.start_another(directory) as node:
        fill_partitions(node.bootstrap, scale.partitions)
    node = peer.start_another(directory)
    took = time.monotonic() - node.began
    figures = {
        "ready after": startup(node.facts, took),
        "CPU": process.cpu_seconds(node.pid),
        "resident": process.resident_mib(node.pid),
        "open files": process.open_files(node.pid),
        "mappings": process.mappings(node.pid),
    }
    node.stop()
    remove(directory)
    return figures


def fill_partitions(bootstrap: str, partitions: int) -> None:
    """Every append is a minute after the one before, and a segment lasts a second."""
    start_ms = time.time_ns() // 1_000_000 - 3_600_000
    for first in range(0, partitions, PARTITIONS_A_TOPIC):
        count = min(PARTITIONS_A_TOPIC, partitions - first)
        name = topics.unique_name("many")
        topics.create(bootstrap, name, count, {"segment.ms": "1000"})
        with Wire(bootstrap) as wire:
            batches = batches_over_time(RECORD_BYTES, 1, start_ms, 60_000)
            for _ in range(SEGMENTS):
                request = produce_many(name, next(batches), acks=1, partitions=list(range(count)))
                wire.send(request)
                done = answer("Produce", PRODUCE_VERSION, wire.receive())
                for partition in done.responses[0].partition_responses:
                    refuse(partition.error_code)


def measure_killed(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Killed with everything past the last recovery point that is on disk."""
    directory = peer.fresh_directory()
    node = peer.start_another(directory)
    name = topics.unique_name("killed")
    topics.create(node.bootstrap, name, config={"segment.bytes": str(2**31 - 1)})
    batch = batch_of(1000, 500)
    count = max(2, scale.killed_megabytes * 1_000_000 // len(batch))
    with Wire(node.bootstrap) as wire:
        pump(wire, name, repeat(produce(name, batch, acks=1), count), 5)
    node.kill()
    node = peer.start_another(directory)
    took = time.monotonic() - node.began
    with Wire(node.bootstrap) as wire:
        topics.wait_for_leaders(wire, name, 1)
    node.stop()
    remove(directory)
    return {"ready after": startup(node.facts, took)}


MANY = (
    seconds_figure(under=2),
    Figure("CPU", "s", "lower"),
    Figure("resident", "MiB", "lower", under=191),  # 200 MB
    Figure("open files", "", "lower", under=4000),
    Figure("mappings", "", "lower"),
)
CELLS = (
    Cell(
        "start-empty",
        (seconds_figure(under=0.5), Figure("CPU", "s", "lower")),
        measure_empty,
        starts_nodes=True,
    ),
    Cell("start-many-partitions", MANY, measure_many_partitions, starts_nodes=True, most_rounds=2),
    Cell(
        "start-after-kill",
        (seconds_figure(under=3),),
        measure_killed,
        starts_nodes=True,
        most_rounds=2,
    ),
)
