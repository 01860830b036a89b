"""The HTTP server behind the door: requests in, responses out. It decides nothing itself.

Bodies are small and come soon, or the request is refused before anybody looks at it.
"""

import asyncio
import logging
import socket

from aiohttp import web
from aiohttp.http import HttpProcessingError

from broker.http.port.listener import Answering
from broker.http.port.messages import ApiError, Request, Response
from broker.http.port.tls_visit import TlsVisit
from broker.http.port.visits import MOST_BODY_BYTES, Visit, Visits
from broker.runtime.probes import BrokerProbes
from broker.server.tls_listener import TlsListener

BODY_SECONDS = 10.0
BACKLOG = 128
SSL = "ssl_object"  # asyncio's name
STOP_SECONDS = 1.0  # for answers in flight, and as long again for what is left of them


class _MistakesOfClients(logging.Filter):
    """Holds back what is no fault of ours: it was answered with its status."""

    def filter(self, record: logging.LogRecord) -> bool:
        """False for malformed HTTP, and for clients that left before their answer."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)


_logger = logging.getLogger("aiohttp.server")
_logger.addFilter(_MistakesOfClients())


class AiohttpAdapter:
    """Serves what `answering` knows."""

    def __init__(
        self,
        answering: Answering,
        tls: TlsListener | None = None,
        probes: BrokerProbes | None = None,
    ) -> None:
        """Nothing is listened to yet. With `tls` requests come by it, and `probes` counts."""
        self._answering = answering
        self._tls = tls
        self._probes = probes
        app = web.Application(client_max_size=MOST_BODY_BYTES)
        app.router.add_route("*", r"/{path:[\s\S]*}", self._handle)  # a name may hold a newline
        self._runner = web.AppRunner(
            app, access_log=None, handle_signals=False, shutdown_timeout=STOP_SECONDS
        )
        self._listener: asyncio.Server | None = None
        self._visits: Visits

    async def start(self, listening: socket.socket) -> None:
        """Serves the connections of a listening socket."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._visits = Visits(loop, self._answering.dropped)
        self._listener = await loop.create_server(self._admit, sock=listening, backlog=BACKLOG)

    async def stop(self) -> None:
        """Answers what is in flight, as far as that is soon done, then ends."""
        if self._listener is not None:
            self._listener.close()
        await self._runner.cleanup()
        await self._visits.close()
        self._answering.close()

    def _admit(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None
        if self._tls is None:
            return Visit(self._visits, server())
        return TlsVisit(self._visits, server(), self._tls, self._probes)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        visit = self._visits.of(request.transport)
        if visit is None:
            raise ConnectionResetError  # ended meanwhile: nobody listens
        visit.began()
        try:
            response = await self._answered(request)
            await response.prepare(request)
            await response.write_eof()
        finally:
            visit.ended()
        return response

    async def _answered(self, request: web.Request) -> web.Response:
        try:
            asked = await _read(request)
        except ApiError as error:
            return _web_response(error.response())
        return _web_response(await self._answering.answer(asked))


async def _read(request: web.Request) -> Request:
    """The request with its body; ApiError when that is too large, too slow, or none."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            body = await request.read()
    except web.HTTPRequestEntityTooLarge as error:
        message = f"A body of more than {MOST_BODY_BYTES} bytes is not read"
        raise ApiError(413, "body_too_large", message, {"Connection": "close"}) from error
    except TimeoutError as error:
        message = f"The body did not come within {BODY_SECONDS:.0f} seconds"
        raise ApiError(408, "body_too_slow", message, {"Connection": "close"}) from error
    except (web.RequestPayloadError, HttpProcessingError) as error:
        message = f"The body is not what its headers say ({type(error).__name__})"
        raise ApiError(400, "bad_body", message, {"Connection": "close"}) from error
    headers, transport = request.headers, request.transport
    link = None if transport is None else transport.get_extra_info(SSL)
    return Request(
        request.method,
        request.rel_url.raw_path,
        request.rel_url.raw_query_string,
        headers.get("Host"),
        headers.get("Origin"),
        headers.get("Authorization"),
        body,
        request.remote or "",
        link is not None,
        link.getpeercert(binary_form=True) if link is not None else None,
    )


def _web_response(response: Response) -> web.Response:
    headers = {
        "Content-Type": response.content_type,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
        **response.headers,
    }
    return web.Response(status=response.status, body=response.body, headers=headers)
