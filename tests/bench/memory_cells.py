"""Memory of a fresh node: idle with a hundred partitions, then under load."""

import time
from collections.abc import Mapping
from contextlib import ExitStack
from itertools import repeat

from tests.bench import process, topics
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.fetch_cells import MIB, RECORDS_A_BATCH, read_all
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer, remove
from tests.bench.pump import pump
from tests.bench.wire import Wire

PARTITIONS = 100
IDLE_CONNECTIONS = 50
SETTLE_SECONDS = 1.0


def measure(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Idle, then the peak while megabytes come in and go out with fifty connections open."""
    directory = peer.fresh_directory()
    node = peer.start_another(directory)
    name = topics.unique_name("memory")
    topics.create(node.bootstrap, name, PARTITIONS)
    time.sleep(SETTLE_SECONDS)
    figures = {
        "idle": process.resident_mib(node.pid),
        "open files": process.open_files(node.pid),
        "mappings": process.mappings(node.pid),
    }
    with ExitStack() as connections:
        for _ in range(IDLE_CONNECTIONS):
            connections.enter_context(Wire(node.bootstrap))
        load(node.bootstrap, name, scale.megabytes * 2)
        figures["load"] = process.peak_resident_mib(node.pid)
    node.stop()
    remove(directory)
    return figures


def load(bootstrap: str, name: str, megabytes: int) -> None:
    """Appends in large and in single batches, then reads everything by large fetches."""
    batch = batch_of(1000, RECORDS_A_BATCH)
    count = max(2, megabytes * 1_000_000 // len(batch))
    with Wire(bootstrap) as wire:
        pump(wire, name, repeat(produce(name, batch, acks=1), count), 5)
        sum(read_all(wire, name, 8 * MIB, count * RECORDS_A_BATCH))


CELLS = (
    Cell(
        "memory",
        (
            Figure("idle", "MiB", "lower", must=1 / 5, aim=1 / 10, under=60),
            Figure("load", "MiB", "lower", must=1 / 5, aim=1 / 10, under=120),
            Figure("open files", "", "lower"),
            Figure("mappings", "", "lower"),
        ),
        measure,
        starts_nodes=True,
        most_rounds=3,
    ),
)
