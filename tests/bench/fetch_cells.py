"""Fetch by prebuilt requests from the page cache."""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import repeat

from tests.bench.cell import Cell, Scale, cpu, rate
from tests.bench.frames import FETCH_VERSION, batch_of, fetch_from, produce
from tests.bench.peers import Peer
from tests.bench.pump import pump, refuse
from tests.bench.topics import topic
from tests.bench.wire import BenchFailed, Wire, answer

RECORD_BYTES, RECORDS_A_BATCH = 1000, 500
MIB = 1 << 20


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


CELLS = (
    Cell("fetch-raw-8mib", (rate(must=0.7, aim=1.2), cpu()), partial(measure_fetch, 8 * MIB)),
    Cell("fetch-raw-1mib", (rate(), cpu()), partial(measure_fetch, MIB)),
)
