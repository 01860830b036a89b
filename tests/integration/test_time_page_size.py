"""The time page of a broker that has just started on many segments, all of them real.

In CI a small directory; TIME_PAGE_FULL=1 makes it 200 partitions of 100 segments, with figures.
"""

import os
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.page.browser import chromium, missing, watched_page
from tests.support.worlds.broker_process import start_broker

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

IS_FULL = os.environ.get("TIME_PAGE_FULL") == "1"
PARTITIONS, SEGMENTS = (200, 100) if IS_FULL else (20, 10)
MINUTE = 60_000
PATIENCE = 60


def fill(bootstrap: str) -> None:
    """One record of 270 bytes to a segment, a quarter of an hour from one to the next."""
    config = {"internal.segment.bytes": "300", "retention.ms": "86400000"}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("big", PARTITIONS, 1, config=config)])["big"].result(PATIENCE)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    begin = int(time.time() * 1000) - SEGMENTS * 14 * MINUTE
    for number in range(SEGMENTS):
        for partition in range(PARTITIONS):
            at = begin + number * 14 * MINUTE
            producer.produce("big", b"v" * 200, partition=partition, timestamp=at)
        assert producer.flush(PATIENCE) == 0


@pytest.mark.timeout(600)
def test_a_page_opened_right_after_the_start_fills_in_as_the_times_are_read(
    tmp_path: Path,
) -> None:
    with start_broker(tmp_path / "data") as process:
        fill(process.bootstrap)
    with start_broker(tmp_path / "data") as process, chromium() as browser:
        origin = f"http://{process.facts['http']}"
        with watched_page(browser, origin, viewport={"width": 1400, "height": 900}) as page:
            sizes: list[int] = []
            page.on(
                "response",
                lambda answer: sizes.append(int(answer.headers.get("content-length", "0"))),
            )
            page.goto(f"{origin}/")
            first = page.locator("#rows .row").first
            first.locator(".next", has_text="in ").wait_for()
            page.locator("#rows .row").nth(PARTITIONS - 1).wait_for(state="attached")
            page.get_by_role("button", name="Pause").click()
            label = str(first.locator("canvas").get_attribute("aria-label"))
            assert f"{SEGMENTS} segments with records from" in label
            assert page.locator("#totals dd").first.text_content() == str(PARTITIONS)
            if IS_FULL:
                paints = "performance.getEntriesByType('paint').map(e => [e.name, e.startTime])"
                print(page.evaluate(paints), f"{sum(sizes)} bytes", label)
                assert sum(sizes) < 2**20
