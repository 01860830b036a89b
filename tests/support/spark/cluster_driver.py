"""A program of its own, a driver on a cluster: reads topic `t`, archives it; executors are killed.

`python -m tests.support.spark.cluster_driver MASTER LOG_DIR ROWS ARCHIVE` says on standard
output, a line each: where the executors have our code from, in JSON; `reading`, once some of that
job is done, and reads a line; whether the job was at work at that moment; at last the answer of
`horolog spark archive`. The rows that were read go to the Parquet file ROWS.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from broker.cli.main import main as horolog
from pipeline.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = 20
COLUMNS = ("partition", "offset", "timestampMs", "key", "value")
ROUND_BYTES = 60_000


def main(master: str, log_dir: str, rows: str, archive: str = "") -> None:
    """All of it. Without an archive: the rest."""
    session = open_session("cluster-driver", master=master, is_short=True)
    places = session.range(0, 4, 1, 4).mapInArrow(_where, "code string, cwd string")
    print(json.dumps([row.asDict() for row in places.distinct().collect()]), flush=True)
    _read(session, log_dir, rows)
    if archive:
        status = horolog([
            "spark", "archive", "--engine", "spark", "--master", master, "--json",
            "--log-dirs", log_dir, "--topic", "t", "--out", archive, "--oldest", "5000d",
            "--round-bytes", str(ROUND_BYTES),
        ])  # fmt: skip
        assert status == 0
    session.stop()


def _read(session: "SparkSession", log_dir: str, rows: str) -> None:
    frame = (
        session.read.format("horolog")
        .options(log_dirs=log_dir, subscribe="t", metadataColumns="true", minPartitions=TASKS)
        .load()
        .select(*COLUMNS)
    )
    job = threading.Thread(target=lambda: pq.write_table(frame.toArrow(), rows))
    job.start()
    tracker = session.sparkContext.statusTracker()
    while job.is_alive() and not _done(tracker):
        time.sleep(0.02)
    print("reading", flush=True)
    sys.stdin.readline()
    print(json.dumps(job.is_alive()), flush=True)
    job.join()


def _where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import pipeline
    from protocol.records import walk

    for _ in batches:
        for code in (pipeline.__file__, walk.__file__):
            yield pa.record_batch({"code": [os.path.abspath(code)], "cwd": [os.getcwd()]})


def _done(tracker: object) -> int:
    """Tasks of the running stages that have ended."""
    stages = (tracker.getStageInfo(each) for each in tracker.getActiveStageIds())  # type: ignore[attr-defined]
    return sum(stage.numCompletedTasks for stage in stages if stage)


if __name__ == "__main__":
    main(*sys.argv[1:])
