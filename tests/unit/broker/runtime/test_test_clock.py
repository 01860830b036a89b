"""The clock that tests hold: stopped, moved, hurried; its monotonic hand never goes back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.runtime.test_clock import LAST_MS, ClockMoveError, HeldClock
from tests.support.disk.simenv import SimClock

HOUR = 3_600_000


def test_it_runs_with_the_machine_until_it_is_held() -> None:
    machine = SimClock()
    clock = HeldClock(machine)
    assert clock.now_ms() == machine.now_ms()
    machine.advance(HOUR)
    assert clock.now_ms() == machine.now_ms()
    clock.set_speed(0)
    machine.advance(HOUR)
    assert clock.now_ms() == machine.now_ms() - HOUR
    clock.set_speed(1)
    machine.advance(5)
    assert clock.now_ms() == machine.now_ms() - HOUR


def test_it_takes_no_part_in_steps_of_the_machine() -> None:
    machine = SimClock()
    clock = HeldClock(machine, 1000)
    machine.step(-HOUR)
    machine.advance(7)
    assert clock.now_ms() == 1007


def test_time_that_passes_moves_both_hands_and_a_set_one() -> None:
    machine = SimClock()
    clock = HeldClock(machine, HOUR)
    before = clock.monotonic()
    clock.advance(HOUR)
    assert (clock.now_ms(), clock.monotonic()) == (2 * HOUR, before + 3600)
    clock.set_wall(5)
    assert (clock.now_ms(), clock.monotonic()) == (5, before + 3600)


def test_it_hurries() -> None:
    machine = SimClock()
    clock = HeldClock(machine, 0)
    clock.set_speed(1000)
    machine.advance(10)
    assert clock.now_ms() == 10_000
    assert clock.speed == 1000


@pytest.mark.parametrize("ms", [-1, LAST_MS + 1])
def test_times_that_it_cannot_show_are_refused(ms: int) -> None:
    clock = HeldClock(SimClock(), 0)
    with pytest.raises(ClockMoveError):
        clock.set_wall(ms)
    with pytest.raises(ClockMoveError):
        HeldClock(SimClock(), ms)
    with pytest.raises(ClockMoveError):
        clock.advance(ms)
    assert clock.now_ms() == 0


MOVES = st.one_of(
    st.tuples(st.just("advance"), st.integers(0, 10**10)),
    st.tuples(st.just("set_wall"), st.integers(0, LAST_MS)),
    st.tuples(st.just("set_speed"), st.floats(0, 10**6)),
    st.tuples(st.just("machine"), st.integers(0, 10**7)),
)


@given(st.lists(MOVES))
def test_whatever_is_done_monotonic_time_never_goes_back(moves: list[tuple[str, float]]) -> None:
    machine = SimClock()
    clock = HeldClock(machine)
    seen = clock.monotonic()
    for move, value in moves:
        try:
            if move == "machine":
                machine.advance(int(value))
            else:
                getattr(clock, move)(value)
        except ClockMoveError:
            pass
        assert clock.monotonic() >= seen
        seen = clock.monotonic()
