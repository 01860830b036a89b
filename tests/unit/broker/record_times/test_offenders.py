"""Clients with bad times: exact counts, bounded memory, the guilty outlast others, few lines."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from broker.partitions.partition_services import Nobody
from broker.record_times.offenders import LOGGED_EVERY_MS, MAX_CLIENT_ID, MAX_ENTRIES, DirtyClients
from broker.runtime.event_log import journal
from broker.runtime.probes import BrokerProbes
from storage.timestamps import Direction, Suspicion
from storage.validation.dirty_timestamps import Action, DirtyFinding, DirtyTimes
from tests.support.disk.simenv import SimClock

NOW = 1_760_000_000_000
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Court:
    """Whom the tests accuse."""

    def __init__(self) -> None:
        self.clock = SimClock(NOW)
        self.probes = BrokerProbes(self.clock.monotonic)
        self.clients = DirtyClients(self.clock, self.probes)

    def found(
        self,
        client: str = "c",
        *,
        topic: str = "t",
        count: int = 1,
        worst: int = NOW * 1000,
        base_offset: int | None = 0,
        action: Action = Action.ACCEPTED,
        direction: Direction = Direction.FUTURE,
    ) -> None:
        finding = DirtyFinding(
            direction, Suspicion.BOUND, action, count, 0, count - 1, worst, count - 1
        )
        log: Any = SimpleNamespace(topic=topic, partition=0)
        dirty = DirtyTimes(self.clock.now_ms(), (finding,))
        self.clients.found(log, dirty, base_offset, Nobody(client, "10.0.0.1"))

    def listed(self) -> list[dict[str, Any]]:
        listed = self.clients.report()["clients"]
        assert isinstance(listed, list)
        return listed


@pytest.fixture
def court() -> Court:
    return Court()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(journal, "as_json", True)
    monkeypatch.setattr(journal, "write", lambda line: written.append(json.loads(line)))
    monkeypatch.setattr(journal, "_windows", {})
    return written


def test_an_entry_grows_with_each_batch(court: Court) -> None:
    court.found(count=3, worst=NOW + 10**7, base_offset=100)
    court.clock.advance(5000)
    court.found(count=2, worst=NOW + 10**9, base_offset=500)
    court.found(count=2, worst=NOW + 10**8, base_offset=900)
    (entry,) = court.listed()
    assert entry["count"] == 7
    assert (entry["first_offset"], entry["last_offset"]) == (100, 901)
    assert (entry["worst_offset"], entry["worst_timestamp_ms"]) == (501, NOW + 10**9)
    assert entry["worst_skew_ms"] == 5000 - 10**9
    assert (entry["first_seen_ms"], entry["last_seen_ms"]) == (NOW, NOW + 5000)


@pytest.mark.parametrize("worst", [INT64_MIN, INT64_MAX, 0])
def test_any_time_is_reported_as_json(court: Court, worst: int) -> None:
    court.found(worst=worst)
    again = json.loads(json.dumps(court.clients.report()))
    assert again["clients"][0]["worst_skew_ms"] == NOW - worst


def test_the_report_begins_with_those_of_most_records(court: Court) -> None:
    for client, count in (("few", 2), ("many", 30), ("some", 10)):
        court.found(client, count=count)
    assert [entry["client_id"] for entry in court.listed()] == ["many", "some", "few"]
    limited = court.clients.report(1)["clients"]
    assert isinstance(limited, list)
    assert len(limited) == 1


def test_records_that_were_not_stored_have_no_offsets_and_wrote_nothing(court: Court) -> None:
    court.found(action=Action.REJECTED, base_offset=None)
    court.found(action=Action.QUARANTINED, base_offset=40)
    assert [entry["last_offset"] for entry in court.listed()] == [None, None]
    assert court.clients.who("t", 0, 0, 10**6) == []


def test_memory_is_bounded_the_guilty_outlast_the_many_and_counters_are_exact(
    court: Court, lines: list[dict[str, Any]]
) -> None:
    court.found("guilty", count=1_000_000)
    for number in range(3 * MAX_ENTRIES):
        court.found(f"passer-by {number}", count=2)
    entries = court.listed()
    assert len(entries) == MAX_ENTRIES
    assert (entries[0]["client_id"], entries[0]["count"]) == ("guilty", 1_000_000)
    assert court.clients.forgotten_entries == 2 * MAX_ENTRIES + 1
    assert court.clients.forgotten_records == 2 * court.clients.forgotten_entries
    assert sum(court.probes.dirty.values()) == 1_000_000 + 6 * MAX_ENTRIES
    assert sum(entry["count"] for entry in entries) == (
        1_000_000 + 6 * MAX_ENTRIES - court.clients.forgotten_records
    )
    assert len(lines) <= 10


def test_a_name_of_a_client_takes_no_more_room_than_others(court: Court) -> None:
    court.found("n" * 30_000)
    assert len(court.listed()[0]["client_id"]) == MAX_CLIENT_ID


def test_a_deleted_topic_takes_its_entries_along(court: Court) -> None:
    court.found(topic="t")
    court.found(topic="u")
    court.clients.topic_deleted("t")
    assert [entry["topic"] for entry in court.listed()] == ["u"]


def test_one_line_a_minute_says_how_many_it_did_not_tell(
    court: Court, lines: list[dict[str, Any]]
) -> None:
    for _ in range(1000):
        court.found(count=10)
    assert [line["records"] for line in lines] == [10]
    court.clock.advance(LOGGED_EVERY_MS)
    court.found(count=7)
    first, second = lines
    assert (first["event"], first["level"]) == ("dirty_timestamps", "warning")
    assert (second["records"], second["untold_records"]) == (7, 9990)
    assert (second["client_id"], second["topic"], second["reason"]) == ("c", "t", "bound")
    assert second["worst_skew_seconds"] == (NOW - NOW * 1000) / 1000
    assert "untold_records" not in first


def test_records_without_time_are_no_warning(court: Court, lines: list[dict[str, Any]]) -> None:
    court.found(direction=Direction.NONE, action=Action.STORED, worst=-1)
    assert lines == []
    assert court.listed()[0]["direction"] == "none"
