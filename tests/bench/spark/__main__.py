"""Our Spark pipeline beside Spark's own Kafka connector: same records, same session, one run.

    scripts/bench spark [--records 10000000] [--rounds 2] [--jobs 'archive*'] [--json FILE]

The connector reads from a real Kafka, but for the rows that say otherwise; ours reads the files of
our broker at work. Both brokers and Spark share the machine. Needs Maven once, for the jars.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from contextlib import ExitStack
from fnmatch import fnmatch
from pathlib import Path

from rich.console import Console

from pipeline.spark.session import open_session
from tests.bench.__main__ import progress
from tests.bench.results import CellResults, as_json
from tests.bench.spark import archives, reads, records, starts, writes
from tests.bench.spark.scene import Job, Measurement, Scene
from tests.bench.table import table
from tests.bench.wire import BenchFailed
from tests.support.ended import ends_in_order
from tests.support.kafka.kafka_oracle import full_kafka
from tests.support.spark.spark_jars import connector_jars
from tests.support.worlds.broker_process import start_broker

CACHE = Path(__file__).resolve().parents[3] / ".cache"
SETTINGS = {"log.message.timestamp.after.max.ms": str(2**63 - 1), "log.retention.ms": "-1"}
JOBS: tuple[Job, ...] = (*reads.JOBS, *archives.JOBS, *starts.JOBS, *writes.JOBS)
OURS, THEIRS = "ours", "theirs"


def main() -> int:
    """Everything in one process, and in directories that go."""
    given = parse()
    ends_in_order()
    chosen = [job for job in JOBS if any(fnmatch(job.name, p) for p in given.jobs.split(","))]
    with ExitStack() as stack:
        CACHE.mkdir(exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="spark-bench-", dir=CACHE))
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        scene = set_up(scratch, given.records, stack)
        results = [measure(job, scene, given.rounds) for job in chosen]
    report(results, given)
    return int(any(result.failures for result in results))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench spark", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", default="*", help="patterns with commas")
    parser.add_argument("--json", type=Path, metavar="FILE")
    return parser.parse_args()


def set_up(scratch: Path, count: int, stack: ExitStack) -> Scene:
    """Two brokers that are filled, and a session that has the connector."""
    jars = ",".join(connector_jars())
    ours = stack.enter_context(start_broker(scratch / "ours", SETTINGS)).bootstrap
    kafka = stack.enter_context(full_kafka(scratch / "kafka", SETTINGS)).bootstrap
    for bootstrap in (ours, kafka):
        for topic, dirty in ((records.CLEAN, False), (records.DIRTY, True)):
            taken = records.fill(bootstrap, topic, count, dirty=dirty)
            progress(f"filled {topic} of {bootstrap}: {count / taken / 1000:,.0f} k rec/s")
        records.make_topic(bootstrap, records.COPY)
    settings = {
        "spark.jars": jars,
        "spark.driver.memory": "4g",
        "spark.local.dir": str(scratch / "spark"),
    }
    spark = open_session("bench", master="local[2]", settings=settings)
    stack.callback(spark.stop)
    return Scene(spark, ours, kafka, scratch / "ours", scratch, count)


def measure(job: Job, scene: Scene, rounds: int) -> CellResults:
    """All rounds of one job, who goes first changes; a failure is named and ends that side."""
    results = CellResults(job)
    sides: list[tuple[str, Measurement]] = [(OURS, job.ours)]
    if job.theirs is not None:
        sides.append((THEIRS, job.theirs))
    for number in range(min(rounds, job.most_rounds)):
        for side, work in sides if number % 2 == 0 else sides[::-1]:
            if side in results.failures:
                continue
            os.sync()
            try:
                figures = work(scene)
                results.add(side, figures)
            except BenchFailed as failure:
                results.failures[side] = str(failure)
                figures = {}
            said = " ".join(f"{name}={value:.4g}" for name, value in figures.items())
            progress(f"{job.name} {side} {said}{results.failures.get(side, '')}")
    return results


def report(results: list[CellResults], given: argparse.Namespace) -> None:
    """The table, and the file for machines."""
    Console(width=None if sys.stdout.isatty() else 150).print(table(results, OURS, THEIRS))
    if given.json:
        made = {"records": given.records, "jobs": as_json(results, OURS, THEIRS)}
        given.json.write_text(json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
