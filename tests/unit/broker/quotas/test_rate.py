"""Rates over windows and the rest they ask for, by the numbers of Kafka's rules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.quotas.rate import WindowedRate

SECOND = 1000.0


def test_a_burst_after_silence_is_spread_over_all_windows() -> None:
    rate = WindowedRate(11, SECOND)
    rate.add(10_000, 0)
    assert rate.excess_ms(1000, 0) == 0  # 10 windows of silence count: exactly the bound
    rate.add(5000, 0)
    assert rate.excess_ms(1000, 0) == 5000


def test_who_rests_as_long_as_told_is_within_the_bound_again() -> None:
    rate = WindowedRate(11, SECOND)
    rate.add(14_000, 0)
    rest_ms = rate.excess_ms(1000, 0)
    assert rest_ms == 4000
    assert rate.excess_ms(1000, rest_ms - 1) > 0 or rate.excess_ms(1000, rest_ms) == 0


def test_what_is_older_than_all_windows_is_forgotten() -> None:
    rate = WindowedRate(2, SECOND)
    rate.add(10_000, 0)
    assert rate.excess_ms(1, 1999) > 0
    assert rate.excess_ms(1, 2000) == 0


def test_what_is_taken_back_was_never_there() -> None:
    rate = WindowedRate(11, SECOND)
    rate.add(50_000, 0)
    rate.add(-50_000, 0)
    assert rate.excess_ms(1, 0) == 0


@given(
    windows=st.integers(1, 12),
    bound=st.integers(100, 10_000),
    sizes=st.lists(st.integers(1, 50_000), min_size=30, max_size=60),
)
def test_a_client_that_rests_keeps_to_its_bound(windows: int, bound: int, sizes: list[int]) -> None:
    rate, now_ms = WindowedRate(windows, SECOND), 0.0
    for size in sizes:
        rate.add(size, now_ms)
        now_ms += rate.excess_ms(bound, now_ms)
    burst_seconds = windows + 2  # and a rest of all windows may earn as much again
    assert sum(sizes) <= bound * (2 * now_ms / 1000 + burst_seconds)


@pytest.mark.parametrize("now_ms", [0.0, 500.0, 10_999.0])
def test_a_rate_at_its_bound_asks_for_no_rest(now_ms: float) -> None:
    rate = WindowedRate(11, SECOND)
    rate.add(1000, now_ms)
    assert rate.excess_ms(1000, now_ms) == 0
