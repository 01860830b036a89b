"""Items in processes of this machine: results, named errors, and what is not an error of ours."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.cli.run import run_all
from pipeline.engine.engine import WorkerDied
from pipeline.engine.native import NativeEngine
from pipeline.errors import DamagedLog, PipelineError
from storage.errors import DiskError


@pytest.mark.parametrize("processes", [1, 2])
def test_every_item_has_its_result(processes: int) -> None:
    with NativeEngine(processes) as engine:
        assert sorted(run_all(engine, double, range(20), "items")) == [2 * n for n in range(20)]
        assert run_all(engine, double, [4], "items") == [8]
        assert run_all(engine, double, [], "items") == []


@pytest.mark.parametrize("processes", [1, 2])
def test_the_next_round_begins_before_one_is_done(processes: int) -> None:
    """Rounds are asked for one by one, and only as far ahead as there is room."""
    asked = []

    def rounds() -> Iterator[list[int]]:
        for first in range(0, 30, 3):
            asked.append(first)
            yield [first, first + 1, first + 2]

    with NativeEngine(processes) as engine:
        results = engine.run(double, rounds())
        found = [next(results)]
        assert len(asked) in {1, 2}
        found += results
    assert sorted(found) == [2 * n for n in range(30)]
    assert len(asked) == 10


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("work", "kind", "said"),
    [
        ("damage", DamagedLog, "at 5"),
        ("disk", PipelineError, "sick"),
        ("full", PipelineError, "28"),
    ],
)
def test_an_error_has_its_name_in_the_driver(
    processes: int, work: str, kind: type[PipelineError], said: str
) -> None:
    works: dict[str, Callable[[int], int]] = {"damage": damage, "disk": disk, "full": full}
    with NativeEngine(processes) as engine, pytest.raises(kind, match=said):
        run_all(engine, works[work], [1, 2, 3], "items")


def test_a_worker_that_dies_has_a_name() -> None:
    with NativeEngine(2) as engine, pytest.raises(WorkerDied, match="run again"):
        run_all(engine, die, [1, 2, 3], "items")


JOB = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where tests run in the background
from pipeline.engine.native import NativeEngine
from tests.pipeline.test_jobs_engines import name_itself
with NativeEngine(2) as engine:
    for _ in engine.run(name_itself, [[(sys.argv[1], float(sys.argv[2]))] * 4]):
        pass
"""


@pytest.mark.parametrize("busy_seconds", [0.3, 60.0])
def test_workers_end_with_a_job_that_is_killed(tmp_path: Path, busy_seconds: float) -> None:
    """Waiting for more, or in the midst of an item."""
    more = "    time.sleep(60)\n" if busy_seconds < 1 else ""
    asked = [sys.executable, "-c", JOB + more, str(tmp_path), str(busy_seconds)]
    with subprocess.Popen(asked, stderr=subprocess.PIPE) as job:
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        workers = [int(path.name) for path in tmp_path.iterdir()]
        assert job.pid not in workers
        job.kill()
        _, said = job.communicate(timeout=20)
        assert said == b""
    until(lambda: not any(is_running(worker) for worker in workers))


def test_ctrl_c_ends_a_job_at_once_and_without_a_word_of_its_workers(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", JOB, str(tmp_path), "60"]
    with subprocess.Popen(asked, stderr=subprocess.PIPE, start_new_session=True) as job:
        until(lambda: len(list(tmp_path.iterdir())) == 2)
        os.killpg(job.pid, signal.SIGINT)
        _, said = job.communicate(timeout=20)
    assert said.count(b"Traceback") == 1, said
    assert said.endswith(b"KeyboardInterrupt\n")


def until(condition: Callable[[], bool]) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < 20
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Not gone, nor a zombie that nobody has fetched."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def name_itself(item: tuple[str, float]) -> None:
    folder, busy_seconds = item
    Path(folder, str(os.getpid())).touch()
    time.sleep(busy_seconds)


def double(item: int) -> int:
    return 2 * item


def damage(_: int) -> int:
    raise DamagedLog("t-0: at 5")


def disk(_: int) -> int:
    raise DiskError("/data/x.log", "read", "the disk is sick", 5)


def full(_: int) -> int:
    raise OSError(28, "No space left on device")


def die(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0
