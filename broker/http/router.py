"""Router of the HTTP port: probes, metrics, pages without token, the API."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.http.admin_api import AdminApi
from broker.http.port.access import READS, AccessControl
from broker.http.port.messages import ApiError, Request, Response
from broker.http.port.open_pages import SCRAPED, TEXT, Pages
from broker.http.port.shared_scrape import SharedScrape
from broker.http.timeline.time_page import TimePage
from broker.runtime.event_log import event

if TYPE_CHECKING:
    from broker.http.port.services import HttpServices

API = "/api"


class Router:
    """The way in. Used from the event loop."""

    def __init__(
        self,
        broker: "HttpServices",
        pages: Pages,
        scrape: Callable[[str], tuple[str, bytes]],
        gate: AccessControl,
    ) -> None:
        """`pages` are the probes; `scrape(path)` runs on a thread; the API is behind `gate`."""
        self._probes = broker.probes
        self._pages = pages
        self._gate = gate
        self._scrape = SharedScrape(scrape, broker.probes.monotonic)
        self._time_page = TimePage()
        self._api = AdminApi(broker, gate)

    async def answer(self, request: Request) -> Response:
        """Never raises for what a client did."""
        if request.path == API or request.path.startswith(f"{API}/"):
            return await self._api.answer(request)
        if request.method not in READS:
            allowed = {"Allow": ", ".join(READS)}
            return Response(405, TEXT, b"only GET and HEAD here\n", allowed)
        if self._pages.is_probe(request.path):
            return Response(*self._pages.answer(request.path, request.query))
        try:
            self._gate.check_reader(request)
        except ApiError as error:
            return self._refused(error)
        name = request.path.strip("/")
        if name in SCRAPED:
            return await self._metrics(name)
        return await asyncio.get_running_loop().run_in_executor(None, self._page, request)

    def dropped(self, reason: str) -> None:
        """The site ended a connection."""
        self._probes.http_refused(reason)

    def close(self) -> None:
        """No more questions are taken."""
        self._scrape.close()
        self._api.close()

    async def _metrics(self, name: str) -> Response:
        try:
            content_type, body = await self._scrape.text(name)
        except Exception as error:  # noqa: BLE001 - the broker goes on
            number = event("http_request_failed", "error", path=name, error=repr(error))
            return self._refused(
                ApiError(500, "internal_error", f"This is a fault of ours: event {number}")
            )
        return Response(200, content_type, body)

    def _page(self, request: Request) -> Response:
        """On a thread: files are read when the first one is asked for."""
        found = self._time_page.answer(request.path)
        if found is not None:
            return found
        return Response(*self._pages.answer(request.path, request.query))

    def _refused(self, error: ApiError) -> Response:
        self._probes.http_refused(error.code)
        return error.response()
