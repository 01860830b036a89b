"""Locks end by the broker's clock; one that was stopped never does."""

import asyncio

from broker.runtime.deadlines import Deadlines, GroupTime
from broker.runtime.test_clock import HeldClock
from broker.share.locks import Locks
from broker.share.states import AcquisitionLock, RetryWait
from tests.support.disk.simenv import SimClock


def nothing_waits(wait: RetryWait) -> None:
    raise AssertionError(wait)


async def test_a_lock_ends_after_the_groups_duration() -> None:
    machine = SimClock()
    clock = HeldClock(machine)
    deadlines = Deadlines(asyncio.get_running_loop(), GroupTime(clock, machine))
    ended: list[AcquisitionLock] = []
    duration = [30_000]
    locks = Locks(deadlines, clock.now_ms, lambda: duration[0], ended.append, nothing_waits)
    first, stopped, later = (
        AcquisitionLock("a", 0, 1),
        AcquisitionLock("a", 2, 3),
        AcquisitionLock("b", 4, 5),
    )
    locks.start(first)
    locks.start(stopped)
    duration[0] = 60_000
    locks.start(later)
    locks.stop(stopped)
    clock.advance(29_999)
    deadlines.expire()
    assert ended == []
    clock.advance(1)
    deadlines.expire()
    assert ended == [first]
    clock.advance(30_000)
    deadlines.expire()
    assert ended == [first, later]
    deadlines.close()
