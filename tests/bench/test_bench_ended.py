"""A measurement that is asked to end leaves neither a broker nor data behind."""

import subprocess
import sys
from pathlib import Path

from tests.support.ended import STATUS
from tests.support.patience import until

ROOT = Path(__file__).resolve().parents[2]


def brokers_of(pid: int) -> set[int]:
    """Processes that this one has started to serve."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {int(each) for each in children if b"\0serve\0" in command_of(int(each))}


def command_of(pid: int) -> bytes:
    """Its command line; nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""


def test_a_bench_ended_by_sigterm_stops_what_it_started(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.bench", "--cells", "latency-100-a-second"]
    command += ["--data", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as bench:
        until(lambda: brokers_of(bench.pid), "no broker was started")
        brokers = brokers_of(bench.pid)
        bench.terminate()
        assert bench.wait(60) == STATUS
    assert not any(command_of(each) for each in brokers)
    assert not list(tmp_path.iterdir())
