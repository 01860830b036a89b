"""Which log is compacted next, what of it, and what the reason is."""

import random
import time
from typing import Any

import pytest

from config.topic import TopicConfig
from protocol.records.batch import NO_TIMESTAMP
from storage.retention.cleanability import (
    UNLIMITED_MS,
    CleaningFacts,
    CleaningLimits,
    CleanReason,
    SegmentAge,
    Verdict,
    age_of,
    began_ms,
    first_of,
    judge,
)
from storage.retention.limits import cleaning_limits_of
from storage.retention.plan import SegmentFacts

NOW, HOUR = 1_700_000_000_000, 3_600_000
LIMITS = CleaningLimits(0.5, 0, UNLIMITED_MS)


def facts(*sizes: int, **changed: Any) -> CleaningFacts:
    """Closed segments of ten offsets each, an hour old, and an active one behind them."""
    segments = [SegmentAge(10 * n, size, NOW - HOUR, NOW - HOUR) for n, size in enumerate(sizes)]
    active = 10 * len(sizes)
    usual = CleaningFacts(0, active + 5, -1, active + 5, segments, active)
    return usual._replace(**changed)


def verdict(*sizes: int, limits: CleaningLimits = LIMITS, **changed: Any) -> Verdict:
    return judge(facts(*sizes, **changed), limits, NOW)


def aged(found: CleaningFacts, number: int, oldest: int, newest: int) -> CleaningFacts:
    segments = list(found.segments)
    segments[number] = segments[number]._replace(oldest_ms=oldest, newest_ms=newest)
    return found._replace(segments=segments)


def test_a_log_that_was_never_cleaned_is_dirty_from_its_start() -> None:
    found = verdict(100, 200)
    assert found[:4] == (0, 20, 0, 300)
    assert found.dirty_ratio == 1
    assert found.because == CleanReason.RATIO


def test_what_lies_before_the_first_dirty_offset_is_clean() -> None:
    found = verdict(100, 200, 100, checkpoint=20)
    assert found[:4] == (20, 30, 300, 100)
    assert found.because == CleanReason.RATIO_SMALL
    assert not found.is_eligible


def test_the_ratio_must_be_passed() -> None:
    assert verdict(100, 100, checkpoint=10).because == CleanReason.RATIO_SMALL
    assert verdict(100, 101, checkpoint=10).because == CleanReason.RATIO


@pytest.mark.parametrize("checkpoint", [-1, 3, 99])
def test_a_checkpoint_outside_of_the_log_counts_for_nothing(checkpoint: int) -> None:
    assert verdict(100, 100, checkpoint=checkpoint, start_offset=5).first_dirty == 5


def test_the_active_segment_alone_is_nothing_to_clean() -> None:
    assert verdict().because == CleanReason.CLEAN
    assert verdict(100, checkpoint=10).because == CleanReason.CLEAN
    assert verdict(100, checkpoint=12).first_uncleanable == 12


def test_nothing_at_or_above_the_last_stable_offset_is_touched() -> None:
    found = verdict(100, 100, 100, bound=15)
    assert found[:4] == (0, 10, 0, 100)
    assert verdict(100, bound=7).because == CleanReason.UNSETTLED


def test_a_young_segment_blocks_itself_and_what_follows() -> None:
    limits = LIMITS._replace(min_lag_ms=HOUR)
    young = aged(facts(100, 100, 100), 1, NOW - HOUR, NOW - HOUR + 1)
    found = judge(young, limits, NOW)
    assert found.first_uncleanable == 10
    assert judge(young._replace(checkpoint=10), limits, NOW).because == CleanReason.TOO_YOUNG
    assert judge(young, limits, NOW + 1).first_uncleanable == 30


def test_a_record_that_waited_too_long_makes_the_log_overdue() -> None:
    limits = CleaningLimits(1.0, 0, HOUR)
    late = aged(facts(900, 1, checkpoint=10), 1, NOW - HOUR - 7, NOW)
    found = judge(late, limits, NOW)
    assert (found.because, found.delay_ms) == (CleanReason.OVERDUE, 7)
    assert found.deadline_ms == NOW - 7
    assert judge(late, limits, NOW - 7).because == CleanReason.RATIO_SMALL


def test_times_of_zero_and_below_say_nothing_about_age() -> None:
    unknown = aged(aged(facts(9, 9), 0, 0, 0), 1, -1, -1)
    found = judge(unknown, CleaningLimits(1.0, 0, HOUR), NOW)
    assert (found.delay_ms, found.deadline_ms) == (0, NO_TIMESTAMP)


def test_what_is_overdue_but_blocked_shows_its_delay_and_waits() -> None:
    found = verdict(100, bound=3, limits=CleaningLimits(0.5, 0, 1000))
    assert found.because == CleanReason.UNSETTLED
    assert found.delay_ms == HOUR - 1000


def test_a_tombstone_whose_time_is_up_is_reason_enough_on_a_bounded_topic() -> None:
    bounded = CleaningLimits(0.5, 0, 2 * HOUR)
    clean = facts(100, 100, checkpoint=20, horizon_ms=NOW)
    assert judge(clean, bounded, NOW).because == CleanReason.HORIZON
    assert judge(clean, bounded, NOW - 1).because == CleanReason.CLEAN
    assert judge(clean, LIMITS, NOW).because == CleanReason.CLEAN, "as Kafka, without a bound"


def test_overdue_logs_go_first_the_latest_before_others() -> None:
    plain = Verdict(0, 10, 0, 100, 0, CleanReason.RATIO, -1)
    late = Verdict(0, 10, 900, 1, 5, CleanReason.OVERDUE, 0)
    later = late._replace(delay_ms=6)
    blocked = later._replace(delay_ms=99, because=CleanReason.UNSETTLED)
    assert first_of(enumerate([plain, late, blocked, later])) == 3
    assert first_of(enumerate([plain, plain._replace(clean_bytes=50)])) == 0
    assert first_of(enumerate([blocked])) is None


def test_ten_thousand_logs_are_judged_in_no_more_than_linear_time() -> None:
    dice = random.Random(1)
    limits = CleaningLimits(0.5, 10, HOUR)

    def seconds(count: int) -> float:
        logs = [facts(100, 100, checkpoint=dice.choice((-1, 10, 20))) for _ in range(count)]
        began = time.perf_counter()
        assert first_of(enumerate(judge(each, limits, NOW) for each in logs)) is not None
        return time.perf_counter() - began

    small = min(seconds(1000) for _ in range(3))
    assert min(seconds(10_000) for _ in range(3)) < 40 * small


@pytest.mark.parametrize(
    ("first", "arrival", "began"),
    [(100, 200, 100), (200, 100, 100), (0, 100, 100), (NO_TIMESTAMP, 100, 100)],
)
def test_a_segment_begins_with_the_earlier_of_time_and_arrival(
    first: int, arrival: int, began: int
) -> None:
    assert began_ms(first, arrival) == began


@pytest.mark.parametrize(
    ("record", "arrival", "newest"),
    [
        (100, 200, 100),
        (200, 100, 100),
        (NO_TIMESTAMP, 100, 100),
        (900, NO_TIMESTAMP, 300),
        (0, 100, 0),
    ],
)
def test_its_newest_record_came_or_claims_to_be_of_then(
    record: int, arrival: int, newest: int
) -> None:
    found = age_of(SegmentFacts(7, 10, record, arrival, 300), 50)
    assert found == SegmentAge(7, 10, 50, newest)


def test_an_empty_segment_has_no_age() -> None:
    assert age_of(SegmentFacts(7, 0, 100, 100, 300), 50) == SegmentAge(
        7, 0, NO_TIMESTAMP, NO_TIMESTAMP
    )


def test_of_lags_that_contradict_one_another_the_maximum_wins() -> None:
    config = TopicConfig(
        min_compaction_lag_ms=HOUR, max_compaction_lag_ms=60_000, min_cleanable_dirty_ratio=0.25
    )
    assert cleaning_limits_of(config) == CleaningLimits(0.25, 60_000, 60_000)
