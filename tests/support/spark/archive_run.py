"""A process that archives made-up records, slowly, in workers: to be killed.

`python -m tests.support.spark.archive_run FORMAT FOLDER PARTITION=END …`; makes `FOLDER.ready`
when it is about to begin.
"""

import sys
from pathlib import Path

from pipeline.engine.native import NativeEngine
from pipeline.sinks.archive.run import run_once
from tests.support.spark.archives import WISHES, opened
from tests.support.spark.made_up_records import MadeUp

PAUSE = 0.1


def main(kind: str, folder: str, *ends: str) -> None:
    """Archive what there is."""
    source = MadeUp({int(p): int(e) for p, e in (each.split("=") for each in ends)}, pause=PAUSE)
    with NativeEngine(processes=2) as engine, opened(kind, Path(folder)) as target:
        Path(f"{folder}.ready").touch()
        for commit in run_once(source, target, engine, WISHES._replace(round_bytes=120_000)):
            print(commit.read, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
