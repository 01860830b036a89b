"""Pace of bytes to and from the store: several threads share one rate."""

import threading
import time
from collections.abc import Callable

LONGEST_REST_SECONDS = 1.0


class Pace:
    """Called with bytes that are about to be moved; has its thread wait for their turn."""

    __slots__ = ("_asked", "_counted_at", "_due", "_gate", "_rate", "_stopping", "waited_seconds")

    def __init__(self, bytes_per_second: Callable[[], float]) -> None:
        """`bytes_per_second` is read each time, also for what waits already."""
        self._rate = bytes_per_second
        self._gate = threading.Lock()
        self._stopping = threading.Event()
        self._asked = 0.0
        """Bytes of all calls so far."""
        self._due = 0.0
        """Bytes of them that may be moved, or were."""
        self._counted_at = time.monotonic()
        self.waited_seconds = 0.0
        """Time that threads have waited, added up."""

    def __call__(self, size_bytes: int) -> None:
        """Waits until what was asked for before may have been moved."""
        with self._gate:
            self._count()
            turn = self._asked
            self._asked += size_bytes
        called = time.monotonic()
        waits = False
        while (rest := self._rest(turn)) > 0 and not self._stopping.is_set():
            waits = True
            self._stopping.wait(min(rest, LONGEST_REST_SECONDS))
        if waits:
            with self._gate:
                self.waited_seconds += time.monotonic() - called

    def stop(self) -> None:
        """Nobody waits any longer: the broker stops."""
        self._stopping.set()

    def _rest(self, turn: float) -> float:
        """Seconds until so many bytes are due, by the rate of now."""
        with self._gate:
            rate = self._count()
            return (turn - self._due) / rate

    def _count(self) -> float:
        """The rate of now. Time in which nobody asked for anything is not saved up."""
        rate, now = max(self._rate(), 1.0), time.monotonic()
        self._due = min(self._asked, self._due + (now - self._counted_at) * rate)
        self._counted_at = now
        return rate
