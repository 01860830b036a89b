"""The copier's process, as its broker has it: begun with the first copy, begun again when it ends.

It ends with the broker, killed too, since the kernel ends their lines then. While it is away
copying fails, retriable, as with a store that is away; nothing else waits for it.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Timer
from typing import NamedTuple

import broker
from broker.runtime.event_log import event
from broker.runtime.growing_wait import growing_wait
from broker.tier.copier.line import CopierLine, new_pair
from config.tier.url import TierUrl
from storage.errors import StorageError
from storage.tier.port import StoreError

PROGRAM = "broker.tier.copier.program"
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 60.0
"""Before it is begun again: doubled with each end in a row."""
ENDS_WITHIN_SECONDS = 5.0
"""Time in which it ends by itself once its lines have."""
OPERATION = "copy"


class CopierAway(StoreError):  # noqa: N818 - what happened
    """The process that copies has ended, or is not begun again yet: a later try may go through."""


class CopierPlace(NamedTuple):
    """The store that a copier sends to."""

    url: TierUrl
    allow_http: bool


class _Running(NamedTuple):
    """A process, and lines to it that nobody uses."""

    process: "subprocess.Popen[bytes]"
    control: CopierLine
    idle: list[CopierLine]


class CopierProcess:
    """Used from any thread."""

    def __init__(self, place: CopierPlace, monotonic: Callable[[], float]) -> None:
        """Nothing is begun."""
        self._place = place
        self._monotonic = monotonic
        self._gate = Lock()
        self._running: _Running | None = None
        self._failures = 0
        self._not_before = 0.0
        self._is_closed = False
        self._ending: Timer | None = None
        self.ends = 0
        """Times that it has ended and was not asked to."""

    @property
    def pid(self) -> int | None:
        """The process's number; None while there is none."""
        running = self._running
        return None if running is None else running.process.pid

    @contextmanager
    def line(self, key: str) -> Iterator[CopierLine]:
        """A line to it, for one object. A StorageError within has left the line whole.

        CopierAway, also for an OSError within: the line has ended.
        """
        running, line = self._taken(key)
        try:
            yield line
        except StorageError:
            self._give_back(running, line)
            raise
        except OSError as error:
            line.close()
            raise CopierAway(key, OPERATION, self._lost(running, error)) from error
        except BaseException:
            line.close()
            raise
        self._failures = 0
        self._give_back(running, line)

    def end_within(self, seconds: float) -> None:
        """The broker stops: who still copies after that time fails then."""
        if self._ending is None:
            self._ending = Timer(seconds, self.close)
            self._ending.daemon = True
            self._ending.start()

    def close(self) -> None:
        """Ends it, and begins none again. Closing twice is allowed."""
        if self._ending is not None:
            self._ending.cancel()
        with self._gate:
            self._is_closed = True
            running, self._running = self._running, None
        if running is not None:
            _end(running, ENDS_WITHIN_SECONDS)

    def _taken(self, key: str) -> tuple[_Running, CopierLine]:
        with self._gate:
            running = self._running or self._begun(key)
            if running.idle:
                return running, running.idle.pop()
        try:
            return running, _new_line(running.control)
        except OSError as error:
            raise CopierAway(key, OPERATION, self._lost(running, error)) from error

    def _begun(self, key: str) -> _Running:
        """Another process. Within the gate."""
        if self._is_closed:
            raise CopierAway(key, OPERATION, "the broker stops")
        wait = self._not_before - self._monotonic()
        if wait > 0:
            raise CopierAway(key, OPERATION, "the process that copies has ended; it begins again")
        try:
            self._running = _begin(self._place)
        except OSError as error:
            self._back_off()
            raise CopierAway(key, OPERATION, f"no process can be begun: {error}") from error
        return self._running

    def _give_back(self, running: _Running, line: CopierLine) -> None:
        with self._gate:
            if running is self._running:
                running.idle.append(line)
                return
        line.close()

    def _lost(self, running: _Running, error: OSError) -> str:
        """It has ended, or says nothing any longer: then it is ended. Why, as a text."""
        why = "it was silent" if isinstance(error, TimeoutError) else "its line has ended"
        with self._gate:
            if running is not self._running:
                return f"the process that copies has ended: {why}"
            self._running = None
            wait = self._back_off()
        status = _end(running, 0)
        event(
            "tier_copier_ended", "warning", pid=running.process.pid, status=status, reason=why,
            retry_seconds=wait,
        )  # fmt: skip
        return f"the process that copies has ended: {why}"

    def _back_off(self) -> float:
        """Within the gate."""
        self.ends += 1
        self._failures += 1
        wait = growing_wait(FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS, self._failures)
        self._not_before = self._monotonic() + wait
        return wait


def _begin(place: CopierPlace) -> _Running:
    """OSError. The packages of this process are the new one's, from wherever they came."""
    ours, theirs = new_pair()
    root = str(Path(broker.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    with theirs:
        try:
            process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-P", "-m", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": paths},
            )  # fmt: skip
        except OSError:
            ours.close()
            raise
    control = CopierLine(ours)
    running = _Running(process, control, [])
    url = place.url
    with suppress(OSError):  # it has ended already: the first line finds out
        control.send({"bucket": url.bucket, "prefix": url.prefix, "allow_http": place.allow_http})
    return running


def _new_line(control: CopierLine) -> CopierLine:
    ours, theirs = new_pair()
    with theirs:
        try:
            control.send({}, [theirs.fileno()])
        except OSError:
            ours.close()
            raise
    return CopierLine(ours)


def _end(running: _Running, seconds: float) -> int:
    """Its exit status, once it has ended: by itself within so many seconds, or killed."""
    running.control.close()
    for each in running.idle:
        each.close()
    with suppress(subprocess.TimeoutExpired):
        if seconds:
            return running.process.wait(seconds)
    running.process.kill()
    return running.process.wait()
