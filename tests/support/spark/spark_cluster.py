"""A standalone Spark cluster: a master and workers as processes, from the classes in PySpark.

They run in a folder and an environment that know nothing of this checkout's Python path.
"""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from pipeline.spark.java import java_home

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
READY_SECONDS = 60
_DEPLOY = "org.apache.spark.deploy"


class SparkCluster:
    """A master and workers of one core and one gibibyte each, on the loopback interface."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        """Started, and the workers known to the master. `folder` gets logs and work folders."""
        self.work = folder / "work"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self.work.mkdir(parents=True)
        try:
            self._start(workers)
        except BaseException:
            self.close()
            raise

    def executors(self) -> list[int]:
        """The executors' process ids, those of the first worker first."""
        return [pid for worker in self._processes[1:] for pid in children(worker.pid)]

    def applications(self) -> dict[str, list[str]]:
        """The folders of the executors that there were, by application."""
        return {
            app.name: sorted(path.name for path in app.iterdir())
            for app in sorted(self.work.iterdir())
        }

    def close(self) -> None:
        """All of it ends, executors too."""
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in reversed(self._processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _start(self, workers: int) -> None:
        self._run("master", f"{_DEPLOY}.master.Master")
        self.url = self._said("master", r"spark://127\.0\.0\.1:\d+")
        own = ["--cores", "1", "--memory", "1g", "--work-dir", str(self.work), self.url]
        for number in range(workers):
            self._run(f"worker-{number}", f"{_DEPLOY}.worker.Worker", *own)
        for number in range(workers):
            self._said(f"worker-{number}", "Successfully registered with master")

    def _run(self, name: str, kind: str, *arguments: str) -> None:
        spec = find_spec("pyspark")
        assert spec
        assert spec.origin
        home = Path(spec.origin).parent
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self._folder), "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": QUICK,
            "SPARK_LAUNCHER_OPTS": QUICK, "SPARK_LOCAL_IP": "127.0.0.1",
        }  # fmt: skip
        if java := java_home():
            environment["JAVA_HOME"] = java
        listen = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        with self._log(name).open("wb") as said:
            self._processes.append(
                subprocess.Popen(
                    [f"{home}/bin/spark-class", kind, *listen, *arguments],
                    stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=self._folder,
                    env=environment, start_new_session=True,
                )
            )  # fmt: skip

    def _said(self, name: str, what: str) -> str:
        deadline = time.monotonic() + READY_SECONDS
        while True:
            text = self._log(name).read_text(errors="replace")
            if found := re.search(what, text):
                return found[0]
            assert self._processes[-1].poll() is None, text[-3000:]
            assert time.monotonic() < deadline, text[-3000:]
            time.sleep(0.05)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"


def children(parent: int) -> list[int]:
    """Processes that a process has started, whichever of its threads did."""
    found: list[int] = []
    for path in sorted(Path(f"/proc/{parent}/task").glob("*/children")):
        try:
            found += map(int, path.read_text().split())
        except OSError:  # the thread is gone
            continue
    return found


def descendants(parents: Iterable[int]) -> list[int]:
    """The same, all the way down."""
    found = []
    for parent in parents:
        below = children(parent)
        found += [*below, *descendants(below)]
    return found
