"""When a segment ends, and why."""

from typing import Any

import pytest

from storage.retention.rolling import (
    RollReason,
    jitter,
    least_wait,
    max_wait,
    should_roll,
    timer_deadline,
    waited,
)
from tests.support.disk.simenv import SeededRng

DAY = 86_400_000


def decide(**facts: Any) -> RollReason | None:
    usual: dict[str, Any] = {
        "segment_size": 1000, "incoming_size": 100, "segment_bytes": 10_000, "waited_ms": 0,
        "max_wait_ms": DAY, "age_ms": DAY, "min_age_ms": 0,
        "offset_index_full": False, "time_index_full": False,
        "base_offset": 50, "incoming_last_offset": 60,
    }  # fmt: skip
    return should_roll(**(usual | facts))


def test_a_segment_that_lacks_nothing_goes_on() -> None:
    assert decide() is None


def test_what_fills_the_segment_exactly_still_fits() -> None:
    assert decide(segment_size=9900) is None
    assert decide(segment_size=9901) == RollReason.SIZE


def test_the_wait_must_be_longer_than_the_limit() -> None:
    assert decide(waited_ms=DAY) is None
    assert decide(waited_ms=DAY + 1) == RollReason.TIME
    assert decide(waited_ms=-5 * DAY) is None


def test_an_empty_segment_ends_neither_by_size_nor_by_time() -> None:
    assert decide(segment_size=0, incoming_size=20_000) is None
    assert decide(segment_size=0, waited_ms=9 * DAY) is None


def test_full_indexes_end_a_segment_even_an_empty_one() -> None:
    assert decide(offset_index_full=True) == RollReason.OFFSET_INDEX_FULL
    assert decide(time_index_full=True, segment_size=0) == RollReason.TIME_INDEX_FULL


def test_an_offset_that_does_not_fit_ends_it() -> None:
    assert decide(incoming_last_offset=50 + 2**31 - 1) is None
    assert decide(incoming_last_offset=50 + 2**31) == RollReason.OFFSET_OVERFLOW


@pytest.mark.parametrize(
    ("incoming", "first", "expected"),
    [(5000, 1000, 4000), (500, 1000, -500), (-1, 1000, -1001), (2**62, 0, 2**62)],
)
def test_records_with_time_wait_by_their_own_clock(
    incoming: int, first: int, expected: int
) -> None:
    assert (
        waited(
            incoming_max_timestamp=incoming,
            first_batch_max_timestamp=first,
            open_ms=10**15,
        )
        == expected
    )


def test_without_time_in_the_first_batch_only_our_own_time_counts() -> None:
    facts = {"first_batch_max_timestamp": -1, "open_ms": 600}
    assert waited(incoming_max_timestamp=10**15, **facts) == 600


def test_a_young_segment_ends_by_size_only() -> None:
    young = {"age_ms": 9999, "min_age_ms": 10_000}
    assert decide(waited_ms=10**15, **young) is None
    assert decide(waited_ms=10**15, age_ms=10_000, min_age_ms=10_000) == RollReason.TIME
    assert decide(segment_size=9901, **young) == RollReason.SIZE
    assert decide(waited_ms=10**15, age_ms=-9999, min_age_ms=10_000) is None
    assert decide(waited_ms=10**15, age_ms=-10_000, min_age_ms=10_000) == RollReason.TIME


CAME = 50 * DAY


def deadline(record: int, *, wait: int = DAY, floor: int = 10_000, now: int = CAME) -> int:
    return timer_deadline(
        first_record_ms=record,
        first_arrival_ms=CAME,
        max_wait_ms=wait,
        min_interval_ms=floor,
        now_ms=now,
    )


def test_the_timer_counts_from_the_earlier_of_record_time_and_arrival() -> None:
    assert deadline(CAME) == CAME + DAY
    assert deadline(CAME - DAY // 2) == CAME + DAY // 2
    assert deadline(CAME + 9 * DAY) == CAME + DAY
    assert deadline(-1) == CAME + DAY


def test_the_timer_leaves_a_segment_some_time_whatever_its_records_claim() -> None:
    assert deadline(0) == CAME + DAY // 100
    assert deadline(0, wait=1000) == CAME + 10_000
    assert deadline(CAME, wait=1000, floor=0) == CAME + 1000
    assert least_wait(DAY, 10_000) == DAY // 100
    assert least_wait(1000, 10_000) == 10_000


def test_the_timer_does_not_wait_for_the_time_of_a_wrong_clock() -> None:
    assert deadline(-1, now=CAME - DAY) == CAME + DAY
    assert deadline(-1, now=CAME - DAY - 1) < CAME - DAY - 1
    assert deadline(CAME, now=0) < 0


def test_compaction_lag_bounds_the_wait_of_compacted_topics() -> None:
    assert max_wait(DAY, compacted=True, max_compaction_lag_ms=1000) == 1000
    assert max_wait(DAY, compacted=True, max_compaction_lag_ms=9 * DAY) == DAY
    assert max_wait(DAY, compacted=False, max_compaction_lag_ms=1000) == DAY
    assert max_wait(DAY, compacted=True, max_compaction_lag_ms=0) == DAY


def test_jitter_stays_below_both_of_its_limits() -> None:
    rng = SeededRng(3)
    drawn = {jitter(rng, 10, DAY) for _ in range(200)}
    assert drawn == set(range(10))
    assert max(jitter(rng, DAY, 5) for _ in range(100)) == 4
    assert jitter(rng, 0, DAY) == 0
