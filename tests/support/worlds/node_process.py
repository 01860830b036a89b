"""A broker as another process: started, waited for, stopped or killed.

Owns the child and its log file. A node says on standard output that it is ready, in one line of
`key=value` words; everything else it has to say goes to the log file, which is quoted on failure.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.patience import until

LOG_TAIL_BYTES = 4096
RESTING = frozenset("TDXZ")
"""States of threads (proc(5)) that are stopped, will be as soon as their call ends, or have
ended."""


def thread_states(pid: int) -> set[str]:
    """States of the threads of a process, a letter each (proc(5))."""
    found = set()
    for each in Path(f"/proc/{pid}/task").glob("*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            found.add(each.read_text().rpartition(") ")[2][0])
    return found


class NodeFailed(Exception):  # noqa: N818 - reads as the sentence it is
    """The process ended or stayed silent when it should have become ready or stopped."""


class NodeProcess:
    """One child process; `facts` holds the words of its ready line."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        *,
        ready_within_seconds: float,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.log = log
        self.began = time.monotonic()
        with log.open("ab") as sink:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=environment,
            )
        try:
            line = self._ready_line(ready_within_seconds)
        except BaseException:
            self.kill()
            raise
        self.ready_after_seconds = time.monotonic() - self.began
        self.facts = dict(word.split("=", 1) for word in line.split() if "=" in word)

    @property
    def bootstrap(self) -> str:
        """HOST:PORT that clients connect to."""
        return self.facts["bootstrap"]

    @property
    def pid(self) -> int:
        """The process that serves, which may be a child of the one that we started."""
        return int(self.facts.get("pid", self._child.pid))

    @property
    def running(self) -> bool:
        """True when the process is still there."""
        return self._child.poll() is None

    def stop(self, within_seconds: float = 60) -> int:
        """Asks it to end (SIGTERM) and waits; its exit code."""
        if self.running:
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._ended(within_seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._failure(f"did not stop within {within_seconds} s") from None

    def freeze(self) -> None:
        """Stops it where it is (SIGSTOP). When this returns, none of its threads does anything any
        more, but that calls to the system which are under way may end.
        """
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: thread_states(self.pid) <= RESTING, f"{self.pid} does not stop")

    def kill(self) -> None:
        """Ends it without a chance to tidy (SIGKILL); nothing happens when it is gone already."""
        if self.running and hasattr(self, "facts") and self.pid != self._child.pid:
            os.kill(self.pid, signal.SIGKILL)
        self._child.kill()
        self._ended(60)

    def _ended(self, within_seconds: float) -> int:
        code = self._child.wait(within_seconds)
        if self._child.stdout:
            self._child.stdout.close()
        return code

    def _ready_line(self, within_seconds: float) -> str:
        assert self._child.stdout
        pipe, seen = self._child.stdout.fileno(), b""
        while b"\n" not in seen:
            left = self.began + within_seconds - time.monotonic()
            readable, _, _ = select.select([pipe], [], [], max(left, 0))
            chunk = os.read(pipe, 4096) if readable else b""
            if not chunk:
                raise self._failure("did not become ready")
            seen += chunk
        return seen.decode()

    def _failure(self, what: str) -> NodeFailed:
        tail = self.log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace")
        return NodeFailed(f"{self._child.args!r} {what}; the end of its log:\n{tail}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.stop()
        else:
            self.kill()
