"""What a scrape costs with a thousand partitions: how long it takes, and what clients wait.

Some 950 partitions with a record each and as many committed offsets have series of their own (more
would be shown by topic). While the node is scraped without a pause, a client appends on one
connection: the event loop serves it, so it waits for whatever the scrape does on the loop.
"""

import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Event, Thread

from protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.bench import topics
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import batch_of, produce, produce_many
from tests.bench.peers import Peer, remove
from tests.bench.pump import percentile
from tests.bench.wire import BenchFailed, Wire

PARTITIONS = 940  # and those of __consumer_offsets
PATHS = {"native": "metrics", "kafka names": "metrics/kafka"}
PAUSE_SECONDS = 0.001


def measure(peer: Peer, scale: Scale) -> Mapping[str, float]:
    directory = peer.fresh_directory()
    node = peer.start_another(directory)
    count = min(PARTITIONS, scale.partitions)
    name = topics.unique_name("scraped")
    topics.create(node.bootstrap, name, count)
    fill(node.bootstrap, name, count)
    figures: dict[str, float] = {}
    waits: list[int] = []
    with client(node.bootstrap, name, waits):
        for figure, path in PATHS.items():
            took, size = scrapes(f"http://{node.facts['http']}/{path}", scale.seconds)
            figures[figure] = percentile(took, 50) / 1e6
            figures[f"{figure} size"] = size / 1e6
    figures["client p99"] = percentile(waits, 99) / 1e6
    node.stop()
    remove(directory)
    return figures


def fill(bootstrap: str, name: str, count: int) -> None:
    """A record in each partition, and an offset that a group has committed for it."""
    with Wire(bootstrap) as wire:
        wire.send(produce_many(name, batch_of(100, 1), acks=1, partitions=list(range(count))))
        wire.receive()
        rows = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=0)
            for index in range(count)
        ]
        request = OffsetCommitRequest(
            group_id="scraped", topics=[OffsetCommitRequestTopic(name=name, partitions=rows)]
        )
        deadline = time.monotonic() + topics.READY_WITHIN_SECONDS
        while wire.call("OffsetCommit", 7, request).topics[0].partitions[0].error_code:
            if time.monotonic() > deadline:
                raise BenchFailed("no offset could be committed")
            time.sleep(0.05)


def scrapes(url: str, seconds: float) -> tuple[list[int], int]:
    """How long each took (ns), one after the other for so long, and the size of the last one."""
    took: list[int] = []
    size = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(took) < 2:
        began = time.perf_counter_ns()
        with urllib.request.urlopen(url, timeout=60) as answer:
            size = len(answer.read())
        took.append(time.perf_counter_ns() - began)
    return took[1:], size


@contextmanager
def client(bootstrap: str, name: str, waits: list[int]) -> Iterator[None]:
    """Meanwhile one record after the other is appended; `waits` gets how long each took (ns)."""
    request, over = produce(name, batch_of(100, 1), acks=1), Event()

    def append() -> None:
        with Wire(bootstrap) as wire:
            while not over.wait(PAUSE_SECONDS):
                began = time.perf_counter_ns()
                wire.send(request)
                wire.receive_alone()
                waits.append(time.perf_counter_ns() - began)

    thread = Thread(target=append)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


CELLS = (
    Cell(
        "scrape-1000-partitions",
        (
            Figure("native", "ms", "lower", under=250),
            Figure("native size", "MB", "lower", under=2),
            Figure("kafka names", "ms", "lower", under=250),
            Figure("kafka names size", "MB", "lower", under=2),
            Figure("client p99", "ms", "lower", under=20),
        ),
        measure,
        starts_nodes=True,
        only_ours=True,
    ),
)
