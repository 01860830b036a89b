"""/api/timeline: what comes next for each partition, the bars of its segments, and the bounds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.http.timeline.time_page import POLICY
from tests.support.clients.admin import Admin
from tests.support.page.timeline_world import HOSTILE, HOUR, TOPICS, YEAR_2055, timeline_broker
from tests.support.worlds.broker_process import start_broker
from tests.support.worlds.live_topic import LiveBroker


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBroker]:
    with timeline_broker(tmp_path_factory.mktemp("timeline") / "data") as live:
        yield live


def of_topic(live: LiveBroker, topic: str, **asked: object) -> dict[str, Any]:
    answer = live.http.get("/api/timeline", topic=topic, **{"bars": 100, **asked})
    (state,) = answer["partitions"]
    found: dict[str, Any] = state
    return found


def bars(live: LiveBroker, topic: str, **asked: object) -> list[dict[str, Any]]:
    answer = live.http.get("/api/timeline", topic=topic, **{"bars": 100, **asked})
    names, states = answer["columns"], answer["states"]
    found = [dict(zip(names, each, strict=True)) for each in answer["partitions"][0]["bars"]]
    return [{**each, "state": states[each["state"]]} for each in found]


def test_what_is_too_old_goes_at_the_next_round_and_says_so(live: LiveBroker) -> None:
    round_at = live.http.get("/api/timeline")["retention_round"]["ms"]
    state = of_topic(live, "orders")
    first, then, *_ = [each for each in state["upcoming"] if each["what"] == "removal"]
    assert first["at"]["ms"] == pytest.approx(round_at, abs=50)
    assert first["because"] == "older than retention.ms"
    assert first["segments"] == state["retention"]["leaving_segments"] > 1
    assert then["at"]["ms"] > live.now_ms
    assert state["retention"]["horizon"]["ms"] == live.now_ms - 5 * HOUR
    going = [each["state"] for each in bars(live, "orders")]
    assert going[: first["segments"]] == ["goes"] * first["segments"]
    assert set(going[first["segments"] : -1]) == {"closed"}
    assert going[-1] == "overdue", "it holds a record of 1970, and waits for those before it"


def test_a_record_of_2055_is_told_with_its_client_and_what_waits_behind_it(
    live: LiveBroker,
) -> None:
    state = of_topic(live, "pinned")
    (guilty,) = state["dirty"]
    assert guilty["client_id"] == HOSTILE
    assert guilty["worst_timestamp"]["ms"] == state["newest_record"]["ms"] == YEAR_2055
    assert state["retention"]["stays"] == 0
    assert state["retention"]["stays_because"] == "its time lies in the future"
    assert state["retention"]["overdue_segments"] > 0
    assert state["retention"]["overdue_ms"] > HOUR
    first, *rest = bars(live, "pinned")
    assert first["last_record_ms"] == YEAR_2055
    assert 0 < first["last_arrival_ms"] < YEAR_2055
    assert "overdue" in {each["state"] for each in rest}


def test_a_compacted_partition_tells_when_its_oldest_dirty_record_is_due(live: LiveBroker) -> None:
    state = of_topic(live, "state")
    assert state["retention"]["horizon"] is None
    due = [each for each in state["upcoming"] if each["what"] == "compaction"]
    if state["compaction"]["deadline"] is None:
        assert not due
    else:
        assert due[0]["at"] == state["compaction"]["deadline"]
    assert {each["state"] for each in bars(live, "state")} <= {"compacted", "closed", "active"}
    assert of_topic(live, "orders")["compaction"] is None


def test_the_group_furthest_behind_is_told_in_records_and_in_time(live: LiveBroker) -> None:
    lag = of_topic(live, "orders")["lag"]
    assert lag["group"] == HOSTILE
    assert lag["records"] == 14
    assert lag["arrival_ms"] > 5 * HOUR
    assert of_topic(live, "kept")["lag"] is None


def test_an_empty_partition_has_nothing_to_come(live: LiveBroker) -> None:
    state = of_topic(live, "empty")
    assert (state["upcoming"], state["oldest_record"], state["newest_record"]) == ([], None, None)
    (bar,) = bars(live, "empty")
    assert (bar["size_bytes"], bar["first_record_ms"], bar["state"]) == (0, -1, "active")


def test_fewer_bars_than_segments_join_neighbours_and_lose_nothing(live: LiveBroker) -> None:
    every, few = bars(live, "kept"), bars(live, "kept", bars=3)
    assert len(every) > 6
    assert len(few) <= 3 + 1  # the active one stands for itself
    assert sum(each["segments"] for each in few) == len(every)
    assert sum(each["size_bytes"] for each in few) == sum(each["size_bytes"] for each in every)
    assert few[0]["first_record_ms"] == every[0]["first_record_ms"]
    assert few[-1]["last_arrival_ms"] == every[-1]["last_arrival_ms"]


def test_pages_follow_one_another_through_all_topics(live: LiveBroker) -> None:
    whole = live.http.get("/api/timeline")
    assert whole["next"] is None
    assert all(each["bars"] == [] for each in whole["partitions"])
    places = [(each["topic"], each["partition"]) for each in whole["partitions"]]
    assert places == sorted(places)
    assert len(places) == whole["partitions_in_all"]
    ours = live.http.get("/api/timeline", internal="false")
    assert [each["topic"] for each in ours["partitions"]] == sorted(TOPICS)
    assert ours["partitions_in_all"] == len(TOPICS)
    page = live.http.get("/api/timeline", limit=4)
    after = live.http.get("/api/timeline", after=page["next"])
    joined = [*page["partitions"], *after["partitions"]]
    assert [(each["topic"], each["partition"]) for each in joined] == places


@pytest.mark.parametrize(
    ("parameter", "value", "word"),
    [
        ("after", "orders", "TOPIC:PARTITION"),
        ("after", "orders:x", "after"),
        ("internal", "1", "true nor false"),
        ("bars", "1001", "0 to 1000"),
        ("limit", "0", "1 to 1000"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    live: LiveBroker, parameter: str, value: str, word: str
) -> None:
    answered = live.http.ask("GET", "/api/timeline", **{parameter: value})
    assert answered.status == 400
    assert word in answered.message
    assert live.http.ask("GET", "/api/timeline", topic="no").status == 404


def test_a_search_lands_in_a_segment_of_each_partition_that_has_a_later_record(
    live: LiveBroker,
) -> None:
    answer = live.http.get("/api/timeline/lookup", timestamp="-2h")
    landed = {each["topic"]: each["found"] for each in answer["partitions"]}
    assert landed["empty"] is None
    assert landed["pinned"]["offset"] == landed["pinned"]["segment"] == 0, "2055 answers them all"
    at = landed["orders"]
    assert at["time"]["ms"] >= answer["timestamp"]["ms"] == live.now_ms - 2 * HOUR
    bases = [each["base_offset"] for each in bars(live, "orders")]
    assert at["segment"] == max(base for base in bases if base <= at["offset"])
    by_both = live.http.get("/api/timeline/lookup", timestamp="-2h", clock="earlier")
    earlier = {each["topic"]: each["found"] for each in by_both["partitions"]}
    assert earlier["pinned"]["offset"] > 0


def test_a_search_goes_on_page_by_page(live: LiveBroker) -> None:
    page = live.http.get("/api/timeline/lookup", timestamp="-2h", limit=2)
    assert len(page["partitions"]) == 2
    rest = live.http.get("/api/timeline/lookup", timestamp="-2h", after=page["next"])
    whole = live.http.get("/api/timeline/lookup", timestamp="-2h")
    assert page["partitions"] + rest["partitions"] == whole["partitions"]


def test_the_page_is_open_to_all_and_what_it_shows_is_not(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length\n")
    token.chmod(0o600)
    settings = {"horolog.http.listener": "0.0.0.0:0", "horolog.http.token.file": str(token)}
    with start_broker(tmp_path / "data", settings, options=["--http", "0.0.0.0:0"]) as process:
        http = Admin(f"127.0.0.1:{process.facts['http'].rpartition(':')[2]}")
        page = http.ask("GET", "/")
        assert page.status == 200
        assert page.headers["Content-Security-Policy"] == POLICY
        assert page.headers["X-Content-Type-Options"] == "nosniff"
        assert (
            http.ask("GET", "/page/main.js").headers["Content-Type"].startswith("text/javascript")
        )
        assert http.ask("POST", "/").status == 405
        assert http.ask("GET", "/api/timeline").status == 401
        given = {"Authorization": "Bearer a-token-of-some-length"}
        assert http.ask("GET", "/api/timeline", given).status == 200
