"""Bounds are strict, no 64-bit time upsets them, and bad times are told what they look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.timestamps import (
    INT64_MAX,
    INT64_MIN,
    Bounds,
    Direction,
    Suspicion,
    bounds,
    judge,
)

NOW = 1_760_000_000_000  # October 2025
HOUR, DAY = 3_600_000, 86_400_000
USUAL = bounds(NOW, INT64_MAX, HOUR)
NARROW = bounds(NOW, 7 * DAY, HOUR)
int64 = st.integers(INT64_MIN, INT64_MAX)


def test_a_difference_equal_to_the_limit_passes() -> None:
    assert judge(NOW - 7 * DAY, NOW, NARROW) is None
    assert judge(NOW + HOUR, NOW, NARROW) is None
    past, future = judge(NOW - 7 * DAY - 1, NOW, NARROW), judge(NOW + HOUR + 1, NOW, NARROW)
    assert past is not None
    assert future is not None
    assert (past.direction, past.skew_ms) == (Direction.PAST, 7 * DAY + 1)
    assert (future.direction, future.skew_ms) == (Direction.FUTURE, HOUR + 1)
    assert past.suspicion == future.suspicion == Suspicion.BOUND


def test_no_time_is_always_accepted() -> None:
    assert judge(-1, NOW, Bounds(NOW, NOW)) is None


def test_the_widest_bounds_admit_every_time() -> None:
    widest = bounds(NOW, INT64_MAX, INT64_MAX)
    assert widest.high == INT64_MAX
    assert judge(NOW - INT64_MAX, NOW, widest) is None
    assert judge(INT64_MAX, NOW, widest) is None


@given(int64, st.integers(0, INT64_MAX), st.integers(0, INT64_MAX), st.integers(0, 2**45))
def test_the_rule_holds_for_all_of_64_bits(
    timestamp: int, before: int, after: int, now: int
) -> None:
    allowed = bounds(now, before, after)
    assert INT64_MIN <= allowed.low <= allowed.high <= INT64_MAX
    is_refused = timestamp != -1 and (now - timestamp > before or timestamp - now > after)
    verdict = judge(timestamp, now, allowed)
    assert (verdict is not None) == is_refused
    if verdict is not None:
        assert str(timestamp) in verdict.text


@pytest.mark.parametrize("skew", [-6 * DAY, 0, HOUR - 1000])
@pytest.mark.parametrize(
    ("unit", "timestamp_of"),
    [
        (Suspicion.SECONDS, lambda ms: ms // 1000),
        (Suspicion.MICROSECONDS, lambda ms: ms * 1000),
        (Suspicion.NANOSECONDS, lambda ms: ms * 1_000_000),
        (Suspicion.FILETIME, lambda ms: (ms + 11_644_473_600_000) * 10_000),
    ],
)
def test_a_time_in_another_unit_is_recognised(unit: Suspicion, timestamp_of, skew: int) -> None:
    verdict = judge(timestamp_of(NOW + skew), NOW, NARROW)
    assert verdict is not None
    assert verdict.suspicion == unit
    assert "looks like" in verdict.text


@pytest.mark.parametrize(
    ("timestamp", "unit"),
    [
        (NOW * 1000, Suspicion.MICROSECONDS),
        (NOW * 1_000_000, Suspicion.NANOSECONDS),
        ((NOW + 11_644_473_600_000) * 10_000, Suspicion.FILETIME),
        (2_700_000_000_000, Suspicion.BOUND),  # the year 2055
        (INT64_MAX, Suspicion.BOUND),
    ],
)
def test_without_a_lower_bound_the_nearest_reading_wins(timestamp: int, unit: Suspicion) -> None:
    verdict = judge(timestamp, NOW, USUAL)
    assert verdict is not None
    assert (verdict.direction, verdict.suspicion) == (Direction.FUTURE, unit)


@pytest.mark.parametrize(
    ("timestamp", "suspicion"),
    [(0, Suspicion.ZERO), (-2, Suspicion.NEGATIVE), (INT64_MIN, Suspicion.NEGATIVE),
     (12345, Suspicion.BOUND)],
)  # fmt: skip
def test_zero_and_negative_times_have_names_of_their_own(
    timestamp: int, suspicion: Suspicion
) -> None:
    verdict = judge(timestamp, NOW, NARROW)
    assert verdict is not None
    assert (verdict.direction, verdict.suspicion) == (Direction.PAST, suspicion)


def test_the_text_tells_the_bounds_and_the_unit() -> None:
    verdict = judge(NOW // 1000, NOW, NARROW)
    assert verdict is not None
    assert verdict.text == (
        f"Timestamp {NOW // 1000} is out of range. The timestamp should be within "
        f"[{NOW - 7 * DAY}, {NOW + HOUR}]; it looks like seconds, not milliseconds"
    )
