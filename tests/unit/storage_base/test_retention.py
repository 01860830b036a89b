"""Which segments go and which stay, with Kafka's cases told anew and a naive model beside."""

from hypothesis import given
from hypothesis import strategies as st

from storage.retention import (
    LogFacts,
    Reason,
    RetentionLimits,
    RetentionPlan,
    SegmentFacts,
    plan,
)

NOW = 1_000_000
UNLIMITED = RetentionLimits(-1, -1)


def segments(*facts: tuple[int, int, int]) -> list[SegmentFacts]:
    return [SegmentFacts(*fact) for fact in facts]


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
    facts = [*THREE, SegmentFacts(30, 0, 0)]
    found = decide(facts, RetentionLimits(10, 0))
    assert len(found.leaving) == 3
    assert not found.rolls_first
    assert found.decisions[3].reason == Reason.EMPTY


def test_a_time_in_the_future_holds_its_segment_and_all_behind_it() -> None:
    facts = segments((0, 100, NOW + 1), (10, 100, NOW - 400), (20, 50, NOW - 300))
    found = decide(facts, RetentionLimits(0, -1))
    assert leaving(found) == []
    reasons = [decision.reason for decision in found.decisions]
    assert reasons == [Reason.IN_THE_FUTURE, Reason.BEHIND, Reason.BEHIND]


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
    facts = [SegmentFacts(0, 100, NOW - 500, by_modification_time=True), *THREE[1:]]
    found = decide(facts, RetentionLimits(450, -1))
    assert "modification time" in found.decisions[0].detail
    assert "age 500 ms" in found.decisions[0].detail
    assert "record time" in found.decisions[1].detail


def test_a_log_without_segments_has_nothing_to_decide() -> None:
    assert decide([], RetentionLimits(0, 0)) == ((), False, 0)


limits = st.builds(RetentionLimits, st.integers(-1, 60), st.integers(-1, 300), st.booleans())
facts = st.lists(st.tuples(st.integers(0, 80), st.integers(-60, 20)), min_size=1, max_size=8)


@given(facts, limits, st.integers(0, 80), st.integers(0, 80))
def test_it_agrees_with_kafkas_passes_run_one_by_one(
    sizes: list[tuple[int, int]], limit: RetentionLimits, start: int, hw: int
) -> None:
    log = [SegmentFacts(n * 10, size, NOW + age) for n, (size, age) in enumerate(sizes)]
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
        run(lambda segment, next_base: NOW - segment.largest_timestamp > limit.retention_ms)
    found = plan(log, LogFacts(start, hw, end), limit, NOW)
    assert [d.base_offset for d in found.decisions if not d.goes] == [s.base_offset for s in left]
    assert [d.base_offset for d in found.decisions] == [s.base_offset for s in log]
    assert found.rolls_first == (not left)
