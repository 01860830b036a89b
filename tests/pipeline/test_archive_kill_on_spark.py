"""Archives as tasks of Spark: all of it killed, or its Java, or a Python worker; nothing lost.

Each day it is another format's turn. ARCHIVE_KILLS=20 is the full proof, of all three.
"""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from pipeline.sinks.archive.writer import UNFINISHED
from tests.support.spark.archives import FORMATS, check
from tests.support.spark.spark_cluster import children

KILLS = int(os.environ.get("ARCHIVE_KILLS", "1"))
TODAY = datetime.now(UTC).date().toordinal()
IN_TURN = FORMATS if KILLS > 1 else (FORMATS[TODAY % len(FORMATS)],)
SEED = os.environ.get("ARCHIVE_SEED", str(TODAY))
ENDS = {0: 5000 * KILLS, 1: 3000 * KILLS}
VICTIMS = ("all", "java", "worker")
pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="needs '.[spark]'")


def start(kind: str, root: Path) -> "subprocess.Popen[bytes]":
    """At work, or about to be."""
    ready = Path(f"{root}.ready")
    ready.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.support.spark.spark_archive_run", kind, str(root)]
    with Path(f"{root}.log").open("wb") as said:
        process = subprocess.Popen(
            [*command, *(f"{p}={end}" for p, end in ENDS.items())],
            cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=said, start_new_session=True,
        )  # fmt: skip
    while not ready.exists():
        assert process.poll() is None, Path(f"{root}.log").read_text()
        time.sleep(0.02)
    return process


def kill(process: "subprocess.Popen[bytes]", victim: str, dice: random.Random) -> str:
    """What was killed. The run ends of it, unless it was a worker that had no task just then."""
    java = [pid for pid in children(process.pid) if "java" in _command(pid)]
    workers = [worker for pid in java for daemon in children(pid) for worker in children(daemon)]
    if victim == "worker" and not workers:
        victim = "java"  # no task has begun
    if victim == "all":
        os.killpg(process.pid, signal.SIGKILL)
    else:
        os.kill(dice.choice(java if victim == "java" else workers), signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(3 if victim == "worker" else 60)
    return victim


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.parametrize("kind", IN_TURN)
def test_killed_on_spark_nothing_is_lost_or_doubled(kind: str, tmp_path: Path) -> None:
    dice = random.Random(f"{kind} {SEED}")
    root = tmp_path / "archive"
    done: Counter[str] = Counter()
    victim = ""
    process = start(kind, root)
    for _ in range(KILLS):
        if process.poll() is not None:
            process = start(kind, root)
        time.sleep(dice.uniform(0.1, 4))
        if victim == "worker" and process.poll() not in {None, 0}:  # it took a while to end of it
            process = start(kind, root)
        assert process.poll() is None, "there is too little to archive for so many kills"
        victim = kill(process, dice.choice(VICTIMS), dice)
        done[victim] += 1
        if process.poll() is None or process.returncode == 0:
            assert victim == "worker"
        elif victim != "all":
            assert "SparkFailed: Spark: " in Path(f"{root}.log").read_text()
    process.wait(100 + 20 * KILLS)
    process = start(kind, root)
    assert process.wait(100 + 20 * KILLS) == 0, Path(f"{root}.log").read_text()
    check(kind, root, ENDS)
    assert not [path for path in root.rglob("*") if UNFINISHED in path.name]
    print(f"{kind}: killed {dict(done)}")
