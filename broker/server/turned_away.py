"""Connections that must not come in, some of which are kept waiting before they end.

A client that is closed at once often comes again at once. How many wait is bounded: beyond that
they end at once, since each takes an open file.
"""

import asyncio

MOST_WAITING = 500
SHARE_OF_FILES = 20  # one of so many files that connections may take
LONGEST_SECONDS = 10.0


class TurnedAway:
    """Transports that are to end. Used on the event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, open_files: int) -> None:
        """Nobody waits. `open_files`: how many connections may take."""
        self._loop = loop
        self._most = min(MOST_WAITING, open_files // SHARE_OF_FILES)
        self._waiting: dict[asyncio.Transport, asyncio.Handle] = {}

    def add(self, transport: asyncio.Transport, seconds: float = 0.0) -> None:
        """Ends a connection after so long; nothing is read from it meanwhile."""
        if not seconds or len(self._waiting) >= self._most:
            transport.abort()
            return
        self._waiting[transport] = self._loop.call_later(
            min(seconds, LONGEST_SECONDS), self._end, transport
        )
        self._loop.call_soon(self._pause, transport)  # a new transport begins to read after this

    def close(self) -> None:
        """Ends all who wait."""
        for transport in tuple(self._waiting):
            self._end(transport)

    def _pause(self, transport: asyncio.Transport) -> None:
        if not transport.is_closing():
            transport.pause_reading()

    def _end(self, transport: asyncio.Transport) -> None:
        self._waiting.pop(transport).cancel()
        transport.abort()
