"""Waits of tests for what other processes and threads finish."""

import time
from collections.abc import Callable

SECONDS = 90.0


def until(
    holds: Callable[[], object],
    what: str | Callable[[], str] = "",
    *,
    seconds: float = SECONDS,
    every: float = 0.1,
) -> float:
    """Seconds that it took. AssertionError with `what` when it takes longer than `seconds`."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() >= began + seconds:
            raise AssertionError(what if isinstance(what, str) else what())
        time.sleep(every)
    return time.monotonic() - began
