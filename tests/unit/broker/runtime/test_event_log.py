"""Events are one line each, whatever a client put in; floods are cut and their number told."""

import json

import pytest

from broker.runtime.event_log import LINES_PER_SECOND, Journal


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def journal(lines: list[str]) -> Journal:
    journal = Journal()
    journal.threshold = 20
    journal.now_ms = lambda: 1_700_000_000_123
    journal.write = lines.append
    return journal


def test_logfmt_quotes_what_needs_it(journal: Journal, lines: list[str]) -> None:
    journal.event("it_happened", "info", {"topic": "orders", "detail": 'a "b" =c', "n": 3})
    assert lines[0].startswith("time=2023-11-14T22:13:20.123Z level=info event=it_happened id=")
    assert lines[0].endswith(r'topic=orders detail="a \"b\" =c" n=3')


def test_json_lines_parse(journal: Journal, lines: list[str]) -> None:
    journal.as_json = True
    journal.event("it_happened", "warning", {"client": "a\nb", "n": 3})
    fields = json.loads(lines[0])
    assert (fields["event"], fields["client"], fields["n"]) == ("it_happened", "a\nb", 3)


@pytest.mark.parametrize("hostile", ["a\nlevel=error", "\x1b[31m", "x" * 10_000, "\u202e"])
@pytest.mark.parametrize("as_json", [True, False])
def test_hostile_values_cannot_forge_a_line(
    journal: Journal, lines: list[str], hostile: str, as_json: bool
) -> None:
    journal.as_json = as_json
    journal.event("it_happened", "info", {"client": hostile})
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert lines[0].isascii()
    assert len(lines[0]) < 1000


def test_below_the_threshold_nothing_is_written(journal: Journal, lines: list[str]) -> None:
    journal.event("detail", "debug", {})
    assert lines == []


def test_a_flood_is_suppressed_and_told(journal: Journal, lines: list[str]) -> None:
    now = [0]
    journal.now_ms = lambda: now[0]
    for _ in range(100):
        journal.event("flood", "warning", {})
        journal.event(f"other{len(lines)}", "debug", {})
    assert len(lines) == LINES_PER_SECOND
    now[0] = 1000
    journal.event("flood", "warning", {})
    assert f"suppressed={100 - LINES_PER_SECOND}" in lines[-1]
