"""A program of its own: reads topic `t` on a cluster, waits in mid-job until somebody has killed.

`python -m tests.support.cluster_reader MASTER LOG_DIR OUT` says on standard output, in JSON, where
the executors have our code from; then `in the middle`, and reads a line; at last whether the job
was at work at that moment. The rows go to the Parquet file OUT.
"""

import json
import sys
import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.session import open_session

TASKS = 40
COLUMNS = ("partition", "offset", "timestampMs", "key", "value")


def main(master: str, log_dir: str, out: str) -> None:
    """All of it."""
    session = open_session("cluster-reader", master=master, is_short=True)
    places = session.range(0, 8, 1, 8).mapInArrow(_where, "code string, cwd string")
    print(json.dumps([row.asDict() for row in places.distinct().collect()]), flush=True)
    frame = (
        session.read.format("horolog")
        .options(log_dirs=log_dir, subscribe="t", metadataColumns="true", minPartitions=TASKS)
        .load()
        .select(*COLUMNS)
    )
    job = threading.Thread(target=lambda: pq.write_table(frame.toArrow(), out))
    job.start()
    tracker = session.sparkContext.statusTracker()
    while job.is_alive() and not _done(tracker):
        time.sleep(0.02)
    print("in the middle", flush=True)
    sys.stdin.readline()
    print(json.dumps(job.is_alive()), flush=True)
    job.join()
    session.stop()


def _where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    import os

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
