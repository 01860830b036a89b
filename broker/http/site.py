"""The HTTP server behind the door: paths in, text out. It decides nothing itself."""

import asyncio
import logging
import socket
from collections.abc import Callable

from aiohttp import web
from aiohttp.http import HttpProcessingError

MAX_REQUEST_BYTES = 64 * 1024
MAX_CONNECTIONS = 100

Answers = Callable[[str, str], tuple[int, str, bytes]]


class _MistakesOfClients(logging.Filter):
    """Holds back what is no fault of ours: it was answered with its status."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is logged."""
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


_logger = logging.getLogger("aiohttp.server")
_logger.addFilter(_MistakesOfClients())


class Site:
    """Serves GET for whatever `answers` knows."""

    def __init__(self, answers: Answers) -> None:
        """`answers(path, query)` runs on a thread: a scrape must not hold up the loop."""
        self._answers = answers
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_get("/{path:.*}", self._get)
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        self._listener: asyncio.Server | None = None

    async def start(self, listening: socket.socket) -> None:
        """Serves the connections of a listening socket."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(self._admit, sock=listening)

    async def stop(self) -> None:
        """Answers what is in flight, then ends."""
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()

    def _admit(self) -> asyncio.Protocol:
        """A new connection; in a crowd the oldest one goes, so that a probe always gets in."""
        server = self._runner.server
        assert server is not None
        connections = server.connections
        if len(connections) >= MAX_CONNECTIONS:
            connections[0].force_close()
        return server()

    async def _get(self, request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        status, content_type, body = await loop.run_in_executor(
            None, self._answers, request.path, request.query_string
        )
        headers = {
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
        }
        return web.Response(status=status, body=body, headers=headers)
