"""The time page of many partitions: it asks for the bars of those in sight, as they come there."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.support.page.browser import chromium, missing, until, watched_page
from tests.support.page.painted import PAINTED
from tests.support.page.timeline_answers import timeline
from tests.support.worlds.broker_process import start_broker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

WIDE = {"width": 1400, "height": 900}
TWO_FRAMES = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
BAR = '[data-key="big:%d"] canvas'


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with start_broker(tmp_path_factory.mktemp("page") / "data") as process:
        yield f"http://{process.facts['http']}"


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as browser:
        yield browser


def is_painted(page: "Page", partition: int) -> None:
    """Waits until that partition has its bars."""
    canvas = f"document.querySelector('{BAR % partition}')"
    until(page, f"({PAINTED})({canvas}).columns.length > 100")


class Big:
    """Two hundred partitions of a hundred segments, and what the page asks about them."""

    def __init__(self, page: "Page", partitions: int = 200, segments: int = 100) -> None:
        self.bars: list[int] = []
        self.bytes = 0
        self._size = partitions, segments
        page.route("**/api/timeline?*", self._answer)

    def _answer(self, route: "Route") -> None:
        asked = dict(parse_qsl(urlsplit(route.request.url).query))
        answer = timeline(*self._size, asked)
        body = json.dumps(answer)
        self.bytes += len(body)
        if asked.get("bars"):
            self.bars.append(len(answer["partitions"]))
        route.fulfill(body=body, content_type="application/json")


def test_200_partitions_of_100_segments_are_asked_for_as_they_come_into_sight(
    browser: "Browser", origin: str
) -> None:
    with watched_page(browser, origin, viewport=WIDE) as page:
        big = Big(page)
        page.goto(f"{origin}/")
        page.locator("#rows .row").nth(199).wait_for(state="attached")
        page.locator("#pages-said").wait_for(state="attached")
        page.locator("#totals", has_text="200").wait_for()
        page.get_by_role("button", name="Pause").click()
        assert big.bytes < 1_000_000
        assert max(big.bars) < 60, "of those in sight, and a few around them"
        is_painted(page, 0)
        far = page.get_by_role("button", name="big-150")
        far.scroll_into_view_if_needed()
        is_painted(page, 150)


def test_what_came_into_sight_just_before_a_pause_is_asked_for(
    browser: "Browser", origin: str
) -> None:
    """An answer was under way, so it was not asked for at once; and there is no next round."""
    with watched_page(browser, origin, viewport=WIDE) as page:
        Big(page)
        last: list[Route] = []

        def keep(route: "Route") -> None:
            last.append(route)

        page.route("**/api/topics?*", keep)
        with page.expect_request("**/api/topics?*"):
            page.goto(f"{origin}/")
        is_painted(page, 0)
        page.get_by_role("button", name="Pause").click()
        page.get_by_role("button", name="big-150").scroll_into_view_if_needed()
        page.evaluate(TWO_FRAMES)
        last[0].continue_()
        is_painted(page, 150)


def test_more_partitions_than_a_page_holds_are_on_the_next(browser: "Browser", origin: str) -> None:
    with watched_page(browser, origin, viewport=WIDE) as page:
        Big(page, 450, 2)
        page.goto(f"{origin}/")
        page.get_by_role("button", name="Next partitions").click()  # while answers are under way
        page.get_by_role("button", name="big-200", exact=True).wait_for()
        assert page.locator("#rows .row").count() <= 200
        page.get_by_role("button", name="Previous partitions").click()
        page.get_by_role("button", name="big-0", exact=True).wait_for()


def test_the_first_rows_do_not_wait_for_the_rest(browser: "Browser", origin: str) -> None:
    held: list[Route] = []

    def hold(route: "Route") -> None:
        asked = dict(parse_qsl(urlsplit(route.request.url).query))
        if asked.get("limit") == "200":
            held.append(route)
        else:
            route.fulfill(json=timeline(200, 100, asked))

    with watched_page(browser, origin, viewport=WIDE) as page:
        page.route("**/api/timeline?*", hold)
        page.goto(f"{origin}/")
        page.locator("#rows .row .next", has_text="goes in").first.wait_for()
        painted = page.locator(BAR % 0).evaluate(PAINTED)
        assert len(painted["columns"]) > 100
        page.unroute("**/api/timeline?*")
