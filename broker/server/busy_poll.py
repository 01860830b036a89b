"""Busy-polls for clients with one request in flight.

A core that falls asleep between two such requests takes longer to wake than the request takes to
serve. So once a connection has gone in lockstep for a while, the loop looks again at its sockets,
for a tenth of a millisecond at most, before it sleeps. Anything slower than that is left alone: it
costs nothing while requests are rare, and no more than the core that they keep busy anyway.
"""

import asyncio
from collections.abc import Callable

PAUSE_SECONDS = 250e-6  # the longest pause that still counts as lockstep
AWAKE_SECONDS = 120e-6
STREAK = 32  # so many requests in lockstep, and we stay awake


class Lockstep:
    """Of one loop; all connections tell it what they receive and answer."""

    __slots__ = ("_answered_at", "_awake", "_loop", "_monotonic", "_streak")

    def __init__(self, loop: asyncio.AbstractEventLoop, monotonic: Callable[[], float]) -> None:
        """Asleep."""
        self._loop = loop
        self._monotonic = monotonic
        self._answered_at = 0.0
        self._streak = 0
        self._awake = False

    def answered(self, began_at: float) -> None:
        """A small answer left at once to a request that came at `began_at` (monotonic seconds)."""
        if began_at - self._answered_at < PAUSE_SECONDS:
            self._streak += 1
        else:
            self._streak = 0
        self._answered_at = self._monotonic()
        if self._streak >= STREAK and not self._awake:
            self._awake = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        if self._monotonic() - self._answered_at < AWAKE_SECONDS:
            self._loop.call_soon(self._look_again)
        else:
            self._awake = False
