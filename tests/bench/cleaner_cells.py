"""How fast one cleaner goes over a log in which each key stands three times, and at what price.

The broker under measurement has written the log itself, and is told to compact it by a change of
`min.cleanable.dirty.ratio`; the clock runs from the first bytes that it then reads until the end of
the clean part stands in its checkpoint. A smaller log goes first, unmeasured. Before the figures
count, what is left is looked at: of each key that was compacted there is one record.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from struct import Struct
from threading import Event, Thread

from protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.records.batch import HEADER_BYTES, iter_headers, seal
from protocol.records.builder import build_batch
from protocol.records.compression import Codec, deflate
from storage.files.layout import CLEANER_OFFSETS_FILE
from tests.bench import process, topics
from tests.bench.cell import Cell, Figure, Scale
from tests.bench.frames import batch_of, produce
from tests.bench.peers import Peer, remove
from tests.bench.pump import percentile, pump
from tests.bench.wire import BenchFailed, Wire
from tests.support.worlds.node_process import NodeProcess

TIMES, RECORDS_A_BATCH, KEY_BYTES, VALUE_BYTES = 3, 1000, 10, 100
RECORD_BYTES = 120  # as it lies in a batch
BUFFER_BYTES, SLOT_BYTES, LOAD_FACTOR = 128 << 20, 24, 0.9
SEGMENTS = 10
PACKED_TO = 0.25  # about so much of a batch is left by a codec
CLEANED_WITHIN_SECONDS, LOOKED_AT_SECONDS = 300, 0.005
LEAST_MEGABYTES = 8
STARTED_BYTES = 1 << 18
SETTLE_SECONDS = 2.5  # until what was appended is on the disk
PAUSE_SECONDS = 0.002
SETTINGS = {
    "log.cleaner.threads": "1",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.dedupe.buffer.size": str(BUFFER_BYTES),
}
_LENGTH_AT, _ATTRIBUTES_AT = 8, 21
_INT32, _INT16 = Struct(">i"), Struct(">h")


class Author:
    """Batches of keyed records, made from one that is filled in anew."""

    def __init__(self, keys: int, codec: Codec) -> None:
        """Keys come in an order that looks like chance, the same each time round."""
        self.keys = max(keys // RECORDS_A_BATCH, 1) * RECORDS_A_BATCH
        self._codec = codec
        now = time.time_ns() // 1_000_000
        rows = [(now, b"#" * KEY_BYTES, _value(index)) for index in range(RECORDS_A_BATCH)]
        self._batch = build_batch(rows)
        mark, at = b"#" * KEY_BYTES, 0
        self._places: list[int] = []
        for _ in rows:
            at = self._batch.index(mark, at)
            self._places.append(at)
            at += KEY_BYTES

    @property
    def records(self) -> int:
        """How many `batches` hold."""
        return self.keys * TIMES

    def batches(self) -> Iterator[bytes]:
        """All of them."""
        batch, count = self._batch, self.keys
        number = 0
        for _ in range(TIMES):
            for _ in range(0, count, RECORDS_A_BATCH):
                for place in self._places:
                    batch[place : place + KEY_BYTES] = b"%010d" % (number * 7_368_787 % count)
                    number += 1
                yield self._packed()

    def _packed(self) -> bytes:
        if self._codec is Codec.NONE:
            seal(self._batch, 0, len(self._batch))
            return bytes(self._batch)
        packed = self._batch[:HEADER_BYTES] + deflate(self._codec, self._batch[HEADER_BYTES:])
        _INT32.pack_into(packed, _LENGTH_AT, len(packed) - _LENGTH_AT - 4)
        _INT16.pack_into(packed, _ATTRIBUTES_AT, self._codec)
        seal(packed, 0, len(packed))
        return bytes(packed)


def _value(number: int) -> bytes:
    text = f'{{"balance":{number * 7919 % 100_003},"currency":"EUR","owner":"{number:x}"}}'.encode()
    return text.ljust(VALUE_BYTES, b".")


class Run:
    """One topic on one node, filled, and then compacted."""

    def __init__(self, peer: Peer, node: NodeProcess, directory: Path, codec: Codec) -> None:
        self._peer, self._node, self._directory = peer, node, directory
        self._codec = codec
        self.name = topics.unique_name("compacted")
        self._keys = 0
        self._sizes: dict[str, int] = {}

    def fill(self, megabytes: int) -> int:
        """Appends the log; how many records."""
        author = Author(megabytes * 1_000_000 // TIMES // RECORD_BYTES, self._codec)
        packed = 1 if self._codec is Codec.NONE else PACKED_TO
        size = int(megabytes * 1_000_000 * packed) // SEGMENTS
        config = {
            **self._peer.cached_config,
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "1.0",
            "internal.segment.bytes": str(size),
            "file.delete.delay.ms": "0",
        }
        topics.create(self._node.bootstrap, self.name, config=config)
        with Wire(self._node.bootstrap) as wire:
            frames = (produce(self.name, batch, acks=1) for batch in author.batches())
            pump(wire, self.name, frames, 5)
        os.sync()
        time.sleep(SETTLE_SECONDS if megabytes > LEAST_MEGABYTES else 0)
        self._keys, self._sizes = author.keys, self._sizes_now()
        return author.records

    @property
    def compacted_bytes(self) -> int:
        """So large were the segments that the run went over, before it."""
        end = self.first_dirty
        return sum(size for base, size in self._sizes.items() if int(base) < end)

    def compact(self) -> tuple[float, float]:
        """Seconds, and CPU seconds, from the first read to the checkpoint."""
        read = process.read_bytes(self._node.pid)
        with Wire(self._node.bootstrap) as wire:
            entry = AlterableConfig(
                name="min.cleanable.dirty.ratio", config_operation=0, value="0.01"
            )
            resource = AlterConfigsResource(
                resource_type=2, resource_name=self.name, configs=[entry]
            )
            wire.call(
                "IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest(resources=[resource])
            )
        cpu = process.cpu_seconds(self._node.pid)
        self._until(lambda: process.read_bytes(self._node.pid) > read + STARTED_BYTES)
        began = time.perf_counter()
        self._until(self._is_clean)
        return time.perf_counter() - began, process.cpu_seconds(self._node.pid) - cpu

    def check(self) -> None:
        """Of each key that was compacted one record is left; BenchFailed otherwise."""
        left = sum(
            header.record_count
            for path in self._logs()
            if int(path.stem) < self.first_dirty
            for _, header in iter_headers(path.read_bytes())
        )
        if left != self._keys:
            raise BenchFailed(f"{left} records are left of {self._keys} keys")

    def _until(self, holds) -> None:  # type: ignore[no-untyped-def]
        deadline = time.monotonic() + CLEANED_WITHIN_SECONDS
        while not holds():
            if time.monotonic() > deadline:
                raise BenchFailed(f"{self.name} was not compacted in time")
            time.sleep(LOOKED_AT_SECONDS)

    def _is_clean(self) -> bool:
        return self.first_dirty >= max(map(int, self._sizes))

    @property
    def first_dirty(self) -> int:
        """Up to where the broker says that the topic is clean."""
        path = self._directory / CLEANER_OFFSETS_FILE
        rows = (line.split() for line in path.read_text().splitlines()) if path.exists() else ()
        return next((int(row[2]) for row in rows if row[0] == self.name), 0)

    def _logs(self) -> list[Path]:
        return list((self._directory / f"{self.name}-0").glob("*.log"))

    def _sizes_now(self) -> dict[str, int]:
        return {path.stem: path.stat().st_size for path in self._logs()}


@contextmanager
def _node(peer: Peer) -> Iterator[tuple[NodeProcess, Path]]:
    directory = peer.fresh_directory()
    node = peer.start_another(directory, SETTINGS)
    try:
        yield node, directory
    finally:
        node.stop()
        remove(directory)


def clean(codec: Codec, peer: Peer, scale: Scale) -> Mapping[str, float]:
    """MB/s of the log as it lay there, CPU, and memory beyond the map of keys."""
    with _node(peer) as (node, directory):
        _warm_up(peer, node, directory, codec, scale)
        run = Run(peer, node, directory, codec)
        records = run.fill(max(scale.megabytes, LEAST_MEGABYTES))
        before = process.resident_mib(node.pid)
        process.forget_peak(node.pid)
        seconds, cpu = run.compact()
        peak = process.peak_resident_mib(node.pid)
        megabytes, cleaned = run.compacted_bytes / 1e6, run.first_dirty
        node.stop()
        run.check()
    map_mib = min(records / LOAD_FACTOR * SLOT_BYTES, BUFFER_BYTES) / (1 << 20)
    return {
        "rate": megabytes / seconds,
        "records": cleaned / 1e6 / seconds,
        "broker CPU": cpu * 1000 / megabytes,
        "beyond the map": max(0.0, peak - before - map_mib),
    }


def under_load(peer: Peer, scale: Scale) -> Mapping[str, float]:
    """Small appends to another topic, one at a time, before and during a clean: p99 of each."""
    with _node(peer) as (node, directory):
        _warm_up(peer, node, directory, Codec.NONE, scale)
        run = Run(peer, node, directory, Codec.NONE)
        run.fill(max(scale.megabytes, LEAST_MEGABYTES))
        other = topics.unique_name("beside")
        topics.create(node.bootstrap, other, config=peer.cached_config)
        quiet = _appends(node, other)
        time.sleep(max(scale.seconds, 0.2))
        before = quiet.stop()
        busy = _appends(node, other)
        run.compact()
        during = busy.stop()
    return {
        "p99": percentile(during, 99) / 1e6,
        "p50": percentile(during, 50) / 1e6,
        "p99 without": percentile(before, 99) / 1e6,
        "times without": percentile(during, 99) / percentile(before, 99),
    }


class _appends(Thread):  # noqa: N801 - reads as what it does
    """One record a request, again and again, a moment apart, until stopped."""

    def __init__(self, node: NodeProcess, topic: str) -> None:
        super().__init__(daemon=True)
        self._where, self._topic = node.bootstrap, topic
        self._stop_it = Event()
        self._took: list[int] = []
        self.start()

    def run(self) -> None:
        request = produce(self._topic, batch_of(100, 1), acks=1)
        with Wire(self._where) as wire:
            while not self._stop_it.wait(PAUSE_SECONDS) or len(self._took) < 10:
                began = time.perf_counter_ns()
                wire.send(request)
                wire.receive()
                self._took.append(time.perf_counter_ns() - began)

    def stop(self) -> list[int]:
        """How long each one took, in ns."""
        self._stop_it.set()
        self.join()
        return self._took


def _warm_up(peer: Peer, node: NodeProcess, directory: Path, codec: Codec, scale: Scale) -> None:
    if scale.megabytes < LEAST_MEGABYTES:
        return
    run = Run(peer, node, directory, codec)
    run.fill(scale.megabytes // 4)
    run.compact()
    topics.delete(node.bootstrap, run.name)


FIGURES = (
    Figure("rate", "MB/s", "higher", must=1.0, aim=3.0),
    Figure("records", "M/s", "higher"),
    Figure("broker CPU", "ms/MB", "lower", must=1.0, aim=1 / 3),
    Figure("beyond the map", "MiB", "lower", under=64),
)
CELLS = (
    Cell("clean-raw", FIGURES, partial(clean, Codec.NONE), starts_nodes=True, most_rounds=3),
    Cell("clean-lz4", FIGURES, partial(clean, Codec.LZ4), starts_nodes=True, most_rounds=3),
    Cell(
        "clean-beside-produce",
        (
            Figure("p99", "ms", "lower", must=1.0),
            Figure("p50", "ms", "lower"),
            Figure("p99 without", "ms", "lower"),
            Figure("times without", "", "lower", must=1.0, aim=1.25),
        ),
        under_load,
        starts_nodes=True,
        most_rounds=3,
    ),
)
