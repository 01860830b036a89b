"""The time page in a real Chromium: what it shows, to whom, and what it must never do."""

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.support.clients.node_packages import commands, installed_packages
from tests.support.page.browser import chromium, missing, until, watched_page
from tests.support.page.painted import PAINTED
from tests.support.page.timeline_answers import nodes, queues, timeline
from tests.support.page.timeline_world import HOUR, TOPICS, timeline_broker
from tests.support.worlds.live_topic import LiveBroker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

AXE = Path(__file__).parent / "axe"
WIDE, NARROW = {"width": 1400, "height": 900}, {"width": 320, "height": 640}
HOSTILE_SHOWN = "<img src=x onerror=document.title='owned'>\"'&\\u{202e}"
Opened = Callable[..., "AbstractContextManager[Page]"]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with timeline_broker(tmp_path_factory.mktemp("page") / "data") as live:
        yield live


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(live: LiveBroker, browser: "Browser") -> Opened:
    """A page of the running broker, with its rows painted."""
    from contextlib import contextmanager

    @contextmanager
    def opened(**how: Any) -> Iterator["Page"]:
        origin = f"http://{live.http.address}"
        with watched_page(browser, origin, **{"viewport": WIDE, **how}) as page:
            page.goto(f"{origin}/")
            page.locator("#rows .row .next", has_text="goes in").first.wait_for()
            yield page

    return opened


def row(page: "Page", name: str) -> Any:
    return page.locator("#rows .row").filter(has=page.get_by_role("button", name=name))


def picture(page: "Page", name: str) -> str:
    """What a picture says to those who cannot see it."""
    return str(row(page, name).locator("canvas").get_attribute("aria-label"))


# --- what it shows ---


def test_every_partition_has_its_row_and_says_what_goes_next(opened: Opened) -> None:
    with opened() as page:
        assert page.locator("#rows button").all_text_contents() == sorted(f"{t}-0" for t in TOPICS)
        assert page.locator("#status").text_content() == "Live"
        orders = row(page, "orders-0").inner_text()
        assert re.search(r"goes in 3 min (\d+ s )?3 segments", orders)
        assert "6 held up for 5 h by segment 0" in row(page, "pinned-0").inner_text()
        assert "3 go at the next round" in picture(page, "orders-0")
        assert "a record claims 2055-02-26 12:00:00" in picture(page, "pinned-0")
        first = page.locator("#coming li").first.inner_text()
        assert re.match(r"in 3 min( \d+ s)?\s+orders-0: 3 segments", first)
        totals = page.locator("#totals").inner_text()
        assert re.search(r"Overdue, held up\s+7", totals)


def test_names_that_clients_chose_are_text_and_nothing_else(opened: Opened) -> None:
    with opened() as page:
        page.get_by_role("button", name="pinned-0").click()
        page.get_by_text("Sent by").wait_for()
        for table in ("#dirty", "#readers", "#detail-said"):
            page.locator(table, has_text=HOSTILE_SHOWN).wait_for()
        assert page.title() == "Horolog: time"
        assert page.locator("img").count() == 0


def test_a_topic_may_have_any_name(browser: "Browser", live: LiveBroker) -> None:
    """No broker of ours has such a topic; the page does not rely on that."""
    origin, name = (
        f"http://{live.http.address}",
        "<img src=x onerror=document.title='owned'>:\u202e",
    )
    with watched_page(browser, origin, viewport=WIDE) as page:

        def answer(route: "Route") -> None:
            asked = dict(parse_qsl(urlsplit(route.request.url).query))
            route.fulfill(json=timeline(3, 4, asked, name))

        page.route("**/api/timeline?*", answer)
        topics = {"topics": [{"topic": name}], "next": None}
        page.route("**/api/topics?*", lambda route: route.fulfill(json=topics))
        page.goto(f"{origin}/")
        page.locator("#rows .row .next", has_text="goes in").nth(2).wait_for()
        page.locator("#topic option").nth(1).wait_for(state="attached")
        shown = name.replace("\u202e", "\\u{202e}")
        assert page.locator("#rows button").all_text_contents() == [
            f"{shown}-{n}" for n in range(3)
        ]
        assert page.title() == "Horolog: time"
        assert page.locator("img").count() == 0
        page.unroute_all()


def test_a_broker_that_stands_alone_shows_no_nodes(opened: Opened) -> None:
    with opened() as page:
        assert page.locator("#fleet").is_hidden()


def test_nodes_of_a_fleet_are_shown_with_their_clocks(browser: "Browser", live: LiveBroker) -> None:
    origin = f"http://{live.http.address}"
    with watched_page(browser, origin, viewport=WIDE) as page:
        page.route("**/api/fleet", lambda route: route.fulfill(json=nodes("<b>here:9092")))
        page.goto(f"{origin}/")
        page.locator("#nodes tbody tr").nth(2).wait_for()
        assert "This is node 2; 3 of 64 shards" in page.locator("#nodes caption").inner_text()
        rows = page.locator("#nodes tbody tr").all()
        cells = [each.locator("th, td").all_inner_texts() for each in rows]
        assert [each[1] for each in cells] == ["<b>here:9092"] * 3
        assert [each[6] for each in cells] == ["1 min 30 s ahead", "12 ms behind", "\u2013"]
        assert [each[2] for each in cells] == ["alive", "draining", "gone"]


def test_who_may_not_see_the_nodes_sees_the_rest(browser: "Browser", live: LiveBroker) -> None:
    origin = f"http://{live.http.address}"
    refused = {"error": {"code": "denied", "message": "DESCRIBE of the cluster is not allowed"}}
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.route("**/api/fleet", lambda route: route.fulfill(status=403, json=refused))
        page.goto(f"{origin}/")
        page.locator("#rows .row .next", has_text="goes in").first.wait_for()
        page.locator("#totals", has_text="Overdue").wait_for()
        assert page.locator("#status").text_content() == "Live"
        assert page.locator("#fleet").is_hidden()


def test_queues_are_shown_with_what_is_due_next_and_the_oldest_first(
    browser: "Browser", live: LiveBroker
) -> None:
    origin, hostile = f"http://{live.http.address}", "<b>workers\u202e"
    with watched_page(browser, origin, viewport=WIDE) as page:
        answer = queues(hostile, "orders", "state")
        page.route("**/api/timeline/queues?*", lambda route: route.fulfill(json=answer))
        page.goto(f"{origin}/")
        page.locator("#queues tbody tr").nth(1).wait_for()
        assert "1 more partitions" in page.locator("#queues caption").inner_text()
        rows = page.locator("#queues tbody tr").all()
        cells = [each.locator("th, td").all_inner_texts() for each in rows]
        assert [each[0] for each in cells] == ["orders-0", "state-0"]
        due = cells[0][6]
        assert cells[0] == [
            "orders-0", "<b>workers\\u{202e}", "7\u202f000", "1\u202f200", "100", "40", due,
            "\u2013", "2 min", "3 rejected",
        ]  # fmt: skip
        assert due.endswith("in 1 min")
        page.unroute_all()


def test_a_record_of_2055_squashes_no_axis(opened: Opened) -> None:
    with opened() as page:
        pinned = row(page, "pinned-0").locator("canvas")
        painted = pinned.evaluate(PAINTED)
        assert painted["bad"]["right"], "an arrow at the end of the axis"
        assert not painted["bad"]["left"]
        bars = painted["columns"]
        assert max(bars) - min(bars) > 0.5 * painted["width"], "eight hours have most of the axis"
        orders = row(page, "orders-0").locator("canvas").evaluate(PAINTED)
        assert orders["bad"]["left"], "seconds that were sent as milliseconds"


def test_a_search_says_where_it_lands_and_marks_it_in_every_row(
    opened: Opened, live: LiveBroker
) -> None:
    api = live.http.get("/api/timeline/lookup", timestamp="-2h", internal="false")
    found = {each["topic"]: each["found"] for each in api["partitions"]}
    with opened() as page:
        page.get_by_label("Where does a search by time land?").fill("-2h")
        page.keyboard.press("Enter")
        page.locator("#when-said", has_text="lands in 4 partitions; 1 partition with").wait_for()
        lands = f"the search lands at offset {found['orders']['offset']}"
        assert lands in picture(page, "orders-0")
        assert "the search finds nothing here" in picture(page, "empty-0")
        page.get_by_text("The same as a table").click()
        at = f"offset {found['kept']['offset']}, segment {found['kept']['segment']}"
        page.locator("#table", has_text=at).wait_for()
        page.get_by_role("button", name="Clear").click()
        assert "search" not in picture(page, "orders-0")


def test_a_time_that_is_none_is_refused_in_words(opened: Opened) -> None:
    with opened() as page:
        field = page.get_by_label("Where does a search by time land?")
        field.fill("<b>yesterday</b>")
        page.get_by_role("button", name="Find").click()
        page.locator("#when-said", has_text="'<b>yesterday</b>' is no time: write").wait_for()
        assert field.get_attribute("aria-invalid") == "true"


def test_a_search_in_one_topic_tells_both_times_of_the_record(opened: Opened) -> None:
    with opened() as page:
        page.get_by_label("Topic", exact=True).select_option("orders")
        page.locator("#rows .row").nth(1).wait_for(state="detached")
        page.get_by_label("Where does a search by time land?").fill("-2h")
        page.get_by_role("button", name="Find").click()
        said = page.locator("#when-said", has_text="UTC lands at offset 13 in segment 12")
        said.wait_for()
        assert "its record claims 2" in said.inner_text()


def test_time_that_passes_is_seen_without_a_reload(opened: Opened, live: LiveBroker) -> None:
    live.topic("moving").produce(live.now_ms)
    with opened() as page:
        before = page.locator("#clock").text_content()
        live.step("1s")
        page.locator("#clock", has_not_text=str(before)).wait_for()
        page.get_by_role("button", name="Pause").click()
        paused = page.locator("#clock").text_content()
        live.step("1s")
        page.wait_for_timeout(300)
        assert page.locator("#status").text_content() == "Paused"
        assert page.locator("#clock").text_content() == paused
    live.admin.delete_topics(["moving"])["moving"].result(20)


def test_by_arrival_and_another_span_are_a_choice(opened: Opened) -> None:
    with opened() as page:
        canvas = row(page, "kept-0").locator("canvas")

        def spread() -> int:
            columns = canvas.evaluate(PAINTED)["columns"]
            return int(max(columns) - min(columns))

        page.get_by_label("Times").select_option("arrival")
        whole = spread()
        page.get_by_label("Span").select_option("the last 30 days")
        assert spread() < whole / 20
        page.get_by_label("Span").select_option("the last day")
        day = spread()
        page.get_by_role("button", name="Wider").click()
        assert page.get_by_label("Span").input_value() == "own"
        assert spread() == pytest.approx(day / 2, rel=0.1)


# --- for everybody ---


@pytest.mark.parametrize(
    "how",
    [
        {"color_scheme": "light"}, {"color_scheme": "dark"},
        {"color_scheme": "light", "viewport": NARROW}, {"forced_colors": "active"},
    ],
    ids=["light", "dark", "narrow", "forced colours"],
)  # fmt: skip
@pytest.mark.skipif(commands() is None, reason="there is no Node.js here to install axe-core")
def test_no_rule_of_accessibility_is_broken(opened: Opened, how: dict[str, Any]) -> None:
    axe = installed_packages(AXE) / "axe-core" / "axe.min.js"
    with opened(**how) as page:
        page.get_by_text("The same as a table").click()
        page.get_by_role("button", name="pinned-0").click()
        page.get_by_text("Sent by").wait_for()
        page.evaluate(axe.read_text())
        found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    faults = [
        (each["id"], each["help"], [node["html"][:120] for node in each["nodes"]])
        for each in found["violations"]
    ]
    assert not faults
    assert len(found["passes"]) > 20


def test_the_keyboard_alone_opens_a_partition_and_comes_back(opened: Opened) -> None:
    with opened() as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        seen = []
        for _ in range(30):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.textContent.trim()"))
            if seen[-1] == "pinned-0":
                break
        assert seen[0] == "Pause"
        assert seen[-3:] == ["kept-0", "orders-0", "pinned-0"], "in the order that the eye reads"
        page.keyboard.press("Enter")
        page.get_by_text("Sent by").wait_for()
        until(page, "document.activeElement.id === 'detail'")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Close"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.textContent") == "pinned-0"
        assert page.locator("#detail").is_hidden()


def test_a_narrow_window_scrolls_one_way_only(opened: Opened) -> None:
    with opened(viewport=NARROW) as page:
        page.get_by_role("button", name="pinned-0").click()
        page.get_by_text("Sent by").wait_for()
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= NARROW["width"]


def test_details_tell_what_keeps_a_segment_and_what_frees_it(opened: Opened) -> None:
    with opened() as page:
        page.get_by_role("button", name="pinned-0").click()
        detail = page.locator("#detail")
        detail.get_by_text("What frees it").wait_for()
        assert "its time lies in the future (largest record time 2055" in detail.inner_text()
        assert "Set horolog.retention.clock=earlier: it goes" in detail.inner_text()
        assert "ahead of its arrival, offset 0." in detail.inner_text()
        first = detail.locator("#segments tbody tr").first.inner_text()
        assert "2055-02-26 12:00:00" in first


# --- when things go wrong, and when there is much ---


def test_a_broker_that_is_gone_is_told_and_forgiven(opened: Opened) -> None:
    with opened() as page:
        page.route("**/api/**", lambda route: route.abort())
        page.locator("#status", has_text="No answer").wait_for()
        assert "does not answer" in page.get_by_role("alert").inner_text()
        assert page.locator("#rows .row").count() == len(TOPICS), "what it said last stays"
        page.unroute("**/api/**")
        page.locator("#status", has_text="Live").wait_for()
        assert page.get_by_role("alert").inner_text() == ""


def test_a_broker_that_wants_its_token_is_given_it(opened: Opened) -> None:
    sent: list[str] = []

    def guard(route: "Route") -> None:
        given = route.request.headers.get("authorization", "")
        sent.append(given)
        if given == "Bearer let-me-in-please":
            route.continue_()
        else:
            refusal = {"error": {"code": "token", "message": "This needs the header"}}
            route.fulfill(status=401, json=refusal)

    with opened() as page:
        page.route("**/api/**", guard)
        page.reload()
        page.locator("#status", has_text="Needs to know who you are").wait_for()
        page.get_by_label("This broker asks who you are").fill("let-me-in-please")
        page.get_by_role("button", name="Use it").click()
        page.locator("#status", has_text="Live").wait_for()
        assert page.locator("#token-form").is_hidden()
        assert "" in sent


# --- the axis by itself ---


def axis(page: "Page", work: str, *given: Any) -> Any:
    """Runs a function of the page's own module."""
    return page.evaluate(
        f"async given => ({work})(await import('/page/axis.js'), ...given)", list(given)
    )


NOW = 1_780_000_000_000
FITTED = (
    "(axis, oldest, now) => { const a = axis.fitted(oldest, now, 1000); return [a.from, a.to]; }"
)
TICKS = "(axis, from, to) => new axis.Axis(from, to, 1000).ticks().map(t => [t.ms, t.text])"


def test_the_axis_leaves_out_what_only_a_broken_clock_can_have_made(opened: Opened) -> None:
    hours = [NOW - each * HOUR for each in range(1, 9)]
    with opened() as page:
        usual = axis(page, FITTED, hours, NOW)
        assert usual[0] < NOW - 8 * HOUR < usual[0] + HOUR
        assert NOW < usual[1] < NOW + 2 * HOUR
        for bad in (0, 1_500_000, -1, NOW + 30 * 365 * 24 * HOUR, NOW - 30 * 365 * 24 * HOUR):
            assert axis(page, FITTED, [*hours, bad], NOW) == usual
        old = [NOW - each * 365 * 24 * HOUR for each in range(1, 9)]
        assert axis(page, FITTED, old, NOW)[0] < old[-1], "a mirrored history is shown whole"
        empty = axis(page, FITTED, [], NOW)
        assert empty[0] < NOW < empty[1]


def test_ticks_are_few_enough_to_read_and_none_is_missing(opened: Opened) -> None:
    day = 24 * HOUR
    with opened() as page:
        for span_ms in (10_000, HOUR // 60, HOUR, day, 9 * day, 4000 * day, 140_000 * day):
            ticks = axis(page, TICKS, NOW, NOW + span_ms)
            assert 2 <= len(ticks) <= 12
            assert all(NOW <= ms <= NOW + span_ms for ms, _ in ticks)
            assert len({text for _, text in ticks}) == len(ticks)
