"""Durations, sizes, counts and instants: read, written, and the same on the time page."""

import json
import subprocess
from pathlib import Path

import pytest

from config.quantities import (
    counted,
    instant,
    instant_or_none,
    iso,
    number,
    parse_duration,
    parse_instant,
    second,
    size,
    span,
)
from tests.support.clients.node_packages import commands

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("-5", -5),
        (" 1700000000000 ", NOW),
        ("now", NOW),
        ("-1h", NOW - 3_600_000),
        ("+5m", NOW + 300_000),
        ("-7d", NOW - 604_800_000),
        ("1970-01-01", 0),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T00:00:00.001Z", 1),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00 01:00", 0),
        ("2106-02-07T06:28:15Z", 4_294_967_295_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
    ],
)
def test_an_instant_is_understood(text: str, ms: int) -> None:
    assert parse_instant(text, NOW) == ms


@pytest.mark.parametrize("text", ["", "soon", "1h", "-1x", "2024-13-01", "12:00", "9" * 30, "1.5"])
def test_what_is_no_instant_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"no time|does not fit|out of bounds"):
        parse_instant(text, NOW)


def test_durations() -> None:
    assert parse_duration("90") == 90
    assert parse_duration("-2h") == -7_200_000
    with pytest.raises(ValueError, match="does not fit"):
        parse_duration("1KiB")


@pytest.mark.parametrize("ms", [0, 1, NOW, 4_294_967_296_000, 253_402_300_799_999])
def test_an_answer_carries_both_and_they_agree(ms: int) -> None:
    told = instant(ms)
    assert told["ms"] == ms
    assert told["iso"] is not None
    assert parse_instant(told["iso"], NOW) == ms


def test_times_that_no_calendar_shows_have_no_text() -> None:
    assert iso(2**63 - 1) is None
    assert iso(-(2**63)) is None
    assert instant_or_none(-1) is None
    assert instant_or_none(None) is None


WORDS = Path(__file__).parents[3] / "broker" / "http" / "timeline" / "page" / "words.js"
WRITTEN = [
    ("span", 0, "0 ms"),
    ("span", 999, "999 ms"),
    ("span", -500, "-500 ms"),
    ("span", 1000, "1 s"),
    ("span", 61_000, "1 min 1 s"),
    ("span", -90_000, "-1 min 30 s"),
    ("span", 3_600_001, "1 h"),
    ("span", 86_405_000, "1 d"),
    ("span", 601_200_000, "6 d 23 h"),
    ("span", 365 * 86_400_000, "365 d"),
    ("span", 31_557_600_000, "1 y"),
    ("span", 1_700_000_000_000, "53 y 317 d"),
    ("size", 0, "0 B"),
    ("size", 1023, "1023 B"),
    ("size", 1024, "1.0 KiB"),
    ("size", -2048, "-2.0 KiB"),
    ("size", 1_500_000_000, "1.4 GiB"),
    ("size", 1 << 40, "1.0 TiB"),
    ("size", 3 << 50, "3.0 PiB"),
    ("size", 1 << 62, "4.0 EiB"),
    ("number", 0, "0"),
    ("number", 999, "999"),
    ("number", 1_234_567, "1 234 567"),
    ("number", -1000, "-1 000"),
]
COUNTED = [(0, "0 segments"), (1, "1 segment"), (1000, "1 000 segments")]


def test_spans_sizes_and_counts_as_they_are_written() -> None:
    write = {"span": span, "size": size, "number": number}

    assert [(name, value, write[name](value)) for name, value, _ in WRITTEN] == WRITTEN
    assert [(value, counted(value, "segment")) for value, _ in COUNTED] == COUNTED


def test_the_time_page_writes_them_the_same_way() -> None:
    node = commands()
    if node is None:
        pytest.skip("there is no Node.js here")
    asked = [[name, value] for name, value, _ in WRITTEN]
    asked += [["counted", value, "segment"] for value, _ in COUNTED]
    program = (
        f"import * as words from {json.dumps(WORDS.as_uri())};"
        f"console.log(JSON.stringify({json.dumps(asked)}.map(([name, ...a]) => words[name](...a))))"
    )
    run = subprocess.run(
        [*node["node"], "--no-warnings", "--input-type=module", "-e", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": ""},
    )

    told = [text.replace("\u202f", " ") for text in json.loads(run.stdout)]
    assert told == [text for _, _, text in WRITTEN] + [text for _, text in COUNTED]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, "-"),
        (0, "1970-01-01T00:00:00Z"),
        (NOW + 999, "2023-11-14T22:13:20Z"),
        (-1, "1969-12-31T23:59:59Z"),
        (2**62, f"{2**62} ms"),
    ],
)
def test_an_instant_to_the_second(ms: int | None, text: str) -> None:
    assert second(ms) == text
