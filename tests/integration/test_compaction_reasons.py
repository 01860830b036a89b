"""What holds a compaction up, as the API and the command say it, by a clock that the test holds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.cli.main import main
from protocol.records.builder import build_batch
from tests.support.clients.admin import Admin
from tests.support.worlds.watched_broker import WatchedBroker, produce_to

START, START_MS = "2026-03-01T12:00:00Z", 1_772_366_400_000
HOUR_MS = 3_600_000
BOUND = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "1.0",
    "max_compaction_lag_ms": str(HOUR_MS),
    "delete_retention_ms": str(2 * HOUR_MS),
}


class Asked:
    """A broker whose clock stands still, its API and its command."""

    def __init__(self, broker: WatchedBroker, capsys: pytest.CaptureFixture[str]) -> None:
        self.broker = broker
        self.admin = Admin(broker.process.facts["http"])
        self._capsys = capsys

    def put(self, *records: tuple[bytes, bytes | None], topic: str = "t") -> None:
        """A batch of the broker's present."""
        now_ms = self.admin.get("/api/clock")["wall"]["ms"]
        with self.broker.client() as client:
            batch = build_batch([(now_ms, key, value) for key, value in records])
            assert produce_to(client, batch, topic=topic).error_code == 0

    def step(self, by: str) -> None:
        self.admin.post("/api/clock/step", by=by)

    def state(self, topic: str = "t") -> Any:
        (state,) = self.admin.get(f"/api/topics/{topic}/compaction")["partitions"]
        return state

    def command(self, *arguments: str) -> str:
        self._capsys.readouterr()
        http = ["--http", self.broker.process.facts["http"]]
        assert main(["compaction", *arguments, *http]) == 0
        return self._capsys.readouterr().out


@pytest.fixture
def settings() -> dict[str, str]:
    return {}


@pytest.fixture
def asked(
    tmp_path: Path, settings: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> Iterator[Asked]:
    options = ["--test-clock", START]
    with WatchedBroker(tmp_path / "data", settings, options=options) as broker:
        found = Asked(broker, capsys)
        found.admin.post("/api/clock/freeze")
        yield found


def test_from_the_first_record_until_the_last_tombstone_is_gone(asked: Asked) -> None:
    asked.broker.make_topic("t", **BOUND)
    assert asked.state()["blocked_by"] == "clean"
    assert asked.state()["oldest_dirty"] is None

    asked.put((b"a", b"1"), (b"a", b"2"), (b"b", b"3"))
    asked.put((b"b", None))
    asked.step("10m")
    state = asked.state()
    assert (state["first_dirty_offset"], state["dirty_ratio"]) == (0, 0)
    assert (state["blocked_by"], state["overdue_ms"]) == ("active_segment", 0)
    assert 600_000 <= state["oldest_dirty"]["age_ms"] < 660_000
    assert state["deadline"]["ms"] == state["oldest_dirty"]["time"]["ms"] + HOUR_MS
    assert state["blocked_until"] == state["deadline"]
    assert state["last_run"] is None
    text = asked.command("t")
    assert "within 1 h, tombstones stay 2 h" in text
    assert "active segment" in text
    assert "0: all dirty records are in the active segment, until 2026-03-01T13:00" in text
    assert all(len(line) <= 100 for line in text.splitlines())

    asked.step("51m")
    state = asked.state()
    assert (state["first_dirty_offset"], state["blocked_by"]) == (4, "clean")
    assert (state["overdue_ms"], state["deadline"]) == (0, None)
    assert state["last_run"]["records_removed"] == 2
    horizon = state["next_run"]["tombstones_go_at"]["ms"]
    assert horizon > START_MS + 3 * HOUR_MS
    assert "the first tombstone that stayed may go at" in asked.command("t")

    asked.step("3h")
    state = asked.state()
    assert state["next_run"]["tombstones_go_at"] is None
    assert state["last_run"]["records_removed"] == 1


@pytest.mark.parametrize("settings", [{"log.cleaner.enable": "false"}])
def test_what_the_next_run_would_do_is_a_bound_that_holds(asked: Asked) -> None:
    asked.broker.make_topic("t", **BOUND)
    for number in range(5):
        asked.put((b"a", b"%d" % number), (b"b%d" % number, b""))
    asked.step("2h")
    state = asked.state()
    assert state["blocked_by"] == "cleaner_off"
    assert state["is_eligible"]
    assert state["overdue_ms"] == pytest.approx(HOUR_MS, abs=60_000)
    run = state["next_run"]
    assert (run["from_offset"], run["to_offset"], run["removes_records_at_most"]) == (0, 10, 10)
    assert run["read_bytes"] == 2 * state["cleanable_bytes"]
    text = asked.command("t", "--partition", "0")
    assert "cleaner off" in text
    assert "1 h" in text


def test_each_thing_that_holds_a_run_up_has_a_name(asked: Asked) -> None:
    small = {"internal_segment_bytes": "200"}
    topics = {
        "young": {**small, "min_cleanable_dirty_ratio": "0.01", "min_compaction_lag_ms": "7200000"},
        "little": {**small, "min_cleanable_dirty_ratio": "1.0"},
    }
    for topic, how in topics.items():
        asked.broker.make_topic(topic, cleanup_policy="compact", **how)
        for _ in range(4):
            asked.put((b"a", bytes(100)), topic=topic)
    asked.step("1m")
    young = asked.state("young")
    assert young["blocked_by"] == "too_young"
    assert young["blocked_until"]["ms"] == pytest.approx(START_MS + 2 * HOUR_MS, abs=60_000)
    little = asked.state("little")
    assert (little["blocked_by"], little["dirty_ratio"]) == ("ratio_small", 1.0)
    assert little["deadline"] is None
    assert "without a bound on the lag" in asked.command("little")
    asked.step("2h")
    assert asked.state("young")["first_dirty_offset"] == 3


def test_a_damaged_log_says_so_and_when_it_is_tried_again(asked: Asked, tmp_path: Path) -> None:
    asked.broker.make_topic("t", **BOUND)
    asked.put((b"a", b"1"), (b"a", b"2"))
    path = tmp_path / "data" / "t-0" / "00000000000000000000.log"
    with path.open("r+b") as file:
        file.seek(-3, 2)
        file.write(b"\xff")
    asked.step("61m")
    state = asked.state()
    assert state["blocked_by"] == "set_aside"
    assert path.name in state["blocked_because"]
    assert state["blocked_until"]["ms"] > START_MS + HOUR_MS
    assert state["overdue_ms"] > 0
    assert path.name in asked.command("t")


def test_json_is_the_answer_and_other_topics_are_told_apart(asked: Asked) -> None:
    asked.broker.make_topic("t", 2, **BOUND)
    asked.broker.make_topic("plain")
    whole = json.loads(asked.command("t", "--json"))
    assert whole == asked.admin.get("/api/topics/t/compaction")
    assert [each["partition"] for each in whole["partitions"]] == [0, 1]
    assert asked.command("plain") == "plain: cleanup.policy is delete: it is not compacted\n"
    assert asked.admin.get("/api/topics/plain/compaction")["partitions"] == []
    refused = asked.admin.ask("GET", "/api/topics/t/compaction", partition=2)
    assert (refused.status, refused.code) == (404, "unknown_partition")
