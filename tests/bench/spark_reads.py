"""Our Spark source beside Spark's own Kafka connector: same records, same session, one run.

    python -m tests.bench.spark_reads [--records 3000000] [--against-kafka] [--rounds 2]

The connector reads from a real Kafka with `--against-kafka`, and from our broker in any case. Each
figure is the best of the rounds; all brokers and Spark share the machine. Needs Maven once, for the
connector's jars.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from confluent_kafka.admin import AdminClient, NewTopic

from pipeline.session import open_session
from pipeline.sinks.topic_writer import TopicWriter
from pipeline.sources.options import parse
from pipeline.sources.planning import plan_tasks
from tests.support.broker_process import start_broker
from tests.support.kafka_oracle import start_kafka

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JARS = Path(__file__).resolve().parents[2] / ".cache" / "spark-kafka"
PARTITIONS = 4
FRAME_ROWS = 100_000
HOURS = 72
HOUR_MS = 3_600_000
BEGIN_MS = 1_700_000_000_000
DIRTY_MS = 2_051_222_400_000  # 2035
DIRTY_SHARE = 0.03
COORDINATES = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.12.0",
)
SETTINGS = {"log.message.timestamp.after.max.ms": str(2**63 - 1), "log.retention.ms": "-1"}
CLEAN, DIRTY, COPY = "clean", "dirty", "copy"


def connector_jars() -> list[str]:
    """The connector and what it needs, from Maven."""
    wanted = [JARS / "{1}-{2}.jar".format(*each.split(":")) for each in COORDINATES]
    for jar, coordinates in zip(wanted, COORDINATES, strict=True):
        if not jar.exists():
            subprocess.run(
                ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}",
                 f"-DoutputDirectory={JARS}"],
                check=True,
            )  # fmt: skip
    return [str(jar) for jar in wanted]


def frames(records: int, *, dirty: bool) -> Iterator[pa.RecordBatch]:
    """Records of about 180 bytes over 72 hours, each up to 5 s from its place; some of 2035."""
    dice = np.random.default_rng(5)
    text = "x" * 99
    values = pa.array([
        f'{{"sensor":"s{n % 10007:05d}","value":{n * 0.37:.6f},"text":"{text[n % 60:]}"}}'
        for n in range(FRAME_ROWS)
    ]).cast(pa.binary())  # fmt: skip
    for first in range(0, records, FRAME_ROWS):
        number = np.arange(first, min(first + FRAME_ROWS, records))
        times = BEGIN_MS + number * (HOURS * HOUR_MS) // records
        times += dice.integers(-5000, 5001, len(number))
        if dirty:
            times = np.where(dice.random(len(number)) < DIRTY_SHARE, DIRTY_MS, times)
        keys = pa.array([f"key-{each:012d}" for each in number % 999_983]).cast(pa.binary())
        columns = [keys, values.slice(0, len(number)), pa.array(times)]
        yield pa.RecordBatch.from_arrays(columns, ["key", "value", "timestampMs"])


def fill(bootstrap: str, topic: str, records: int, *, dirty: bool) -> float:
    """Make and fill a topic; seconds that the writing alone took."""
    made = NewTopic(topic, PARTITIONS, 1, config={"segment.bytes": str(128 << 20)})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([made])[topic].result(60)
    writer, seconds = TopicWriter(bootstrap, topic), 0.0
    for frame in frames(records, dirty=dirty):
        began = time.perf_counter()
        writer.write(frame)
        seconds += time.perf_counter() - began
    writer.close()
    return seconds


def drained(frame: "DataFrame") -> None:
    """Bring every row to the end of a query, and drop it there."""
    frame.write.format("noop").mode("overwrite").save()


def summed(frame: "DataFrame") -> int:
    """Look at two columns of every row; how many rows there are."""
    row = frame.selectExpr("min(offset)", "max(timestamp)", "count(timestamp)").collect()[0]
    return int(row[2])


def counted(frame: Callable[[], "DataFrame"]) -> int:
    """How many rows there are."""
    return frame().count()


class Bench:
    """Figures of one session."""

    def __init__(self, spark: "SparkSession", records: int, rounds: int) -> None:
        self.spark, self.records, self.rounds = spark, records, rounds
        self.figures: list[dict[str, Any]] = []

    def measure(self, name: str, work: Callable[[], object]) -> None:
        """The best of the rounds."""
        seconds, answer = [], None
        for _ in range(self.rounds):
            began = time.perf_counter()
            answer = work()
            seconds.append(time.perf_counter() - began)
        best = min(seconds)
        figure = {"cell": name, "s": round(best, 2), "k_rec_s": round(self.records / best / 1000)}
        if answer is not None:
            figure["answer"] = answer
        self.figures.append(figure)
        print(json.dumps(figure), flush=True)

    def ours(self, options: dict[str, str], schema: str = "") -> "DataFrame":
        """Our source."""
        reader = self.spark.read.format("horolog").options(**options)
        return (reader.schema(schema) if schema else reader).load()

    def connector(self, bootstrap: str, topic: str = CLEAN, **options: str) -> "DataFrame":
        """Spark's own."""
        there = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
        return self.spark.read.format("kafka").options(**there, **options).load()

    def reads(
        self, name: str, frame: Callable[[], "DataFrame"], narrow: Callable[[], "DataFrame"]
    ) -> None:
        """All columns, and two; each round has its own frame, for Spark keeps what was shuffled."""
        self.measure(f"{name}, all columns", lambda: drained(frame()))
        self.measure(f"{name}, offset and timestamp", lambda: summed(narrow()))


def hour_of(topic: str) -> dict[str, str]:
    """The middle hour."""
    low = BEGIN_MS + HOURS // 2 * HOUR_MS
    times = {"startingTimestamp": str(low), "endingTimestamp": str(low + HOUR_MS)}
    return {"subscribe": topic, **times}


def exact(records: int, *, dirty: bool) -> int:
    """How many records lie in the middle hour."""
    low = BEGIN_MS + HOURS // 2 * HOUR_MS
    count = 0
    for frame in frames(records, dirty=dirty):
        times = frame["timestampMs"].to_numpy()
        count += int(((times >= low) & (times < low + HOUR_MS)).sum())
    return count


def run(bench: Bench, ours: str, kafka: str | None) -> None:
    """All cells, against brokers that are filled."""
    files = {"kafka.bootstrap.servers": ours, "subscribe": CLEAN, "mode": "files"}
    wire = {**files, "mode": "wire"}
    two = "offset long, timestamp timestamp"
    bench.reads("ours, files", lambda: bench.ours(files), lambda: bench.ours(files, two))
    bench.reads("ours, wire", lambda: bench.ours(wire), lambda: bench.ours(wire, two))
    peers = {"connector from Horolog": ours}
    if kafka:
        peers["connector from Kafka"] = kafka
    for name, bootstrap in peers.items():
        read = partial(bench.connector, bootstrap)
        bench.reads(name, read, read)
    for topic in (CLEAN, DIRTY):
        hour = {**files, **hour_of(topic)}
        planned = sum(each.size_bytes for task in plan_tasks(parse(hour)) for each in task)
        name = f"ours, one hour of 72, {topic}, {planned >> 20} MiB"
        bench.measure(name, partial(counted, partial(bench.ours, hour, two)))
        there = {k: v for k, v in hour_of(topic).items() if k != "subscribe"}
        for name, bootstrap in peers.items():
            read = partial(bench.connector, bootstrap, topic, **there)
            bench.measure(f"{name}, one hour of 72, {topic}", partial(counted, read))
    writes(bench, ours)


def writes(bench: Bench, ours: str) -> None:
    """A frame that Spark holds in memory, into our broker."""
    source = {"kafka.bootstrap.servers": ours, "subscribe": CLEAN, "mode": "files"}
    frame = bench.ours(source).selectExpr("key", "value", "timestamp").persist()
    frame.count()
    to = {"kafka.bootstrap.servers": ours, "topic": COPY}
    bench.measure(
        "ours, write with times",
        lambda: frame.write.format("horolog").options(**to).mode("append").save(),
    )
    bench.measure(
        "connector, write without times",
        lambda: frame.select("key", "value").write.format("kafka").options(**to).save(),
    )
    frame.unpersist()


def main() -> None:
    """Everything in one process, and in directories that go."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--records", type=int, default=3_000_000)
    arguments.add_argument("--rounds", type=int, default=2)
    arguments.add_argument("--against-kafka", action="store_true")
    given = arguments.parse_args()
    jars = connector_jars()
    scratch = Path(tempfile.mkdtemp(prefix="spark-bench-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, scratch, ignore_errors=True)
        ours = stack.enter_context(start_broker(scratch / "ours", SETTINGS)).bootstrap
        kafka = None
        if given.against_kafka:
            kafka = stack.enter_context(start_kafka(scratch / "kafka", SETTINGS)).bootstrap
        for bootstrap in filter(None, (ours, kafka)):
            for topic, dirty in ((CLEAN, False), (DIRTY, True)):
                seconds = fill(bootstrap, topic, given.records, dirty=dirty)
                rate = round(given.records / seconds / 1000)
                print(
                    json.dumps({"filled": bootstrap, "topic": topic, "k_rec_s": rate}), flush=True
                )
        fill(ours, COPY, 0, dirty=False)
        for topic, dirty in ((CLEAN, False), (DIRTY, True)):
            print(json.dumps({"hour": topic, "exact": exact(given.records, dirty=dirty)}))
        spark = open_session(
            "bench",
            master="local[2]",
            settings={"spark.jars": ",".join(jars), "spark.driver.memory": "3g",
                      "spark.local.dir": str(scratch / "spark")},
        )  # fmt: skip
        stack.callback(spark.stop)
        run(Bench(spark, given.records, given.rounds), ours, kafka)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
