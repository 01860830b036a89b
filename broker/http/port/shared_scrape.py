"""The scrape: one at a time, on a thread of its own, shared by all who ask within a second.

However many ask, the broker renders its metrics once a second at the most, and nobody waits behind
them who wants something else.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

KEPT_SECONDS = 1.0

Text = tuple[str, bytes]


class _Kept(NamedTuple):
    text: asyncio.Future[Text]
    began_seconds: float


class SharedScrape:
    """Used from the event loop."""

    def __init__(self, scrape: Callable[[str], Text], monotonic: Callable[[], float]) -> None:
        """`scrape(path)` gives content type and body; it runs on a thread."""
        self._scrape = scrape
        self._monotonic = monotonic
        self._thread = ThreadPoolExecutor(1, "http-scrape")
        self._kept: dict[str, _Kept] = {}

    async def text(self, path: str) -> Text:
        """As the broker is now, or was not more than a second ago."""
        kept = self._kept.get(path)
        if kept is None or self._is_old(kept):
            work = asyncio.get_running_loop().run_in_executor(self._thread, self._scrape, path)
            kept = self._kept[path] = _Kept(work, self._monotonic())
        return await asyncio.shield(kept.text)

    def close(self) -> None:
        """No more are asked for."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _is_old(self, kept: _Kept) -> bool:
        """One under way is shared, however long it takes; one that failed is not kept."""
        if not kept.text.done():
            return False
        failed = kept.text.cancelled() or kept.text.exception() is not None
        return failed or self._monotonic() - kept.began_seconds >= KEPT_SECONDS
