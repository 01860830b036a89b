"""scripts/soak tier: more data than the local disk holds, through a broker with a tier.

A real broker with a small local file system, a real store that speaks S3's protocol, and
librdkafka: a producer writes, a consumer reads from the start meanwhile, and at the end a second
one reads everything again. Each record is compared with what was written, and a checksum over
offset, time, key and value of all records says that all three have seen the same.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from tests.bench import process, topics
from tests.soak.processes import Run
from tests.soak.tier.clients import PARTITIONS, TOPIC, read, write
from tests.soak.tier.local_space import LocalSpace, local_space, peak_of
from tests.soak.tier.records import VALUE_BYTES, Contents, differences
from tests.support.clients.scraped import metric_of
from tests.support.ended import ends_in_order
from tests.support.tier.s3_server import S3Server, only_aws, seaweedfs
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

CACHE = Path(__file__).resolve().parents[3] / ".cache"
TIMES_LESS = 32
"""A segment, and what a partition keeps on the disk, are this part of the local space."""
LEAST_SEGMENT_BYTES = 1 << 20
SHOW_SECONDS, LOOK_SECONDS = 10, 0.1
COUNTED = (
    ("batches refused for want of room", "horolog_disk_refused_batches_total"),
    ("rests of producers for want of room, s in all", "horolog_quota_throttle_seconds_total"),
    ("unexpected errors", "horolog_request_failures_total"),
    ("failed tasks", "horolog_task_failures_total"),
)
HARMLESS = 2
"""The first ones of these are no faults."""
console = Console(width=None if sys.stdout.isatty() else 110)


class Told(NamedTuple):
    """What the run has shown."""

    written: Contents
    followed: Contents
    again: Contents
    peak_bytes: int
    rows: list[tuple[str, str]]


def main() -> int:
    """0 when all contents are equal and the local space was enough."""
    options = parse()
    ends_in_order()
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="soak-tier-") as scratch:
        place, limit = Path(scratch), options.local_mib << 20
        with seaweedfs() as store, local_space(place, limit) as local:
            node = start(store, local, limit)
            try:
                told = run(node, store, local, round(options.gb * 1e9))
            finally:
                node.stop()
        return judge(told, local, limit)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/soak tier", description=__doc__)
    parser.add_argument("--gb", type=float, default=1.0, help="of values, in 10^9 bytes")
    parser.add_argument("--local-mib", type=int, default=256, help="size of the local disk")
    return parser.parse_args()


def start(store: S3Server, local: LocalSpace, limit: int) -> NodeProcess:
    """The broker, with its defaults but for the sizes."""
    settings = {
        "remote.log.storage.system.enable": "true",
        "horolog.tier.url": store.url("volume"),
    }
    with only_aws(store.environment):
        node = start_broker(local.path / "data", settings, log=local.path.parent / "broker.log")
    share = max(LEAST_SEGMENT_BYTES, limit // TIMES_LESS)
    config = {
        "remote.storage.enable": "true",
        "segment.bytes": str(share),
        "local.retention.bytes": str(share),
        "retention.ms": "-1",
    }
    topics.create(node.bootstrap, TOPIC, PARTITIONS, config)
    return node


def run(node: NodeProcess, store: S3Server, local: LocalSpace, size_bytes: int) -> Told:
    """Writes and reads; then reads again."""
    records = size_bytes // VALUE_BYTES // PARTITIONS
    with peak_of(local.used_bytes) as most:
        at = [cpu_of(node, store)]
        both = {"writer": (write, records), "reader": (read, records, "reader")}
        told = clients(node, local, both)
        at.append(cpu_of(node, store))
        told |= clients(node, local, {"again": (read, records, "second reader")})
        at.append(cpu_of(node, store))
    rows = [(text, f"{metric_of(node, name):.0f}") for text, name in COUNTED]
    rows += [
        (f"CPU of the {name}, s a GB", f"{writing:.1f} while writing, {again:.1f} reading again")
        for name, writing, again in spent(at, size_bytes / 1e9)
    ]
    return Told(told["writer"], told["reader"], told["again"], most[0], rows)


def clients(
    node: NodeProcess, local: LocalSpace, wanted: Mapping[str, tuple[Any, ...]]
) -> dict[str, Contents]:
    """Runs them side by side until they have ended, and says meanwhile how full the disk is."""
    context = multiprocessing.get_context("spawn")
    running = Run(context, context.Event())
    for name, (client, *arguments) in wanted.items():
        running.begin(name, client, node.bootstrap, *arguments)
    show_at = time.monotonic()
    while not running.is_over:
        if time.monotonic() >= show_at:
            show_at += SHOW_SECONDS
            progress(f"{' and '.join(wanted)}: {local.used_bytes() >> 20} MiB on the local disk")
        time.sleep(LOOK_SECONDS)
    return running.end()


def cpu_of(node: NodeProcess, store: S3Server) -> dict[str, float]:
    """CPU seconds of the broker and of the store so far."""
    assert store.process is not None
    pids = {"broker": node.pid, "store": store.process.pid}
    return {name: process.cpu_seconds(pid) for name, pid in pids.items()}


def spent(at: list[dict[str, float]], gigabytes: float) -> Iterator[tuple[str, float, float]]:
    """By process, CPU seconds a GB between the first two moments, and between the last two."""
    for name in at[0]:
        first, middle, last = (each[name] for each in at)
        yield name, (middle - first) / gigabytes, (last - middle) / gigabytes


def judge(told: Told, local: LocalSpace, limit: int) -> int:
    """The table and the verdict."""
    written, readers = told.written, (told.followed, told.again)
    faults = [fault for each in (written, *readers) for fault in each.faults]
    faults += [fault for each in readers for fault in differences(written, each)]
    if told.peak_bytes > limit:
        faults.append(f"{told.peak_bytes >> 20} MiB were used of {limit >> 20}")
    faults += [
        f"{text}: {count}" for text, count in told.rows[HARMLESS : len(COUNTED)] if count != "0"
    ]
    kind = "a file system of its own" if local.is_own else "a directory, measured"
    table = Table("what", "figure", title=f"{written.size_bytes / 1e9:.2f} GB through a tier")
    for each in (written, *readers):
        rate = (
            f"{each.records} records, {each.megabytes_a_second:.1f} MB/s, "
            f"nothing for {each.longest_gap:.1f} s at most"
        )
        table.add_row(each.name, rate)
    for name, figure in (
        ("local disk", f"{limit >> 20} MiB, {kind}; {told.peak_bytes >> 20} MiB used at most"),
        *told.rows,
    ):
        table.add_row(name, figure)
    for partition, total in sorted(written.sums.items()):
        table.add_row(f"CRC-32C of partition {partition}", f"{total:08x}")
    console.print(table)
    for fault in faults:
        console.print(fault, style="red")
    console.print("verdict: " + ("FAULTS" if faults else "all contents equal"))
    return int(bool(faults))


def progress(line: str) -> None:
    """What happens meanwhile goes where it does not spoil the table."""
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
