"""Pace of bytes to and from the store: several threads share one rate."""

import threading
import time
from collections.abc import Callable

LONGEST_REST_SECONDS = 1.0


class Pace:
    """Called with bytes that are about to be moved; has its thread wait for their turn."""

    __slots__ = ("_free_at", "_gate", "_rate", "_stopping", "waited_seconds")

    def __init__(self, bytes_per_second: Callable[[], float]) -> None:
        """`bytes_per_second` is read each time."""
        self._rate = bytes_per_second
        self._gate = threading.Lock()
        self._stopping = threading.Event()
        self._free_at = 0.0
        self.waited_seconds = 0.0
        """Time that threads have waited, added up."""

    def __call__(self, size_bytes: int) -> None:
        """Waits until so many bytes may be moved, in steps, since the rate may change."""
        with self._gate:
            begin = max(self._free_at, time.monotonic())
            self._free_at = begin + size_bytes / max(self._rate(), 1.0)
        called = time.monotonic()
        while (rest := begin - time.monotonic()) > 0 and not self._stopping.is_set():
            self._stopping.wait(min(rest, LONGEST_REST_SECONDS))
        if begin > called:
            with self._gate:
                self.waited_seconds += time.monotonic() - called

    def stop(self) -> None:
        """Nobody waits any longer: the broker stops."""
        self._stopping.set()
