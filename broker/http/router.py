"""Router of the HTTP port: probes, metrics, pages without token, the API."""

import asyncio
from collections.abc import Callable

from broker.http.admin_api import AdminApi
from broker.http.port.access import READS, AccessControl
from broker.http.port.caller import Caller
from broker.http.port.identity import Identities
from broker.http.port.messages import ApiError, Request, Response
from broker.http.port.open_pages import SCRAPED, TEXT, Pages
from broker.http.port.shared_scrape import SharedScrape
from broker.http.port.shown_metrics import shown
from broker.http.timeline.time_page import TimePage
from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes

API = "/api"


class Router:
    """The way in. Used from the event loop."""

    def __init__(
        self,
        services: object,
        probes: BrokerProbes,
        pages: Pages,
        scrape: Callable[[str], tuple[str, bytes]],
        *,
        gate: AccessControl,
        identities: Identities,
    ) -> None:
        """`pages` are the probes; `scrape(path)` runs on a thread; the API is behind `gate`, and
        shows to each of `identities` what it may see. LookupError for a route open by mistake.

        The API's answers are made with attributes of `services`, each with those that it names.
        """
        self._probes = probes
        self._pages = pages
        self._gate = gate
        self._identities = identities
        self._scrape = SharedScrape(scrape, probes.monotonic)
        self._time_page = TimePage()
        self._api = AdminApi(services, gate, identities)

    async def answer(self, request: Request) -> Response:
        """Never raises for what a client did."""
        if request.path == API or request.path.startswith(f"{API}/"):
            return await self._api.answer(request)
        if request.method not in READS:
            allowed = {"Allow": ", ".join(READS)}
            return Response(405, TEXT, b"only GET and HEAD here\n", allowed)
        if self._pages.is_probe(request.path):
            return Response(*self._pages.answer(request.path, request.query))
        name = request.path.strip("/")
        try:
            self._gate.check_reader(request)
            if name in SCRAPED:
                return await self._metrics(name, await self._identities.of_reader(request))
        except ApiError as error:
            self._api.note_stranger(request, error)
            return self._refused(error)
        return await asyncio.get_running_loop().run_in_executor(None, self._page, request)

    def dropped(self, reason: str) -> None:
        """The site ended a connection."""
        self._probes.http_refused(reason)

    def close(self) -> None:
        """No more questions are taken."""
        self._scrape.close()
        self._api.close()

    async def _metrics(self, name: str, caller: Caller) -> Response:
        try:
            content_type, body = await self._scrape.text(name)
            if caller.rights is not None:
                body = await asyncio.get_running_loop().run_in_executor(None, shown, body, caller)
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
