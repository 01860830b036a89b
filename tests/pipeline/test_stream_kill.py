"""A stream that is killed in mid-batch with all its processes goes on; nothing lost or doubled.

PIPELINE_KILLS says how often; once where nothing is said.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.records.logs import append
from tests.support.spark.pipeline_logs import NOON_MS, directory_log

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KILLS = int(os.environ.get("PIPELINE_KILLS", "1"))
BATCHES = 60
RECORDS = 20


def committed(state: Path) -> int:
    """How many batches the checkpoint calls done."""
    folder = state / "commits"
    return sum(path.name.isdigit() for path in folder.iterdir()) if folder.exists() else 0


@pytest.mark.timeout(60 + 120 * (KILLS + 1))
def test_a_killed_stream_goes_on_exactly_once(spark: "SparkSession", tmp_path: Path) -> None:
    logs = [directory_log(tmp_path / "logs", index) for index in range(2)]
    for number in range(BATCHES):
        append(logs[number % 2], *range(NOON_MS, NOON_MS + RECORDS))
    for log in logs:
        log.close()
    out, state = tmp_path / "out", tmp_path / "state"
    command = [sys.executable, "-m", "tests.support.spark.stream_driver"]
    command += [str(tmp_path / "logs"), str(out), str(state)]
    dice = random.Random(KILLS)
    for number in range(KILLS + 1):
        before = committed(state)
        with (tmp_path / f"{number}.log").open("wb") as said:
            run = subprocess.Popen(command, stdout=said, stderr=said, start_new_session=True)
            while number < KILLS and run.poll() is None and committed(state) == before:
                time.sleep(0.05)
            if number < KILLS and run.poll() is None:
                time.sleep(dice.random() * 0.5)
                os.killpg(run.pid, signal.SIGKILL)
            run.wait(120)
    assert run.returncode == 0, (tmp_path / f"{KILLS}.log").read_text()[-2000:]

    frame = spark.read.parquet(str(out)).select("partition", "offset")
    rows = [(row.partition, row.offset) for row in frame.collect()]
    assert sorted(rows) == [
        (partition, offset) for partition in range(2) for offset in range(BATCHES * RECORDS // 2)
    ]
