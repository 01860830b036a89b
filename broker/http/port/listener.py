"""The HTTP port: open from the first moment; loads aiohttp on the first connection.

Loading it and the pages takes 0.2 s and 20 MB, which a start should not pay for. Until then the
system queues the connection. Only `aiohttp_adapter.py` and `fetch.py` import the library.
"""

import asyncio
import importlib
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from broker.runtime.event_log import event

if TYPE_CHECKING:
    from broker.http.port.messages import Request, Response
    from broker.runtime.probes import BrokerProbes
    from broker.server.tls_listener import TlsListener


class Answering(Protocol):
    """Handler of the requests of a site."""

    def answer(self, request: "Request") -> "Awaitable[Response]":
        """Called on the loop; raises nothing for what a client did."""

    def dropped(self, reason: str) -> None:
        """The site ended a connection; `reason` is one of a closed set of words."""

    def close(self) -> None:
        """No more requests come."""


class HttpListener:
    """Watches a bound socket and starts the site behind it on the first connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listening: socket.socket,
        load: Callable[[], Answering],
        tls: "TlsListener | None" = None,
        probes: "BrokerProbes | None" = None,
    ) -> None:
        """`load()` makes the one who answers; it runs on a thread, once, and may import much.

        With `tls` all requests come by TLS, and `probes` counts the handshakes.
        """
        self._loop = loop
        self._socket = listening
        self._load = load
        self._tls = tls
        self._probes = probes
        self._watched: socket.socket | None = None
        self._opening: asyncio.Task[None] | None = None
        self._site: Any = None

    def open(self) -> None:
        """Listens; nothing is loaded yet."""
        self._socket.setblocking(False)
        self._socket.listen()
        self._watched = self._socket.dup()
        self._loop.add_reader(self._watched.fileno(), self._knocked)

    async def close(self) -> None:
        """Stops the site."""
        self._unwatch()
        if self._opening is not None:
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._site is not None:
            await self._site.stop()
        self._socket.close()

    def _knocked(self) -> None:
        self._unwatch()
        self._opening = self._loop.create_task(self._start())

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._loop.remove_reader(self._watched.fileno())
            self._watched.close()
            self._watched = None

    async def _start(self) -> None:
        try:
            self._site = await self._loop.run_in_executor(None, self._make_site)
            await self._site.start(self._socket)
        except Exception as error:  # noqa: BLE001 - health must not take the broker with it
            event("http_failed", "error", error=repr(error))
            self._socket.close()  # who asks is refused, not left waiting

    def _make_site(self) -> Any:
        module = importlib.import_module("broker.http.port.aiohttp_adapter")
        return module.AiohttpAdapter(self._load(), self._tls, self._probes)
