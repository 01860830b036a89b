"""A real `Server` on a free port whose requests are understood by the test instead of by handlers.

A frame's text decides: `later:NAME` is parked until the test settles NAME, so is `change:NAME`,
which keeps the order of requests, `none...` has no answer,
`close` ends the connection, `big:N` is answered with N bytes, anything else is echoed.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from broker.runtime.connection_limits import CloseConnection, ConnectionLimits
from broker.runtime.lanes import DiskLanes
from broker.runtime.principals import Principal
from broker.runtime.probes import BrokerProbes
from broker.runtime.request_context import Peer
from broker.runtime.rights import Rights
from broker.security.certificates import Credentials
from broker.server.dispatcher import Parts
from broker.server.page_cache import PageCache
from broker.server.server import Server
from broker.server.tls_listener import TlsListener


def framed(payload: bytes) -> bytes:
    """Four bytes of length in front."""
    return len(payload).to_bytes(4, "big") + payload


@dataclass
class Limits:
    """The settings that the server reads for each connection."""

    max_connections: int = 1000
    max_connections_per_ip: int = 1000
    horolog_max_connection_rate_per_ip: int = 0
    horolog_admin_listener_name: str = ""
    listener_max_connections: Mapping[str, int] = field(default_factory=dict)


class Parked:
    """A request whose answer the test decides on; stands in for the dispatcher's `Pending`."""

    def __init__(self, *, keeps_order: bool = False) -> None:
        self.keeps_order = keeps_order
        self.abandoned = False
        self.hurried = False
        self._listener: Callable[[Any, Any], None] | None = None

    def listen(self, listener: Callable[[Any, Any], None]) -> None:
        self._listener = listener

    def abandon(self) -> None:
        self.abandoned = True

    def hurry(self) -> None:
        self.hurried = True

    def answer(self, payload: bytes) -> None:
        assert self._listener is not None
        self._listener([framed(payload)], None)

    def fail(self, reason: str) -> None:
        assert self._listener is not None
        self._listener(None, CloseConnection(reason))


class Echo:
    """The server and what it has seen."""

    def __init__(self, limits: ConnectionLimits, settings: Limits) -> None:
        loop = asyncio.get_running_loop()
        self.seen: list[bytes] = []
        self.looked_up: list[str] = []
        """Users whose rights were looked up."""
        self.parked: dict[str, Parked] = {}
        self.parts: dict[str, Parts] = {}
        self.probes = BrokerProbes(loop.time)
        cache = PageCache(DiskLanes(loop).lane("data"))
        self.server = Server(
            loop,
            limits,
            self.probes,
            lambda: settings,
            page_cache=cache,
            rights_of=self.rights_of,
        )
        self.port = 0

    def rights_of(self, principal: Principal, host: str) -> Rights | None:
        self.looked_up.append(str(principal))
        return None

    def dispatch(self, frame: memoryview, peer: Peer) -> Any:
        payload = bytes(frame)
        self.seen.append(payload)
        text = payload.decode("latin-1").strip()
        if text.startswith("later:"):
            return self.parked.setdefault(text.removeprefix("later:"), Parked())
        if text.startswith("change:"):
            return self.parked.setdefault(text.removeprefix("change:"), Parked(keeps_order=True))
        if text.startswith("parts:"):
            return list(self.parts[text.removeprefix("parts:")])
        if text.startswith("big:"):
            return [framed(b"x" * int(text.removeprefix("big:")))]
        if text.startswith("close"):
            raise CloseConnection("malformed", "the test said so")
        return None if text.startswith("none") else [framed(payload)]

    async def sweep(self, now: float) -> None:
        await self.server.sweep(now)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Waits for something that the server will do."""
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.001)


@asynccontextmanager
async def echo_server(
    limits: ConnectionLimits | None = None,
    settings: Limits | None = None,
    credentials: Credentials | None = None,
) -> AsyncIterator[Echo]:
    """A served port, with TLS if it has `credentials`; everything is closed at the end."""
    echo = Echo(limits or ConnectionLimits(), settings or Limits())
    name = "PLAINTEXT"
    if credentials is not None:
        name = "SSL"
        echo.server.tls[name] = TlsListener(name, credentials)
    echo.port = echo.server.bind(name, "127.0.0.1", 0, None).port
    await echo.server.accept(100, echo.dispatch)
    try:
        yield echo
    finally:
        echo.server.stop_accepting()
        await echo.server.drain(0)
        await asyncio.sleep(0)
