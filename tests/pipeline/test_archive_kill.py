"""Archives whose driver and workers are killed at any moment, and a worker alone: nothing lost."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pipeline.sinks.archive.writer import UNFINISHED
from tests.support.spark.archives import FORMATS, check
from tests.support.spark.spark_cluster import children

KILLS = int(os.environ.get("ARCHIVE_KILLS", "1"))
"""Of each format; twenty are the full proof, with ends twenty times as far."""
ENDS = {0: 1200 * KILLS, 1: 800 * KILLS}


def start(kind: str, root: Path) -> "subprocess.Popen[bytes]":
    ready = Path(f"{root}.ready")
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.support.spark.archive_run", kind, str(root)]
    process = subprocess.Popen(
        [*command, *(f"{p}={end}" for p, end in ENDS.items())],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    while not ready.exists():
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("kind", FORMATS)
def test_killed_at_any_moment_nothing_is_lost_or_doubled(kind: str, tmp_path: Path) -> None:
    dice = random.Random(f"{kind} {os.environ.get('ARCHIVE_SEED', '1')}")
    root = tmp_path / "archive"
    for _ in range(KILLS):
        process = start(kind, root)
        time.sleep(dice.uniform(0.1, 1.5))
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = start(kind, root)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said.decode()
    check(kind, root, ENDS)
    assert not [path for path in root.rglob("*") if UNFINISHED in path.name]


def test_a_worker_that_is_killed_ends_the_run_with_a_name(tmp_path: Path) -> None:
    root = tmp_path / "archive"
    process = start("parquet", root)
    workers: list[int] = []
    while not workers and process.poll() is None:
        time.sleep(0.05)
        workers = children(process.pid)
    time.sleep(0.3)
    os.kill(children(process.pid)[-1], signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "a worker process died" in said.decode()
    process = start("parquet", root)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 0, said.decode()
    check("parquet", root, ENDS)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_a_killed_write_of_a_small_file_left_goes_with_the_next_run(
    kind: str, tmp_path: Path
) -> None:
    root = tmp_path / "archive"
    left = []
    for _ in range(2):
        process = start(kind, root)
        _, said = process.communicate(timeout=100)
        assert process.returncode == 0, said.decode()
        assert not [each for each in left if each.exists()]
        folders = [root, *(each for each in root.iterdir() if each.name in {"_asides", "_commits"})]
        left = [each / f"1.json{UNFINISHED}-0" for each in folders]
        for each in left:
            each.write_text("{")
    assert len(left) == 2
