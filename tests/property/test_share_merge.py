"""The merge of stored share states against the rule said offset by offset."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from broker.share.state.merge import merge
from broker.share.states import StateBatch

LONG = 40


@st.composite
def state_batches(draw: st.DrawFn) -> list[StateBatch]:
    """Ranges in any order, that may overlap."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        first = draw(st.integers(0, LONG))
        last = first + draw(st.integers(0, 12))
        found.append(
            StateBatch(first, last, draw(st.sampled_from([0, 2, 4])), draw(st.integers(1, 3)))
        )
    return found


def by_offset(batches: Iterable[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    """The state and count of each offset; the higher count wins, then the higher state."""
    best: dict[int, tuple[int, int]] = {}
    for each in batches:
        for offset in range(max(each.first, start), each.last + 1):
            best[offset] = max(best.get(offset, (-1, -1)), (each.deliveries, each.state))
    return best


@given(state_batches(), state_batches(), st.integers(-1, LONG), st.integers(-1, LONG))
def test_the_higher_count_wins_then_the_higher_state(
    first: list[StateBatch], second: list[StateBatch], low: int, high: int
) -> None:
    so_far = merge((), first, low)
    merged = merge(so_far, second, high)
    assert by_offset(merged, -1) == by_offset([*so_far, *second], high)
    for before, after in pairwise(merged):
        assert before.last < after.first
        assert before.last + 1 < after.first or before[2:] != after[2:], "neighbours are joined"
    assert so_far == merge((), first, low), "what was there is not changed in place"
