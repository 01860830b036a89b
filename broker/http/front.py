"""Who answers a request to the HTTP port: the pages that everybody may see, or the API."""

import asyncio
from typing import TYPE_CHECKING

from broker.http.api import Api
from broker.http.exchange import Request, Response
from broker.http.gate import READS, Gate
from broker.http.pages import TEXT, Pages
from broker.http.time_page import TimePage

if TYPE_CHECKING:
    from broker.app import Broker

API = "/api"


class Front:
    """The way in. Used from the event loop."""

    def __init__(self, broker: "Broker", pages: Pages, gate: Gate) -> None:
        """`pages` are probes and scrape; the API is behind `gate`."""
        self._pages = pages
        self._time_page = TimePage()
        self._api = Api(broker, gate)

    async def answer(self, request: Request) -> Response:
        """Never raises for what a client did."""
        if request.path == API or request.path.startswith(f"{API}/"):
            return await self._api.answer(request)
        if request.method not in READS:
            allowed = {"Allow": ", ".join(READS)}
            return Response(405, TEXT, b"only GET and HEAD here\n", allowed)
        return await asyncio.get_running_loop().run_in_executor(None, self._open_to_all, request)

    def _open_to_all(self, request: Request) -> Response:
        """On a thread."""
        found = self._time_page.answer(request.path)
        if found is not None:
            return found
        return Response(*self._pages.answer(request.path, request.query))

    def close(self) -> None:
        """No more questions are taken."""
        self._api.close()
