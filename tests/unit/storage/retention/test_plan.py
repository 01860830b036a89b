"""Which segments go and which stay, with Kafka's cases told anew and a naive model beside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.retention.plan import (
    JudgedBy,
    LogFacts,
    Reason,
    RetentionClock,
    RetentionLimits,
    RetentionPlan,
    SegmentFacts,
    judged,
    plan,
    start_after,
)
from storage.retention.undelivered import Undelivered

NOW = 1_000_000
UNLIMITED = RetentionLimits(-1, -1)
BY_RECORD = {"clock": RetentionClock.RECORD}


def segments(*facts: tuple[int, int, int]) -> list[SegmentFacts]:
    """Base offset, size and largest record time each; all of it came just now."""
    return [SegmentFacts(base, size, at, NOW, NOW) for base, size, at in facts]


THREE = segments((0, 100, NOW - 500), (10, 100, NOW - 400), (20, 50, NOW - 300))


def decide(
    facts: list[SegmentFacts],
    limits: RetentionLimits,
    *,
    start: int = 0,
    hw: int = 30,
    end: int = 30,
) -> RetentionPlan:
    return plan(facts, LogFacts(start, hw, end), limits, NOW)


def leaving(found: RetentionPlan) -> list[tuple[int, Reason]]:
    return [(decision.base_offset, decision.reason) for decision in found.leaving]


def test_without_limits_everything_stays() -> None:
    found = decide(THREE, UNLIMITED)
    assert leaving(found) == []
    assert found.decisions[0].reason == Reason.NO_LIMIT
    assert found.decisions[0].deadline_ms is None
    assert (found.start_offset, found.rolls_first) == (0, False)


def test_old_segments_go_and_the_log_begins_behind_them() -> None:
    found = decide(THREE, RetentionLimits(350, -1))
    assert leaving(found) == [(0, Reason.TIME), (10, Reason.TIME)]
    assert found.start_offset == 20
    assert found.decisions[2].reason == Reason.NOT_DUE
    assert found.decisions[2].deadline_ms == NOW - 300 + 350


def test_an_age_equal_to_the_limit_stays() -> None:
    assert leaving(decide(THREE, RetentionLimits(500, -1))) == []
    assert leaving(decide(THREE, RetentionLimits(499, -1))) == [(0, Reason.TIME)]


def test_when_all_are_old_a_new_segment_begins_first() -> None:
    found = decide(THREE, RetentionLimits(10, -1))
    assert len(found.leaving) == 3
    assert found.rolls_first
    assert found.start_offset == 30


def test_an_empty_last_segment_never_goes() -> None:
    facts = [*THREE, SegmentFacts(30, 0, -1, -1, NOW)]
    found = decide(facts, RetentionLimits(10, 0))
    assert len(found.leaving) == 3
    assert not found.rolls_first
    assert found.decisions[3].reason == Reason.EMPTY


def test_a_time_in_the_future_holds_its_segment_and_all_behind_it() -> None:
    facts = segments((0, 100, NOW + 1), (10, 100, NOW - 400), (20, 50, NOW - 300))
    found = decide(facts, RetentionLimits(0, -1, **BY_RECORD))
    assert leaving(found) == []
    reasons = [decision.reason for decision in found.decisions]
    assert reasons == [Reason.IN_THE_FUTURE, Reason.BEHIND, Reason.BEHIND]
    assert [decision.blocked_by for decision in found.decisions] == [None, 0, 0]
    assert found.blocker == found.decisions[0]
    assert found.overdue(NOW) == 2
    assert found.next_deadline_ms == NOW - 400


def test_size_never_takes_the_log_below_its_limit() -> None:
    assert leaving(decide(THREE, RetentionLimits(-1, 150))) == [(0, Reason.SIZE)]
    assert leaving(decide(THREE, RetentionLimits(-1, 151))) == []
    assert leaving(decide(THREE, RetentionLimits(-1, 250))) == []
    assert leaving(decide(THREE, RetentionLimits(-1, 50))) == [(0, Reason.SIZE), (10, Reason.SIZE)]
    found = decide(THREE, RetentionLimits(-1, 0))
    assert len(found.leaving) == 3
    assert found.rolls_first


def test_segments_before_the_start_offset_go_first_and_do_not_count_for_size() -> None:
    found = decide(THREE, RetentionLimits(-1, 150), start=10)
    assert leaving(found) == [(0, Reason.START_OFFSET)]
    found = decide(THREE, RetentionLimits(350, 50), start=12)
    assert leaving(found) == [(0, Reason.START_OFFSET), (10, Reason.SIZE)]
    assert found.start_offset == 20


def test_the_start_offset_never_takes_the_last_segment_and_is_never_lowered() -> None:
    found = decide(THREE, UNLIMITED, start=30)
    assert [base for base, _ in leaving(found)] == [0, 10]
    assert found.start_offset == 30


def test_nothing_above_the_high_watermark_goes() -> None:
    found = decide(THREE, RetentionLimits(10, 0), hw=19)
    assert leaving(found) == [(0, Reason.SIZE)]
    assert found.decisions[1].reason == Reason.UNCOMMITTED
    assert leaving(decide(THREE, UNLIMITED, start=20, hw=9)) == []


def test_a_policy_without_delete_looks_at_the_start_offset_alone() -> None:
    found = decide(THREE, RetentionLimits(10, 0, deletes=False), start=10)
    assert leaving(found) == [(0, Reason.START_OFFSET)]
    assert found.decisions[1].deadline_ms is None


def test_a_decision_tells_by_which_time_it_judged() -> None:
    facts = [SegmentFacts(0, 100, -1, -1, NOW - 500), *THREE[1:]]
    found = decide(facts, RetentionLimits(450, -1))
    first, second, _ = found.decisions
    assert (first.judged_by, first.time_ms) == (JudgedBy.MODIFICATION, NOW - 500)
    assert (second.judged_by, second.time_ms) == (JudgedBy.RECORD, NOW - 400)


PAST, CAME, FUTURE = NOW - 900, NOW - 500, NOW + 900


@pytest.mark.parametrize(
    ("clock", "record", "expected"),
    [
        ("record", PAST, (PAST, JudgedBy.RECORD)),
        ("record", FUTURE, (FUTURE, JudgedBy.RECORD)),
        ("record", -1, (NOW, JudgedBy.MODIFICATION)),
        ("arrival", PAST, (CAME, JudgedBy.ARRIVAL)),
        ("arrival", FUTURE, (CAME, JudgedBy.ARRIVAL)),
        ("arrival", -1, (CAME, JudgedBy.ARRIVAL)),
        ("earlier", PAST, (PAST, JudgedBy.RECORD)),
        ("earlier", FUTURE, (CAME, JudgedBy.ARRIVAL)),
        ("earlier", -1, (CAME, JudgedBy.ARRIVAL)),
        ("later", PAST, (CAME, JudgedBy.ARRIVAL)),
        ("later", FUTURE, (FUTURE, JudgedBy.RECORD)),
        ("later", -1, (CAME, JudgedBy.ARRIVAL)),
    ],
)
def test_the_clock_chooses_the_time(clock: str, record: int, expected: tuple[int, str]) -> None:
    segment = SegmentFacts(0, 100, record, CAME, NOW)
    assert judged(segment, RetentionClock(clock)) == expected


@pytest.mark.parametrize("clock", ["arrival", "earlier", "later"])
def test_an_arrival_that_nobody_noted_is_the_modification_time(clock: str) -> None:
    segment = SegmentFacts(0, 100, -1, -1, NOW - 7)
    assert judged(segment, RetentionClock(clock)) == (NOW - 7, JudgedBy.MODIFICATION)


def test_a_future_time_holds_nothing_by_the_earlier_clock() -> None:
    facts = [SegmentFacts(0, 100, NOW + 10**9, NOW - 400, NOW), *THREE[1:]]
    assert leaving(decide(facts, RetentionLimits(350, -1))) == [(0, Reason.TIME), (10, Reason.TIME)]


def test_nothing_leaves_before_it_has_stayed() -> None:
    facts = [SegmentFacts(0, 100, NOW - 10**6, NOW - 50, NOW), *THREE[1:]]
    for limits in (RetentionLimits(10, -1, min_stay_ms=51), RetentionLimits(-1, 0, min_stay_ms=51)):
        assert leaving(decide(facts, limits)) == []
    found = decide(facts, RetentionLimits(10, -1, min_stay_ms=51))
    assert found.decisions[0].reason == Reason.MIN_STAY
    assert found.decisions[0].deadline_ms == NOW - 50 + 51
    found = decide(facts, RetentionLimits(10, -1, min_stay_ms=50))
    assert leaving(found) == [(0, Reason.TIME)]
    found = decide(facts, RetentionLimits(10, 0, min_stay_ms=51), start=10)
    assert leaving(found) == [(0, Reason.START_OFFSET)]


def test_everything_older_than_an_instant_goes() -> None:
    found = decide(THREE, RetentionLimits(-1, -1, before_ms=NOW - 300))
    assert leaving(found) == [(0, Reason.BEFORE), (10, Reason.BEFORE)]
    assert found.decisions[2].reason == Reason.NO_LIMIT
    found = decide(THREE, RetentionLimits(450, -1, before_ms=NOW - 399))
    assert leaving(found) == [(0, Reason.TIME), (10, Reason.BEFORE)]
    assert leaving(decide(THREE, RetentionLimits(-1, -1, deletes=False, before_ms=NOW))) == []


def test_while_the_clock_is_in_doubt_nothing_goes_by_time() -> None:
    limits = RetentionLimits(10, 150, is_held=True, before_ms=NOW)
    found = decide(THREE, limits)
    assert leaving(found) == [(0, Reason.SIZE)]
    assert found.decisions[1].reason == Reason.HELD
    assert found.overdue(NOW) == 2


def test_a_log_without_segments_has_nothing_to_decide() -> None:
    assert decide([], RetentionLimits(0, 0))[:3] == ((), False, 0)


limits = st.builds(
    RetentionLimits,
    st.integers(-1, 60),
    st.integers(-1, 300),
    st.booleans(),
    clock=st.just(RetentionClock.RECORD),
    min_stay_ms=st.just(0),
    before_ms=st.just(-1),
    is_held=st.just(False),
    undelivered=st.just(()),
)
facts = st.lists(st.tuples(st.integers(0, 80), st.integers(-60, 20)), min_size=1, max_size=8)


@given(facts, limits, st.integers(0, 80), st.integers(0, 80))
def test_it_agrees_with_kafkas_passes_run_one_by_one(
    sizes: list[tuple[int, int]], limit: RetentionLimits, start: int, hw: int
) -> None:
    log = [SegmentFacts(n * 10, size, NOW + age, NOW, NOW) for n, (size, age) in enumerate(sizes)]
    end = log[-1].base_offset + (1 if log[-1].size_bytes else 0)
    start, hw = min(start, end), min(hw, end)
    left = list(log)

    def run(predicate) -> None:
        while left:
            next_base = left[1].base_offset if len(left) > 1 else None
            is_empty_last = next_base is None and not left[0].size_bytes
            upper = end if next_base is None else next_base
            if is_empty_last or hw < upper or not predicate(left[0], next_base):
                return
            left.pop(0)

    run(lambda segment, next_base: next_base is not None and next_base <= start)
    if limit.deletes and limit.retention_bytes >= 0:
        excess = [sum(s.size_bytes for s in left) - limit.retention_bytes]

        def over_size(segment: SegmentFacts, next_base: int | None) -> bool:
            if excess[0] - segment.size_bytes < 0:
                return False
            excess[0] -= segment.size_bytes
            return True

        run(over_size)
    if limit.deletes and limit.retention_ms >= 0:
        run(lambda segment, next_base: NOW - segment.record_ms > limit.retention_ms)
    found = plan(log, LogFacts(start, hw, end), limit, NOW)
    assert [d.base_offset for d in found.decisions if not d.goes] == [s.base_offset for s in left]
    assert [d.base_offset for d in found.decisions] == [s.base_offset for s in log]
    assert found.rolls_first == (not left)
    assert found.start_offset == start_after(log, LogFacts(start, hw, end), limit, NOW)


def test_what_is_over_the_size_and_came_just_now_stays_for_that() -> None:
    found = decide(THREE, RetentionLimits(-1, 50, min_stay_ms=200))
    oldest = found.decisions[0]
    assert (oldest.reason, oldest.deadline_ms) == (Reason.MIN_STAY, NOW + 200)
    assert found.overdue(NOW) == 0


def test_what_an_instant_would_let_go_is_held_by_a_clock_in_doubt() -> None:
    found = decide(THREE, RetentionLimits(-1, -1, before_ms=NOW, is_held=True))
    assert found.decisions[0].reason == Reason.HELD


def test_what_queues_have_not_finished_stays_for_so_long_after_its_arrival() -> None:
    came = [each._replace(arrival_ms=NOW - 100) for each in THREE]
    for limits in (RetentionLimits(10, -1), RetentionLimits(-1, 0)):
        kept = limits._replace(undelivered=(Undelivered(15, 101),))
        found = decide(came, kept)
        assert [each.goes for each in found.decisions] == [True, False, False]
        assert found.start_offset == 10
        assert found.decisions[1].reason == Reason.UNDELIVERED
        assert found.decisions[1].deadline_ms == NOW + 1
        assert (found.decisions[2].reason, found.decisions[2].blocked_by) == (Reason.BEHIND, 10)
        for done in (Undelivered(30, 101), Undelivered(0, 100)):
            found = decide(came, limits._replace(undelivered=(done,)))
            assert len(found.leaving) == 3, "finished, or too old to wait for"


def test_of_several_queues_the_one_that_is_furthest_behind_and_waits_for_longest_counts() -> None:
    came = [each._replace(arrival_ms=NOW - 100) for each in THREE]
    kept = (Undelivered(25, 5000), Undelivered(12, 200), Undelivered(0, 50))
    found = decide(came, RetentionLimits(10, -1, undelivered=kept))
    assert [each.goes for each in found.decisions] == [True, False, False]
    assert found.decisions[1].deadline_ms == NOW + 100
    assert found.decisions[2].deadline_ms == NOW + 4900


def test_a_log_start_goes_past_what_queues_keep_and_other_reasons_stay_what_they_are() -> None:
    kept = (Undelivered(0, 10_000),)
    found = decide(THREE, RetentionLimits(10, 0, undelivered=kept), start=10)
    assert leaving(found) == [(0, Reason.START_OFFSET)]
    for limits, reason in (
        (RetentionLimits(1000, -1), Reason.NOT_DUE),
        (RetentionLimits(-1, -1), Reason.NO_LIMIT),
        (RetentionLimits(10, -1, min_stay_ms=5), Reason.MIN_STAY),
    ):
        found = decide(THREE, limits._replace(undelivered=kept))
        assert found.decisions[0].reason == reason
    held = decide(THREE, RetentionLimits(10, -1, is_held=True, undelivered=kept))
    assert held.decisions[0].reason != Reason.UNDELIVERED, "nothing goes by time anyway"
