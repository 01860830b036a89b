"""What a tier takes from readers at the end and from a steady producer, beside a topic without one.

One broker, two kinds of topics in turns (A B, B A, …), so that a bad minute of the machine meets
both: of the tiered one closed segments are being copied all the time that is measured. Copying is
bounded by `remote.log.manager.copy.max.bytes.per.second`, as an operator would have it who shares a
line. The store is on this machine, but for others' CPU it stands back: it would have its own.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import repeat
from statistics import median
from typing import Final, NamedTuple

from tests.bench import process
from tests.bench.cell import Cell, Figure, Scale, latency
from tests.bench.fetch_cells import MIB, RECORD_BYTES, RECORDS_A_BATCH
from tests.bench.frames import FETCH_VERSION, batch_of, fetch_from, produce
from tests.bench.peers import Peer
from tests.bench.pump import for_seconds, percentile, pump, refuse
from tests.bench.tier.nodes import TieredNode, stand_back, tiered
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed, Wire, answer

COPIED_A_SECOND: Final = 25_000_000
PACED_A_SECOND: Final = 20_000_000
SEGMENT_BYTES: Final = 8 << 20
DEPTH: Final = 5
PAIRS: Final = 4
LEAST_SECONDS: Final = 0.5
BEGINS_WITHIN_SECONDS, IDLE_SECONDS, IDLE_PART = 30, 0.3, 0.05
SETTLES_WITHIN_SECONDS: Final = 120
BATCH_BYTES: Final = RECORD_BYTES * RECORDS_A_BATCH

Slice = Callable[[TieredNode, str, float], Mapping[str, float]]
"""Measures one topic for so many seconds."""


class Kind(NamedTuple):
    """One of the two topics of a pair."""

    name: str
    config: Mapping[str, str]


WITH = Kind("with", {"remote.storage.enable": "true", "local.retention.bytes": str(SEGMENT_BYTES)})
WITHOUT = Kind("without", {})


def measure_pairs(measure: Slice, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Medians of the pairs, and how much less the one with a tier had."""
    seconds = max(LEAST_SECONDS, scale.seconds)
    bound = {"remote.log.manager.copy.max.bytes.per.second": str(COPIED_A_SECOND)}
    pairs: list[dict[str, dict[str, float]]] = []
    with tiered(peer, bound) as node:
        if node.server is not None:
            stand_back(node.server)
        for number in range(PAIRS if scale.seconds >= 1 else 1):
            pair = {}
            for kind in (WITH, WITHOUT) if number % 2 == 0 else (WITHOUT, WITH):
                with _busy_topic(node, kind, seconds) as name:
                    before = node.stored_bytes(name)
                    pair[kind.name] = dict(measure(node, name, seconds))
                    copied = node.stored_bytes(name) - before
                    pair[kind.name]["copied"] = copied / 1e6 / seconds
            pairs.append(pair)
    return _figures(pairs)


def _figures(pairs: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    found = {"copied": median(pair["with"]["copied"] for pair in pairs)}
    for figure in pairs[0]["with"].keys() - {"copied"}:
        for kind in ("with", "without"):
            found[f"{figure} {kind}"] = median(pair[kind][figure] for pair in pairs)
    ratios = [pair["with"]["rate"] / pair["without"]["rate"] for pair in pairs]
    return {**found, "lost": max(0.01, (1 - median(ratios)) * 100)}


@contextmanager
def _busy_topic(node: TieredNode, kind: Kind, seconds: float) -> Iterator[str]:
    """A topic with closed segments for more than so many seconds of copying, which has begun."""
    fixed = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
    settle(node)
    with topic(node.bootstrap, "loss", config={**fixed, **kind.config}) as name:
        count = int(COPIED_A_SECOND * (seconds + 1) * 1.5 // BATCH_BYTES) + 2
        with Wire(node.bootstrap) as wire:
            request = produce(name, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)
            pump(wire, name, repeat(request, count), DEPTH)
        if kind is WITH:
            ends = time.monotonic() + BEGINS_WITHIN_SECONDS
            while not node.stored_bytes(name):
                if time.monotonic() > ends:
                    raise BenchFailed("nothing is copied")
                time.sleep(0.05)
        yield name


def settle(node: TieredNode) -> None:
    """Until broker and store have nothing to do: of the topic before this one, too."""
    ends = time.monotonic() + SETTLES_WITHIN_SECONDS
    while time.monotonic() < ends:
        before = sum(node.cpu().values())
        time.sleep(IDLE_SECONDS)
        if sum(node.cpu().values()) - before < IDLE_SECONDS * IDLE_PART:
            return
    raise BenchFailed("the broker finds no rest")


def following(node: TieredNode, name: str, seconds: float) -> Mapping[str, float]:
    """A reader at the end, behind a producer at full speed."""
    context = multiprocessing.get_context("spawn")
    ready, go = context.Event(), context.Event()
    writer = context.Process(
        target=_write, args=(node.bootstrap, name, seconds, ready, go), daemon=True
    )
    writer.start()
    try:
        if not ready.wait(BEGINS_WITHIN_SECONDS):
            raise BenchFailed("the producer does not begin")
        offset = node.special(name, -1)
        before = process.cpu_seconds(node.process.pid)
        with Wire(node.bootstrap) as wire:
            go.set()
            took, megabytes = _follow(wire, name, offset, seconds)
        spent = process.cpu_seconds(node.process.pid) - before
    finally:
        go.set()
        writer.join(BEGINS_WITHIN_SECONDS)
    return {"rate": megabytes / took, "broker CPU": spent * 1000 / megabytes}


def _write(bootstrap: str, name: str, seconds: float, ready, go) -> None:  # type: ignore[no-untyped-def]
    """A producer's process."""
    request = produce(name, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)
    with Wire(bootstrap) as wire:
        ready.set()
        go.wait()
        pump(wire, name, for_seconds(seconds, request), DEPTH)


def _follow(wire: Wire, name: str, offset: int, seconds: float) -> tuple[float, float]:
    """Seconds, and the MB that came in them."""
    request, batch_bytes = fetch_from(name, MIB), len(batch_of(RECORD_BYTES, RECORDS_A_BATCH))
    batches, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        wire.send(request.with_number(offset))
        got = answer("Fetch", FETCH_VERSION, wire.receive()).responses[0].partitions[0]
        refuse(got.error_code)
        come = len(got.records) // batch_bytes if got.records else 0
        batches, offset = batches + come, offset + come * RECORDS_A_BATCH
    if not batches:
        raise BenchFailed("the reader has nothing")
    return took, batches * BATCH_BYTES / 1e6


def pacing(node: TieredNode, name: str, seconds: float) -> Mapping[str, float]:
    """A producer at a fixed rate, which copying keeps up with, and its waiting for answers."""
    with Wire(node.bootstrap) as wire:
        request = produce(name, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)
        done = pump(wire, name, _evenly(request, seconds), 1)
    return {
        "rate": len(done.latencies_ns) * BATCH_BYTES / 1e6 / done.seconds,
        "p50": percentile(done.latencies_ns, 50) / 1e6,
        "p99": percentile(done.latencies_ns, 99) / 1e6,
    }


def _evenly(request: bytes, seconds: float) -> Iterator[bytes]:
    due = began = time.perf_counter()
    yield request
    while due - began < seconds:
        time.sleep(max(0.0, due - time.perf_counter()))
        yield request
        due += BATCH_BYTES / PACED_A_SECOND


def measure_copying(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Copying alone, without a bound: CPU for each MB, of the broker and of the store."""
    waits = {"remote.storage.enable": "true", "remote.log.copy.disable": "true"}
    fixed = {"segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
    count = max(40, scale.megabytes * 1_000_000 // 2 // BATCH_BYTES)
    with (
        tiered(peer, {}) as node,
        topic(node.bootstrap, "copying", config={**fixed, **waits}) as name,
    ):
        with Wire(node.bootstrap) as wire:
            request = produce(name, batch_of(RECORD_BYTES, RECORDS_A_BATCH), acks=1)
            pump(wire, name, repeat(request, count), DEPTH)
        settle(node)
        wanted = node.closed_bytes(name)
        before, began = node.cpu(), time.perf_counter()
        node.change(name, {"remote.log.copy.disable": "false"})
        while node.stored_bytes(name) < wanted:
            time.sleep(0.05)
        seconds, after = time.perf_counter() - began, node.cpu()
    megabytes = wanted / 1e6
    figures = {"rate": megabytes / seconds}
    for who, spent in after.items():
        figures[f"{who} CPU"] = (spent - before[who]) * 1000 / megabytes
    return figures


COPIED = Figure("copied", "MB/s", "higher")


def _cell(name: str, measure: Slice, *figures: Figure) -> Cell:
    """A cell of pairs; each figure is there with a tier and without."""
    both = [
        replace(each, name=f"{each.name} {kind.name}")
        for each in figures
        for kind in (WITH, WITHOUT)
    ]
    judged = (Figure("lost", "%", "lower", under=5), *both, COPIED)
    return Cell(name, judged, partial(measure_pairs, measure), starts_nodes=True, fills_memory=True)


RATE, CPU = Figure("rate", "MB/s", "higher"), Figure("broker CPU", "ms/MB", "lower")
CELLS = (
    _cell("tier-loss-reader", following, RATE, CPU),
    _cell("tier-loss-paced", pacing, RATE, latency(50), latency(99)),
    Cell(
        "tier-copying",
        (RATE, CPU, Figure("store CPU", "ms/MB", "lower")),
        measure_copying,
        starts_nodes=True,
        most_rounds=3,
    ),
)
