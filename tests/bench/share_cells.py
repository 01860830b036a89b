"""Share groups: records that members get and accept, what accepting costs, groups that do nothing.

Members are raw connections with one fetch under way each, as KafkaShareConsumer has, so the client
limits nobody. With us what is accepted is on the disk when it is answered, with a Kafka in the page
cache, but in the cells that are `forced`.
"""

import selectors
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import repeat

from tests.bench import process, topics
from tests.bench.cell import Cell, Figure, Scale, cpu, latency, rate
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer, remove
from tests.bench.pump import percentile, pump
from tests.bench.share_member import (
    MAX_RECORDS,
    PATIENCE_SECONDS,
    Member,
    begin,
    find_coordinator,
    start_request,
    topic_id,
)
from tests.bench.topics import topic, unique_name
from tests.bench.wire import BenchFailed, Wire, answer, frame

RECORD_BYTES, RECORDS_A_BATCH = 1000, 100
SPARE = 4
WARM_UP_PART = 5
"""One part in so many is read before the clock starts."""
FORCED_PART = 10
"""One megabyte in so many is read where a Kafka waits for the disk all the time."""
IDLE_GROUPS, CONNECTIONS = 10_000, 20
SETTLE_SECONDS = 1.0


def fill(peer: Peer, name: str, megabytes: float, readers: int) -> int:
    """Appends that much, or what so many readers need to have some; how many records there are."""
    batch = batch_of(RECORD_BYTES, RECORDS_A_BATCH)
    least = SPARE * readers * MAX_RECORDS // RECORDS_A_BATCH
    count = max(least, int(megabytes * 1_000_000) // len(batch))
    with Wire(peer.bootstrap) as wire:
        pump(wire, name, repeat(produce(name, batch, acks=1), count), 5)
    return count * RECORDS_A_BATCH


@contextmanager
def members(peer: Peer, count: int, name: str) -> Iterator[list[Member]]:
    """Members of one new group that reads a topic."""
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(peer.bootstrap)) for _ in range(count)]
        group, of_topic = unique_name("queue"), topic_id(wires[0], name)
        begin(wires[0], group, name)
        made = [Member(wire, group, f"m{at}", of_topic) for at, wire in enumerate(wires)]
        for each in made:
            each.join(name)
        yield made


class Crowd:
    """Members that each have a fetch under way, and send the next one as soon as it is answered."""

    def __init__(self, readers: list[Member]) -> None:
        """All have asked."""
        self._ready = selectors.DefaultSelector()
        for each in readers:
            each.ask()
            self._ready.register(each.wire.socket, selectors.EVENT_READ, each)

    def read(self, wanted: int) -> int:
        """Reads and accepts until so many records came; how many."""
        got = 0
        while got < wanted:
            for key, _ in self._ready.select(PATIENCE_SECONDS):
                got += key.data.take()
                key.data.ask()
        return got


def measure_consume(count: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """One topic with one partition, read by all members until little is left of it."""
    with topic(peer.bootstrap, "queue", config=peer.cached_config) as name:
        records = fill(peer, name, scale.megabytes, count)
        with members(peer, count, name) as readers:
            readers[0].open()
            crowd = Crowd(readers)
            early = crowd.read(records // WARM_UP_PART)
            before, began = peer.cpu_seconds(), time.perf_counter()
            got = crowd.read(records - early - (count + 1) * MAX_RECORDS)
            seconds, after = time.perf_counter() - began, peer.cpu_seconds()
    figures = {"rate": got / seconds}
    if before is not None and after is not None:
        figures["broker CPU"] = (after - before) * 1000 / (got * RECORD_BYTES / 1e6)
    return figures


def accepted_singly(reader: Member, end: float) -> list[int]:
    """Nanoseconds of each request, until a time: whoever is slow must not lose its locks."""
    took: list[int] = []
    for offset in (at for first, last in reader.held for at in range(first, last + 1)):
        began = time.perf_counter_ns()
        reader.acknowledge([(offset, offset)])
        took.append(time.perf_counter_ns() - began)
        if time.perf_counter() >= end:
            break
    reader.held = []
    return took


def measure_acknowledge(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Records that are accepted one by one, each by a request of its own."""
    took: list[int] = []
    with topic(peer.bootstrap, "queue", config=peer.cached_config) as name:
        fill(peer, name, scale.megabytes / 20, 1)
        with members(peer, 1, name) as (reader,):
            reader.open()
            before, end = peer.cpu_seconds(), time.perf_counter() + scale.seconds
            while time.perf_counter() < end or not took:
                took += accepted_singly(reader, end)
                reader.ask()
                reader.take()
            after = peer.cpu_seconds()
    figures = {"p50": percentile(took, 50) / 1e6, "p99": percentile(took, 99) / 1e6}
    if before is not None and after is not None:
        figures["broker CPU"] = (after - before) * 1e6 / len(took)
    return figures


def measure_forced(
    measure: Callable[[Peer, Scale], Mapping[str, float]], peer: Peer, scale: Scale
) -> Mapping[str, float]:
    """The same where also a Kafka has what members say on the disk when it answers them."""
    directory = peer.fresh_directory()
    node = peer.start_another(directory, peer.forcing)
    forced = replace(peer, bootstrap=node.bootstrap, pid=node.pid, node=node)
    less = replace(scale, megabytes=max(scale.megabytes // FORCED_PART, 1))
    try:
        return measure(forced, less)
    finally:
        node.stop()
        remove(directory)


def measure_idle(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Groups that each have a place in a topic, and nothing to do: memory, CPU, how they begin."""
    directory = peer.fresh_directory()
    node = peer.start_another(directory)
    try:
        name = topics.unique_name("queue")
        topics.create(node.bootstrap, name)
        with Wire(node.bootstrap) as wire:
            begin(wire, "first", name)
        before = process.resident_mib(node.pid)
        count = min(IDLE_GROUPS, scale.lookups * 4) - 1  # the first one is there
        began = time.perf_counter()
        begin_groups(node.bootstrap, name, count)
        made = count / (time.perf_counter() - began)
        time.sleep(SETTLE_SECONDS)
        memory, cpu_before = process.resident_mib(node.pid), process.cpu_seconds(node.pid)
        rested = time.perf_counter()
        time.sleep(max(scale.seconds * 2, 0.2))
        used = process.cpu_seconds(node.pid) - cpu_before
        rested = time.perf_counter() - rested
    finally:
        node.stop()
        remove(directory)
    return {
        "memory": (memory - before) * 1024 / count,
        "whole": memory,
        "CPU": used * 1000 / rested,
        "begun": made,
    }


def begin_groups(bootstrap: str, name: str, count: int) -> None:
    """Gives so many groups a place, over a few connections at once."""
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(bootstrap)) for _ in range(CONNECTIONS)]
        while find_coordinator(wires[0], "idle"):
            time.sleep(0.1)
        for first in range(0, count, CONNECTIONS):
            asked = wires[: count - first]
            for at, wire in enumerate(asked, first):
                wire.send(frame("AlterShareGroupOffsets", 0, start_request(f"idle-{at}", name)))
            for wire in asked:
                told = answer("AlterShareGroupOffsets", 0, wire.receive())
                if told.error_code:
                    raise BenchFailed(f"a share group was refused: {told.error_message}")


CONSUME = (rate("records/s", must=1.5), cpu(must=1.0))
ACKNOWLEDGE = (latency(50), latency(99), Figure("broker CPU", "us", "lower", must=1.0))
CELLS = (
    Cell("share-consume-1", CONSUME, partial(measure_consume, 1), fills_memory=True),
    Cell("share-consume-10", CONSUME, partial(measure_consume, 10), fills_memory=True),
    Cell("share-acknowledge", ACKNOWLEDGE, measure_acknowledge),
    Cell(
        "share-acknowledge-forced",
        ACKNOWLEDGE,
        partial(measure_forced, measure_acknowledge),
        starts_nodes=True,
    ),
    Cell(
        "share-consume-forced",
        CONSUME,
        partial(measure_forced, partial(measure_consume, 1)),
        starts_nodes=True,
        fills_memory=True,
    ),
    Cell(
        "share-idle-10k",
        (
            Figure("memory", "KiB each", "lower", must=1.0),
            Figure("whole", "MiB", "lower", must=1.0),
            Figure("CPU", "ms/s", "lower", must=1.0),
            Figure("begun", "groups/s", "higher"),
        ),
        measure_idle,
        starts_nodes=True,
        most_rounds=3,
    ),
)
