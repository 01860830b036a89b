"""Deadlines: each happens once, in its time, and leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest

from broker.runtime.deadlines import Deadline, Deadlines, GroupTime
from tests.support.disk.simenv import SimClock

HALF_AN_HOUR_MS = 1_800_000
MANY = 20_000


@pytest.fixture(name="clock")
def held_clock() -> SimClock:
    return SimClock()


@pytest.fixture(name="deadlines")
async def no_deadlines(clock: SimClock) -> AsyncIterator[Deadlines]:
    made = Deadlines(asyncio.get_running_loop(), GroupTime(clock, clock))
    yield made
    made.close()


async def test_those_that_were_cancelled_leave_long_before_their_time(
    deadlines: Deadlines, clock: SimClock
) -> None:
    """A client that joins and leaves all the time does not fill the memory for half an hour."""
    happened: list[int] = []
    stays = [Deadline() for _ in range(3)]
    for number, deadline in enumerate(stays):
        deadline.callback = partial(happened.append, number)
        deadlines.set(deadline, 1000 * (number + 1))
    deadlines.set(stays[2], 1500)
    for _ in range(MANY):
        gone = Deadline()
        deadlines.set(gone, HALF_AN_HOUR_MS)
        gone.cancel()
    assert len(deadlines) < MANY / 10
    clock.advance(3000)
    deadlines.expire()
    assert happened == [0, 2, 1]
    clock.advance(HALF_AN_HOUR_MS)
    deadlines.expire()
    assert (happened, len(deadlines)) == ([0, 2, 1], 0)


async def test_one_that_was_cancelled_and_left_may_be_set_once_more(
    deadlines: Deadlines, clock: SimClock
) -> None:
    happened: list[str] = []
    again = Deadline()
    again.callback = lambda: happened.append("again")
    deadlines.set(again, HALF_AN_HOUR_MS)
    again.cancel()
    for _ in range(MANY):
        gone = Deadline()
        deadlines.set(gone, HALF_AN_HOUR_MS)
        gone.cancel()
    deadlines.set(again, 2 * HALF_AN_HOUR_MS)
    clock.advance(HALF_AN_HOUR_MS)
    deadlines.expire()
    assert happened == []
    clock.advance(HALF_AN_HOUR_MS)
    deadlines.expire()
    assert happened == ["again"]
