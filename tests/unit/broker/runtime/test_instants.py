"""Instants and durations as people write them."""

import pytest

from broker.runtime.instants import instant, instant_or_none, iso, parse_duration, parse_instant

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
