"""The time page and its questions tell which segments lie on the disk, and which in the store."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.tier.test_tiered_broker import (
    EARLIEST_LOCAL,
    make_topic,
    offset_of,
    server,
    start,
    wait_until_away,
    write,
)
from tests.support.clients.admin import Admin
from tests.support.page.browser import chromium, missing, watched_page
from tests.support.tier.s3_server import S3Server

__all__ = ["server"]

PICTURE_HAS = """(canvas, name) => {
  const style = getComputedStyle(document.documentElement), pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = style.getPropertyValue(`--${name}`).trim();
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < data.length; at += 4)
    if (data[at] === red && data[at + 1] === green && data[at + 2] === blue && data[at + 3] === 255) return true;
  return false;
}"""  # noqa: E501 - a script


@pytest.fixture(scope="module")
def broker(server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with start(server, tmp_path_factory.mktemp("of-a-tier") / "data") as broker:
        make_topic(broker.bootstrap, "far")
        write(broker.bootstrap, "far")
        wait_until_away(broker.bootstrap, "far")
        make_topic(broker.bootstrap, "near", **{"remote.storage.enable": "false"})
        write(broker.bootstrap, "near", count=100)
        yield broker


@pytest.fixture
def admin(broker: Any) -> Admin:
    return Admin(broker.facts["http"])


def of_topic(admin: Admin, topic: str, bars: int = 100) -> tuple[dict[str, Any], list[Any]]:
    """A partition's state, and its bars with the names of their numbers."""
    answer = admin.get("/api/timeline", topic=topic, bars=bars)
    (state,) = answer["partitions"]
    named = [dict(zip(answer["columns"], bar, strict=True)) for bar in state["bars"]]
    return state, [{**bar, "place": answer["places"][bar["place"]]} for bar in named]


def test_bars_tell_where_their_segments_lie(broker: Any, admin: Admin) -> None:
    state, bars = of_topic(admin, "far")
    local = offset_of(broker.bootstrap, "far", EARLIEST_LOCAL)[1]
    assert [bar["place"] for bar in bars] == [
        *("store" for bar in bars if bar["base_offset"] < local),
        *("both" for bar in bars[:-1] if bar["base_offset"] >= local),
        "local",
    ]
    assert all(bar["first_record_ms"] > 0 for bar in bars), "times of what is away are known too"
    store = state["store"]
    alone = [bar for bar in bars if bar["place"] == "store"]
    assert store["alone_segments"] == len(alone) > 0
    assert store["alone_bytes"] == sum(bar["size_bytes"] for bar in alone)
    assert store["local_start_offset"] == local
    assert store["end_offset"] == bars[-1]["base_offset"]


def test_bars_that_are_joined_are_of_one_place(admin: Admin) -> None:
    _, every = of_topic(admin, "far")
    _, few = of_topic(admin, "far", bars=1)
    assert [bar["place"] for bar in few] == list(dict.fromkeys(bar["place"] for bar in every))
    assert sum(bar["segments"] for bar in few) == len(every)


def test_a_topic_without_a_tier_has_nothing_in_the_store(admin: Admin) -> None:
    state, bars = of_topic(admin, "near")
    assert state["store"] is None
    assert {bar["place"] for bar in bars} == {"local"}


def test_segments_tell_where_they_lie(admin: Admin) -> None:
    (state,) = admin.get("/api/topics/far/segments", limit=1000)["partitions"]
    _, bars = of_topic(admin, "far")
    assert [each["place"] for each in state["segments"]] == [bar["place"] for bar in bars]


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_page_shows_and_says_it(broker: Any, admin: Admin) -> None:
    origin = f"http://{broker.facts['http']}"
    with chromium() as browser, watched_page(browser, origin) as page:
        page.goto(f"{origin}/")
        rows = page.locator("#rows .row")
        far = rows.filter(has=page.get_by_role("button", name="far-0"))
        far.get_by_text("of it in the store alone").wait_for()
        page.locator(".legend").get_by_text("in the object store alone").wait_for()
        page.locator("#totals").get_by_text("In the store", exact=True).wait_for()
        picture = far.locator("canvas")
        assert "the object store has" in str(picture.get_attribute("aria-label"))
        assert picture.evaluate(PICTURE_HAS, "store")
        near = rows.filter(has=page.get_by_role("button", name="near-0")).locator("canvas")
        assert not near.evaluate(PICTURE_HAS, "store")
        page.get_by_role("button", name="far-0").click()
        segments = page.locator("#segments tbody tr")
        segments.first.wait_for()
        told = [row.inner_text().split("\t")[3] for row in segments.all()]
        _, bars = of_topic(admin, "far")
        names = {"store": "store", "both": "disk, store", "local": "disk"}
        assert told == [names[bar["place"]] for bar in bars]
