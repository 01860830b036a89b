"""A process that archives made-up records as tasks of Spark: to be killed, or parts of it.

`python -m tests.support.spark.spark_archive_run FORMAT FOLDER PARTITION=END …`; makes
`FOLDER.ready` when it is about to begin.
"""

import sys
from pathlib import Path

from pipeline.sinks.archive.run import run_once
from pipeline.spark.engine import SparkEngine
from pipeline.spark.session import open_session
from tests.support.spark.archives import WISHES, opened
from tests.support.spark.made_up_records import MadeUp

PAUSE = 0.01


def main(kind: str, folder: str, *ends: str) -> None:
    """Archive what there is."""
    source = MadeUp({int(p): int(e) for p, e in (each.split("=") for each in ends)}, pause=PAUSE)
    session = open_session("archive", master="local[2]", is_short=True)
    with SparkEngine(lambda: session) as engine, opened(kind, Path(folder)) as target:
        Path(f"{folder}.ready").touch()
        for commit in run_once(source, target, engine, WISHES._replace(round_bytes=120_000)):
            print(commit.read, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
