"""The connections of the HTTP port: limits on their number, by address, and on their waits.

A protocol around the HTTP library's, which counts and ends transports by itself: the library closes
politely, waits for what its client does not read, and has no time-out for half a request. When
the limit is reached a connection is closed so that a probe always gets in: of the address with too
many connections, or else with the most; first those without a request under way, the oldest first.
So addresses that many share (a proxy, a network of containers) keep the connections that work.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

MAX_CONNECTIONS = 100
MAX_PER_ADDRESS = 20  # beyond it those that ask nothing go
GRACE_SECONDS = 5.0  # in which a request may be on its way, also to a busy broker
HEAD_SECONDS = 10.0  # from the connection, or the first byte of a further request
LONG_HEAD_SECONDS = 1.0  # for the library to find the end of what may be a head
IDLE_SECONDS = 75.0  # between two requests
STALLED_SECONDS = 60.0  # for which nothing of an answer is taken
MOST_HEAD_BYTES, MOST_BODY_BYTES = 32 * 1024, 64 * 1024
PIECE_BYTES = 4096

Dropped = Callable[[str], None]


class Visits:
    """All of them. Used from the event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, dropped: Dropped) -> None:
        """`dropped(reason)` hears of each connection that is ended here."""
        self.loop = loop
        self._dropped = dropped
        self._visits: dict[asyncio.BaseTransport, Visit] = {}
        self._by_address: Counter[str] = Counter()

    def __len__(self) -> int:
        """Number of connections."""
        return len(self._visits)

    def came(self, visit: "Visit") -> None:
        """A connection was made; another one may go for it."""
        while len(self._visits) >= MAX_CONNECTIONS:
            ((address, _),) = self._by_address.most_common(1)
            self._make_room(address)
        if self._by_address[visit.address] >= MAX_PER_ADDRESS:
            self._end_resting(visit.address)
        self._visits[visit.transport] = visit
        self._by_address[visit.address] += 1

    def went(self, visit: "Visit") -> None:
        """A connection is over; fine if that is known."""
        if self._visits.pop(visit.transport, None) is not None:
            self._by_address[visit.address] -= 1
            if not self._by_address[visit.address]:
                del self._by_address[visit.address]

    def of(self, transport: asyncio.BaseTransport | None) -> "Visit | None":
        """The visit whose request is being answered."""
        return None if transport is None else self._visits.get(transport)

    def drop(self, visit: "Visit", reason: str) -> None:
        """Ends a connection now, even in the middle of a response."""
        self.went(visit)
        self._dropped(reason)
        abort = getattr(visit.transport, "abort", visit.transport.close)
        abort()

    def changed(self, visit: "Visit", transport: asyncio.BaseTransport) -> bool:
        """A connection goes on by another transport; False when it was ended meanwhile."""
        if self._visits.pop(visit.transport, None) is None:
            return False
        self._visits[transport] = visit
        return True

    async def close(self) -> None:
        """Ends them all."""
        found = list(self._visits.values())
        for visit in found:
            self.went(visit)
            visit.transport.close()
        await asyncio.gather(*(visit.over() for visit in found))

    def _make_room(self, address: str) -> None:
        there = [each for each in self._visits.values() if each.address == address]
        self.drop(min(there, key=lambda each: each.is_busy), "too_many_connections")

    def _end_resting(self, address: str) -> None:
        """Those of an address that ask nothing go, the oldest first, down to its share."""
        since = self.loop.time() - GRACE_SECONDS
        resting = [
            each
            for each in self._visits.values()
            if each.address == address and not each.is_busy and each.waits_since <= since
        ]
        for each in resting[: self._by_address[address] - MAX_PER_ADDRESS + 1]:
            self.drop(each, "too_many_connections")


class Visit(asyncio.Protocol):
    """One connection, and the library's protocol behind it."""

    def __init__(self, visits: Visits, inner: Any) -> None:
        """`inner` is an asyncio protocol."""
        self._visits = visits
        self._inner = inner
        self._timer: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._expects_head = True
        self._held = bytearray()
        self._allowance = MOST_HEAD_BYTES
        self.is_busy = False
        self.waits_since = visits.loop.time()
        self.address = ""
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts it, and waits for its first request."""
        self._enter(transport)
        self._begin(transport)

    def _enter(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        self._visits.came(self)

    def _begin(self, transport: asyncio.BaseTransport) -> None:
        self._wait(HEAD_SECONDS, "head_too_slow")
        self._inner.connection_made(transport)

    async def over(self) -> None:
        """Nothing of it is under way any more."""

    def data_received(self, data: bytes) -> None:
        """The first bytes of a request begin its time.

        The library gets little at a time, and no more than one request may have: what it cannot
        read stays in memory until garbage is collected.
        """
        if not (self.is_busy or self._expects_head):
            self._expects_head = True
            self._wait(HEAD_SECONDS, "head_too_slow")
        self._held += data
        del data  # a failure of the library's keeps this frame
        self._pass_on()

    def began(self) -> None:
        """A whole head is there, and its request is being answered."""
        self.is_busy, self._expects_head = True, False
        self._stop_waiting()
        self._allow(MOST_HEAD_BYTES + MOST_BODY_BYTES)

    def ended(self) -> None:
        """It has its answer."""
        self.is_busy, self.waits_since = False, self._visits.loop.time()
        if self._visits.of(self.transport) is self:
            self._wait(IDLE_SECONDS, "idle")
            self._allow(MOST_HEAD_BYTES)

    def eof_received(self) -> bool | None:
        """The client sends no more."""
        closes: bool | None = self._inner.eof_received()
        return closes

    def pause_writing(self) -> None:
        """The client does not read its response."""
        self._stalled = self._visits.loop.call_later(
            STALLED_SECONDS, self._visits.drop, self, "stalled_reader"
        )
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self._take_heart()
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is over."""
        self._stop_waiting()
        self._take_heart()
        self._held.clear()
        self._visits.went(self)
        self._inner.connection_lost(exc)

    def _allow(self, allowance: int) -> None:
        """So many bytes may go on to the library, those that waited first."""
        self._allowance = allowance
        if self._held:
            self.transport.resume_reading()
            self._pass_on()

    def _pass_on(self) -> None:
        while self._held and self._allowance > 0:
            piece = bytes(self._held[: min(PIECE_BYTES, self._allowance)])
            del self._held[: len(piece)]
            self._allowance -= len(piece)
            self._inner.data_received(piece)
        if self._held:
            self.transport.pause_reading()
            if not self.is_busy:
                self._wait(LONG_HEAD_SECONDS, "head_too_large")

    def _wait(self, seconds: float, reason: str) -> None:
        self._stop_waiting()
        self._timer = self._visits.loop.call_later(seconds, self._visits.drop, self, reason)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _take_heart(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None
