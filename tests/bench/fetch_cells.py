"""Fetch by prebuilt requests from the page cache, and look-ups by time on a filled log."""

import random
import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice, repeat

from tests.bench.cell import Cell, Scale, cpu, latency, rate
from tests.bench.frames import (
    FETCH_VERSION,
    LIST_OFFSETS_VERSION,
    batch_of,
    batches_over_time,
    fetch_from,
    offset_at,
    produce,
)
from tests.bench.peers import Peer
from tests.bench.pump import percentile, pump, refuse
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed, Wire, answer

RECORD_BYTES, RECORDS_A_BATCH = 1000, 500
MIB = 1 << 20
LOOKUP_RECORDS, LOOKUP_STEP_MS = 16, 10  # batches of 16 KB, each ten milliseconds after the last


def fill(peer: Peer, name: str, megabytes: int) -> int:
    """Appends that much; how many records there are then."""
    batch = batch_of(RECORD_BYTES, RECORDS_A_BATCH)
    count = max(2, megabytes * 1_000_000 // len(batch))
    with Wire(peer.bootstrap) as wire:
        pump(wire, name, repeat(produce(name, batch, acks=1), count), 5)
    return count * RECORDS_A_BATCH


def measure_fetch(max_bytes: int, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """One pass over the log, one request under way, as a consumer does; bytes of whole batches."""
    with topic(peer.bootstrap, "fetch", config=peer.cached_config) as name:
        end = fill(peer, name, scale.megabytes)
        with Wire(peer.bootstrap) as wire:
            sum(read_all(wire, name, max_bytes, end))
            before = peer.cpu_seconds()
            began = time.perf_counter()
            megabytes = sum(read_all(wire, name, max_bytes, end)) / 1e6
            seconds = time.perf_counter() - began
            after = peer.cpu_seconds()
    figures = {"rate": megabytes / seconds}
    if before is not None and after is not None:
        figures["broker CPU"] = (after - before) * 1000 / megabytes
    return figures


def read_all(wire: Wire, name: str, max_bytes: int, end: int) -> Iterator[int]:
    """Sizes of what each fetch brought."""
    request = fetch_from(name, max_bytes)
    batch_bytes = len(batch_of(RECORD_BYTES, RECORDS_A_BATCH))
    offset = 0
    while offset < end:
        wire.send(request.with_number(offset))
        got = answer("Fetch", FETCH_VERSION, wire.receive()).responses[0].partitions[0]
        refuse(got.error_code)
        batches = len(got.records) // batch_bytes
        if not batches:
            raise BenchFailed(f"nothing at offset {offset} of {end}")
        offset += batches * RECORDS_A_BATCH
        yield batches * batch_bytes


def measure_lookups(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Random times over a log of records that are spread evenly in time."""
    first_ms = time.time_ns() // 1_000_000 - 86_400_000
    batches = max(3, scale.megabytes * 1_300_000 // (RECORD_BYTES * LOOKUP_RECORDS))
    with (
        topic(peer.bootstrap, "lookup", config=peer.cached_config) as name,
        Wire(peer.bootstrap) as wire,
    ):
        log = batches_over_time(RECORD_BYTES, LOOKUP_RECORDS, first_ms, LOOKUP_STEP_MS)
        requests = (produce(name, batch, acks=1) for batch in islice(log, batches))
        pump(wire, name, requests, 5)
        asked = random.Random(5)
        latencies = [
            look_up(wire, name, first_ms, asked.randrange(batches)) for _ in range(scale.lookups)
        ]
    return {"p50": percentile(latencies, 50) / 1e6, "p99": percentile(latencies, 99) / 1e6}


def look_up(wire: Wire, name: str, first_ms: int, batch: int) -> int:
    """How long one look-up took (ns); it asks between two batches and checks the answer."""
    request = offset_at(name).with_number(first_ms + batch * LOOKUP_STEP_MS - LOOKUP_STEP_MS // 2)
    began = time.perf_counter_ns()
    wire.send(request)
    received = wire.receive()
    took = time.perf_counter_ns() - began
    found = answer("ListOffsets", LIST_OFFSETS_VERSION, received).topics[0].partitions[0]
    refuse(found.error_code)
    if found.offset != batch * LOOKUP_RECORDS:
        raise BenchFailed(f"offset {found.offset} in place of {batch * LOOKUP_RECORDS}")
    return took


CELLS = (
    Cell("fetch-raw-8mib", (rate(must=0.7, aim=1.2), cpu()), partial(measure_fetch, 8 * MIB)),
    Cell("fetch-raw-1mib", (rate(), cpu()), partial(measure_fetch, MIB)),
    Cell("lookup-by-time", (latency(50), latency(99)), measure_lookups),
)
