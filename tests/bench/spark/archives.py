"""Archives to Parquet by topic and date: of Spark's connector, by hand, and ours, also when killed.

Every archive is counted when it is done; a wrong count is no figure.
"""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

from pipeline.sinks.archive.log_source import LogSource
from pipeline.sinks.archive.parquet import ParquetArchive, commit_numbers, read_commit
from pipeline.sinks.archive.run import Wishes, run_once
from pipeline.sources.options import parse
from pipeline.spark.engine import SparkEngine
from tests.bench.spark.by_hand import archive_by_hand
from tests.bench.spark.records import CLEAN
from tests.bench.spark.scene import Job, Measurement, Scene, thousands
from tests.bench.wire import BenchFailed
from tests.support.worlds.broker_process import HOROLOG, own_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KILLS = 3
LAST_KILL = 0.7
"""How far in its third a kill may be: the last one has to come before the end."""
LOOK_SECONDS, ROUND_SECONDS = 0.02, 0.3
ROUND_BYTES = 64 << 20
ROWS_A_TRIGGER = 2_000_000
FOLDERS = ("topic", "event_date")


def archived(
    work: Callable[[Scene, Path], object], scene: Scene, rows: str = "."
) -> Mapping[str, float]:
    """All records, into a new folder; `rows`: where in it the files are."""
    out = scene.fresh("archive")
    began = time.perf_counter()
    work(scene, out)
    taken = time.perf_counter() - began
    counted = ds.dataset(out / rows, partitioning="hive").count_rows()
    if counted != scene.records:
        raise BenchFailed(f"{counted} of {scene.records} records are in the archive")
    return scene.rate_of(taken)


def by_tasks(scene: Scene, out: Path) -> None:
    """Ours, as tasks of the session."""
    source = LogSource(parse(scene.source(isolationLevel="read_committed")))
    with ParquetArchive(str(out)) as target:
        for _ in run_once(source, target, SparkEngine(lambda: scene.spark), Wishes()):
            pass


def command(scene: Scene, out: Path, *more: str) -> "subprocess.Popen[bytes]":
    """Ours, as the command that a user gives; neither Java nor Spark is started."""
    asked = [str(HOROLOG), "spark", "archive", "--topic", CLEAN, "--out", str(out)]
    asked += ["--log-dirs", str(scene.log_dir), "--bootstrap", scene.ours, *more]
    return subprocess.Popen(
        asked, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env=own_environment(),
    )  # fmt: skip


def by_command(scene: Scene, out: Path, *more: str) -> None:
    """Start to end, with the start of the interpreter."""
    with command(scene, out, *more) as running:
        _, said = running.communicate()
    if running.returncode:
        raise BenchFailed(said.decode()[-500:])


def killed(scene: Scene, out: Path) -> None:
    """The command and its workers are killed once in each third of the work, then left to finish.

    At any moment: between two commits, not after one.
    """
    rounds, dice = ("--round-bytes", str(ROUND_BYTES)), random.Random(str(out))
    for third in range(KILLS):
        with command(scene, out, *rounds) as running:
            share = (third + dice.uniform(0, LAST_KILL)) / KILLS
            while committed(out) < share * scene.records and running.poll() is None:
                time.sleep(LOOK_SECONDS)
            time.sleep(dice.uniform(0, ROUND_SECONDS))
            if running.poll() is not None:
                raise BenchFailed("the archive was done before it was killed")
            os.killpg(running.pid, signal.SIGKILL)
    by_command(scene, out, *rounds)


def committed(out: Path) -> int:
    """How many records the archive has by now."""
    numbers = commit_numbers(out)
    return sum(read_commit(out, numbers[-1])["next"].values()) if numbers else 0


def dated(frame: "DataFrame") -> "DataFrame":
    """What both of the connector's archives keep."""
    return frame.selectExpr(
        "topic", "partition", "offset", "timestamp", "timestampType", "key", "value",
        "to_date(timestamp) as event_date",
    )  # fmt: skip


def by_connector(scene: Scene, out: Path) -> None:
    """A batch: Spark's own Parquet writer."""
    rows = dated(scene.read_by_connector(scene.kafka))
    rows.write.partitionBy(*FOLDERS).option("compression", "zstd").parquet(str(out))


def by_stream(scene: Scene, out: Path) -> None:
    """Available-now, the connector's exactly-once way; nobody kills it."""
    spark: Any = scene.spark
    options = {
        "kafka.bootstrap.servers": scene.kafka, "subscribe": CLEAN,
        "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(ROWS_A_TRIGGER),
    }  # fmt: skip
    stream = dated(spark.readStream.format("kafka").options(**options).load()).writeStream
    to = {"checkpointLocation": str(scene.fresh("state")), "compression": "zstd"}
    query = stream.partitionBy(*FOLDERS).options(**to).trigger(availableNow=True).start(str(out))
    try:
        query.awaitTermination()
    finally:
        query.stop()


def by_loop(scene: Scene, out: Path) -> None:
    """What one writes with confluent-kafka and pyarrow in an afternoon."""
    archive_by_hand(scene.kafka, CLEAN, scene.records, out)


OURS = partial(archived, by_command, rows="records")
BATCH = partial(archived, by_connector)


def archive(
    name: str, must: float | None, aim: float, ours: Measurement, theirs: Measurement
) -> Job:
    return Job(f"archive, {name}", (thousands(must, aim),), ours, theirs)


JOBS = (
    archive("tasks of Spark", 5, 8, partial(archived, by_tasks, rows="records"), BATCH),
    archive("the command", 5, 8, OURS, BATCH),
    archive("killed 3 times / stream", 4, 6,
        partial(archived, killed, rows="records"), partial(archived, by_stream)),
    replace(archive("a loop by hand", 1, 10, OURS, partial(archived, by_loop)), most_rounds=1),
)  # fmt: skip
