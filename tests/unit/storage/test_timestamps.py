"""Bounds are strict, no 64-bit time upsets them, and bad times are told what they look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.mistimed import suspect
from storage.timestamps import HINTS, INT64_MAX, INT64_MIN, Suspicion, bounds

NOW = 1_760_000_000_000  # October 2025
HOUR, DAY = 3_600_000, 86_400_000
USUAL = bounds(NOW, INT64_MAX, HOUR)
NARROW = bounds(NOW, 7 * DAY, HOUR)
int64 = st.integers(INT64_MIN, INT64_MAX)
GUESSES = tuple(Suspicion)


@given(int64, st.integers(0, INT64_MAX), st.integers(0, INT64_MAX), st.integers(0, 2**45))
def test_the_rule_holds_for_all_of_64_bits(
    timestamp: int, before: int, after: int, now: int
) -> None:
    allowed = bounds(now, before, after)
    assert INT64_MIN <= allowed.low <= allowed.high <= INT64_MAX
    too_old = now - timestamp > before and before < INT64_MAX
    is_refused = too_old or timestamp - now > after
    assert (not allowed.low <= timestamp <= allowed.high) == is_refused


def test_every_guess_has_a_hint() -> None:
    assert set(HINTS) == set(Suspicion)
    assert all("looks like" in HINTS[unit] for unit in GUESSES[1:5])


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
    assert GUESSES[suspect(timestamp_of(NOW + skew), NOW, *NARROW)] == unit


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
    assert GUESSES[suspect(timestamp, NOW, *USUAL)] == unit


@pytest.mark.parametrize(
    ("timestamp", "suspicion"),
    [(0, Suspicion.ZERO), (-2, Suspicion.NEGATIVE), (INT64_MIN, Suspicion.NEGATIVE),
     (12345, Suspicion.BOUND)],
)  # fmt: skip
def test_zero_and_negative_times_have_names_of_their_own(
    timestamp: int, suspicion: Suspicion
) -> None:
    assert GUESSES[suspect(timestamp, NOW, *NARROW)] == suspicion
