"""scripts/soak: a broker under 70 % of its load for as long as it is told, and the verdict on it.

Meanwhile retention removes, compaction cleans, members of groups come and go, and groups are made
and deleted. At the end every acknowledged record that is still retained has been read back, right
and in order; memory and descriptors are shown as they were at the beginning and as they became.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from rich.console import Console
from rich.table import Table

from tests.bench import process, topics
from tests.soak.clients import (
    LOG,
    PARTITIONS,
    POLLED_AT_ONCE,
    STATE,
    Written,
    churn,
    consumer,
    follow,
    take,
    write,
)
from tests.soak.oracle import RECORD, Numbers, missing_ends, slope_an_hour, stale_keys
from tests.soak.processes import Run
from tests.support.clients.scraped import metric_of
from tests.support.ended import ends_in_order
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.node_process import NodeProcess

CACHE = Path(__file__).resolve().parents[2] / ".cache"
SETTINGS = {
    "log.retention.check.interval.ms": "2000",
    "log.initial.task.delay.ms": "1000",
    "log.cleaner.backoff.ms": "2000",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.num.partitions": "5",
}
LOG_CONFIG = {"segment.bytes": str(16 << 20), "retention.bytes": str(96 << 20)}
STATE_CONFIG = {
    "cleanup.policy": "compact",
    "segment.bytes": str(4 << 20),
    "min.cleanable.dirty.ratio": "0.3",
}
MOST_SLOPE_MIB, MOST_FILES_MORE, JUDGED_FROM_MINUTES = 20.0, 20, 10
SCAN_SECONDS = 120  # of a partition; what was not read by then is missing
WARM_SHARE = 0.25  # of the run: until then caches fill
COUNTED = (
    ("compaction runs", "horolog_log_cleaner_runs_total"),
    ("segments removed", "horolog_retention_removed_segments_total"),
    ("group generations", "horolog_group_generations_total"),
    ("unexpected errors", "horolog_request_failures_total"),
    ("failed tasks", "horolog_task_failures_total"),
)
console = Console(width=None if sys.stdout.isatty() else 110)


@dataclass
class Sample:
    """The broker's process at one moment."""

    seconds: float
    memory_mib: float
    files: int


def load(node: NodeProcess, rate: float, first: dict[int, int], seconds: float) -> Any:
    """So long of it: samples, and what the clients report."""
    context = multiprocessing.get_context("spawn")
    run = Run(context, context.Event())
    run.begin("writer", write, node.bootstrap, rate, first)
    run.begin("reader", follow, node.bootstrap)
    run.begin("groups", churn, node.bootstrap)
    samples, began = [], time.monotonic()
    while (passed := time.monotonic() - began) < seconds and run.is_whole:
        memory, files = process.resident_mib(node.pid), process.open_files(node.pid)
        samples.append(Sample(passed, memory, files))
        progress(f"{passed:5.0f} s  {memory:6.1f} MiB  {files} files")
        time.sleep(min(max(1.0, seconds / 120), seconds / 4))
    return samples, run.end()


def scan(bootstrap: str, written: Written) -> tuple[int, list[str]]:
    """Reads all that is retained once more, from the start; how many records, and the faults."""
    numbers, found = Numbers("scan", may_repeat=False), {}
    for topic, partitions in ((LOG, PARTITIONS), (STATE, 2)):
        for index in range(partitions):
            reader = consumer(bootstrap, "soak-scan")
            start, end = reader.get_watermark_offsets(TopicPartition(topic, index), timeout=30)
            reader.assign([TopicPartition(topic, index, start)])
            position = start
            deadline = time.monotonic() + SCAN_SECONDS
            while position < end and time.monotonic() < deadline:
                for message in reader.consume(min(POLLED_AT_ONCE, end - position), 0.5):
                    if topic == LOG:
                        take(reader, numbers, message)
                    elif message.error() is None:
                        key = message.key() or b""
                        found[key] = RECORD.unpack_from(message.value() or b"")[1]
                    position = (message.offset() or 0) + 1
            reader.close()
    faults = numbers.faults + missing_ends(written.acknowledged, numbers.expected)
    return numbers.records, faults + stale_keys(written.keys_acknowledged, written.keys_sent, found)


def settled(samples: list[Sample]) -> list[Sample]:
    """Those after the caches are filled."""
    return [each for each in samples if each.seconds >= samples[-1].seconds * WARM_SHARE]


def judge(samples: list[Sample], minutes: float) -> tuple[list[tuple[str, str]], list[str]]:
    """Rows on memory and descriptors, and what is wrong with them. Short runs have no slope."""
    late = settled(samples)
    slope = slope_an_hour([(each.seconds, each.memory_mib) for each in late])
    more = late[-1].files - late[0].files
    memory, files = [each.memory_mib for each in samples], [each.files for each in samples]
    rows = [
        (
            "memory, first - most - last (MiB)",
            " - ".join(f"{each:.0f}" for each in (memory[0], max(memory), memory[-1])),
        ),
        ("memory slope after warming up", f"{slope:+.1f} MiB an hour"),
        ("descriptors, first - most - last", f"{files[0]} - {max(files)} - {files[-1]}"),
    ]
    faults = []
    if minutes >= JUDGED_FROM_MINUTES and slope > MOST_SLOPE_MIB:
        faults.append(f"memory rises by {slope:.1f} MiB an hour")
    if minutes >= JUDGED_FROM_MINUTES and more > MOST_FILES_MORE:
        faults.append(f"{more} more descriptors at the end")
    return rows, faults


def main() -> int:
    """0 when nothing is wrong."""
    options = parse()
    ends_in_order()
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="soak-") as scratch:
        node = start_broker(Path(scratch) / "data", SETTINGS)
        try:
            return soak(node, options.minutes, options.share)
        finally:
            node.stop()


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--share", type=float, default=0.7, help="of the rate at full speed")
    return parser.parse_args()


def soak(node: NodeProcess, minutes: float, share: float) -> int:
    topics.create(node.bootstrap, LOG, PARTITIONS, LOG_CONFIG)
    topics.create(node.bootstrap, STATE, 2, STATE_CONFIG)
    progress("at full speed, to know what that is")
    _, first = load(node, 0, {}, min(15.0, minutes * 15))
    fastest: Written = first["writer"]
    rate = share * fastest.records / fastest.seconds
    progress(f"{fastest.records / fastest.seconds:.0f} records a second; now {rate:.0f}")
    samples, told = load(node, rate, fastest.acknowledged, minutes * 60)
    written: Written = told["writer"]
    written.keys_sent = {**fastest.keys_sent, **written.keys_sent}
    written.keys_acknowledged = {**fastest.keys_acknowledged, **written.keys_acknowledged}
    scanned, faults = scan(node.bootstrap, written)
    rows, more = judge(samples, minutes)
    faults += more + fastest.faults + written.faults
    faults += [fault for name in ("reader", "groups") for fault in told[name].faults]
    counts = [(text, metric_of(node, name)) for text, name in COUNTED]
    faults += [f"{text}: {count:.0f}" for text, count in counts[-2:] if count]
    show(written, told, scanned, [*rows, *((text, f"{count:.0f}") for text, count in counts)])
    for fault in faults:
        console.print(fault, style="red")
    console.print("verdict: " + ("FAULTS" if faults else "every record as acknowledged, in order"))
    return int(bool(faults))


def show(written: Written, told: Any, scanned: int, rows: list[tuple[str, str]]) -> None:
    """The table."""
    reader, groups = told["reader"], told["groups"]
    table = Table("what", "figure", title=f"soak of {written.seconds / 60:.1f} minutes")
    a_second = written.records / written.seconds
    for row in (
        ("acknowledged", f"{written.records} records, {a_second:.0f} a second"),
        ("read as written", f"{reader.records}; {reader.skipped} removed before they were read"),
        ("read by groups", f"{groups.records}; {groups.repeated} again, {groups.skipped} removed"),
        ("read back at the end", f"{scanned}"),
        *rows,
    ):
        table.add_row(*row)
    console.print(table)


def progress(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
