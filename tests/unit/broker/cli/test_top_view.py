"""The screen of `horolog top`: most urgent first, no wider than the terminal, names made safe."""

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from broker.cli.tables import shown
from broker.cli.top_view import Screen, show, urgent_first

NOW = 1_709_121_600_000
HOUR = 3_600_000
ESCAPE = "\x1b]0;owned\x07\u202e"


def instant(ms: int) -> dict[str, object]:
    return {"ms": ms, "iso": "2024-02-28T12:00:00.000Z"}


def partition(topic: str, **known: Any) -> dict[str, Any]:
    upcoming = {"what": "removal", "at": instant(NOW + HOUR), "segments": 2, "base_offset": 0}
    return {
        "topic": topic, "partition": 0, "segments": 3, "size_bytes": 2**21, "fault": None,
        "is_still_reading": False, "upcoming": [upcoming], "lag": None, "compaction": None,
        "oldest_record": instant(NOW - HOUR),
        "retention": {
            "overdue_ms": 0, "overdue_segments": 0, "leaving_segments": 0, "stays": 0,
            "horizon": instant(NOW - 2 * HOUR),
        },
        **known,
    }  # fmt: skip


def held_up(topic: str, ms: int) -> dict[str, Any]:
    retention = {**partition(topic)["retention"], "overdue_segments": 4, "overdue_ms": ms}
    return partition(topic, retention=retention)


def answer(*partitions: dict[str, Any], clients: list[dict[str, Any]] | None = None) -> Any:
    return {
        "now": instant(NOW), "hold": None, "retention_round": instant(NOW + 60_000),
        "partitions": list(partitions), "partitions_in_all": len(partitions), "next": None,
        "bad_clocks": {"clients": clients or [], "clients_in_all": len(clients or [])},
    }  # fmt: skip


def client(client_id: str) -> dict[str, Any]:
    return {
        "client_id": client_id, "address": "127.0.0.1", "topic": "t", "partition": 0, "count": 3,
        "direction": "future", "reason": "bound", "worst_timestamp": instant(NOW + HOUR),
    }  # fmt: skip


def drawn(screen: Screen, width: int, height: int = 12) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, height=height, force_terminal=False, markup=False
    )
    with console.capture() as capture:
        console.print(screen)
    return capture.get().splitlines()


def test_what_hurts_comes_first() -> None:
    states = [
        partition("later", upcoming=[]), partition("soon"), held_up("late", HOUR),
        held_up("latest", 2 * HOUR), partition("broken", fault="disk gone", retention=None),
    ]  # fmt: skip
    order = [each["topic"] for each in urgent_first(answer(*states))]
    assert order == ["broken", "latest", "late", "soon", "later"]


def test_a_wide_terminal_has_more_columns_and_a_narrow_one_still_the_first_two() -> None:
    screen = Screen("host:1", answer(held_up("orders", HOUR)))
    wide, narrow = "\n".join(drawn(screen, 160)), "\n".join(drawn(screen, 50))
    assert "4 for 1 h by segment 0" in wide
    assert "2.0 MiB" in wide
    assert "in 1 h: 2 segments leave" in narrow
    assert "blocked  " not in narrow


@given(st.integers(10, 200), st.integers(6, 40), st.text(max_size=60), st.integers(0, 30))
def test_nothing_is_wider_or_higher_than_the_terminal(
    width: int, height: int, name: str, count: int
) -> None:
    states = [partition(f"t{each}") for each in range(count)]
    screen = Screen("host:1", answer(*states, clients=[client(name)]))
    screen.failed("no broker answers " * 9)
    lines = drawn(screen, width, height)
    assert len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)


def test_a_broker_that_went_away_is_told_until_it_answers_again() -> None:
    screen = Screen("host:1", answer(partition("orders")))
    screen.failed("no broker answers at host:1")
    away = drawn(screen, 100)
    assert away[0].startswith("No answer for ")
    assert "no broker answers at host:1" in away[0]
    assert any("orders-0" in line for line in away), "what it said last stays"
    screen.answered(answer(partition("payments")))
    back = "\n".join(drawn(screen, 100))
    assert "No answer" not in back
    assert "payments-0" in back


def test_names_that_a_terminal_would_obey_are_written_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = answer(partition(ESCAPE), clients=[client(ESCAPE)])
    assert show(hostile, 5) == 0
    printed = capsys.readouterr().out + "\n".join(drawn(Screen("host:1", hostile), 200))
    assert not set(printed) & {"\x1b", "\x07", "\u202e"}
    assert "\\x1b]0;owned\\x07" in printed
    assert shown("plain-name") == "plain-name"


def test_no_partitions_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(answer(), 5) == 0
    assert "0 partitions" in capsys.readouterr().out
    assert drawn(Screen("host:1", answer()), 80)
