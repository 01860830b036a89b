"""Which records are mistimed, how, and what is kept of it, on each side of each limit."""

from array import array
from importlib import import_module
from types import ModuleType

import pytest

from protocol.records import mistimed
from protocol.records.mistimed import (
    BOUND,
    EXPIRED,
    FAR,
    FUTURE,
    MICROSECONDS,
    NEGATIVE,
    NO_TIME,
    PAST,
    SECONDS,
    TALLY_COLUMNS,
    VERDICTS,
    ZERO,
    Limits,
    verdict_of,
)
from tests.support.records.mistimed_records import SOURCE, judged, payload_of

NOW = 1_760_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
LIMITS = Limits(NOW, NOW - 30 * DAY, NOW + 2 * DAY, NOW - 7 * DAY, NOW + HOUR)
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@pytest.fixture(params=["built", "source"])
def judge(request: pytest.FixtureRequest) -> ModuleType:
    if request.param == "built":
        return import_module("protocol.records.mistimed")
    return SOURCE["mistimed"]


def verdicts(judge: ModuleType, *times: int) -> list[int]:
    payload = payload_of([(0, None, b"v")] * len(times))
    seen = judged(import_module("protocol.records.walk"), judge, payload, len(times), 0, LIMITS)
    outline = array("q")
    for index, (_, _, rows) in enumerate(seen.outlines):
        for row in range(len(rows) // 8):
            rows[row * 8 + 6] = times[index * 4 + row]
        outline += rows
    found = bytearray(len(times))
    tally = array("q", bytes(8 * TALLY_COLUMNS * VERDICTS))
    judge.judge_times(outline, 0, len(times), LIMITS, found, tally)
    return list(found)


def test_each_limit_belongs_to_what_is_good_or_to_the_milder_side(judge: ModuleType) -> None:
    assert verdicts(judge, NOW, LIMITS.oldest, LIMITS.latest) == [0, 0, 0]
    assert verdicts(judge, LIMITS.oldest - 1, LIMITS.low) == [verdict_of(EXPIRED, BOUND)] * 2
    assert verdicts(judge, LIMITS.latest + 1, LIMITS.high) == [verdict_of(FAR, BOUND)] * 2
    assert verdicts(judge, LIMITS.low - 1, LIMITS.high + 1) == [
        verdict_of(PAST, BOUND),
        verdict_of(FUTURE, BOUND),
    ]


def test_no_time_has_a_side_of_its_own(judge: ModuleType) -> None:
    assert verdicts(judge, -1, 0, -2) == [
        verdict_of(NO_TIME, NEGATIVE),
        verdict_of(PAST, ZERO),
        verdict_of(PAST, NEGATIVE),
    ]


def test_the_ends_of_64_bits_are_judged_like_any_time(judge: ModuleType) -> None:
    assert verdicts(judge, INT64_MIN, INT64_MAX) == [
        verdict_of(PAST, NEGATIVE),
        verdict_of(FUTURE, BOUND),
    ]


def test_a_tally_counts_and_remembers_the_first_the_last_and_the_worst(judge: ModuleType) -> None:
    times = [NOW, NOW * 1000, NOW // 1000, NOW * 1000 + 5, NOW // 1000 - 3, NOW * 1000 + 1]
    payload = payload_of([(at, None, b"v") for at in times])
    walk = import_module("protocol.records.walk")
    tally = judged(walk, judge, payload, len(times), NOW, LIMITS).tally
    rows = {
        verdict: tuple(tally[verdict * 5 : verdict * 5 + 5])
        for verdict in range(VERDICTS)
        if tally[verdict * 5]
    }
    assert rows == {
        verdict_of(PAST, SECONDS): (2, 2, 4, NOW // 1000 - 3, 4),
        verdict_of(FUTURE, MICROSECONDS): (3, 1, 5, NOW * 1000 + 5, 3),
    }


def test_a_missing_key_outweighs_any_time(judge: ModuleType) -> None:
    outline = array("q", [0, 1, 2, 3, 4, 5, NOW, -1, 0, 1, 2, 3, 4, 5, NOW, 3])
    found = bytearray(b"\x01\x01")
    judge.demand_keys(outline, 2, found)
    assert list(found) == [mistimed.KEYLESS, 1]
    assert mistimed.KEYLESS >= VERDICTS


def test_a_guess_never_leads_far_ahead_however_wide_the_bounds(judge: ModuleType) -> None:
    """A date of last year read as seconds would be the year 50,000: that is nobody's mistake."""
    last_year = NOW - 365 * DAY
    assert judge.suspect(last_year, NOW, NOW - HOUR, INT64_MAX) == BOUND
    assert judge.suspect(last_year // 1000, NOW, NOW - 400 * DAY, INT64_MAX) == SECONDS


def test_a_clock_at_the_end_of_its_range_harms_nothing(judge: ModuleType) -> None:
    for now in (INT64_MIN, -5, 0, INT64_MAX):
        assert judge.suspect(NOW * 1000, now, INT64_MIN, INT64_MAX) in range(7)
