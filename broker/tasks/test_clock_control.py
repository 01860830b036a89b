"""Moves the test clock; a move returns once everything that waits on time has followed.

A move is settled when every periodic task that it made due has run, in the order in which they are
registered, one after the other: what a later one does may rest on what an earlier one did (a
segment ends, then it is removed, then its files go). Fetches whose wait is over by the new time are
answered. No wait lasts longer than it would without a test clock: a client keeps its own time,
and a clock that stands still must not hang it.
"""

import asyncio
from typing import NamedTuple

from broker.partitions.fetch_waiters import FetchWaiters
from broker.runtime.test_clock import ClockMoveError, HeldClock
from broker.tasks.runner import TICK_SECONDS, TaskRunner

MAX_PASSES = 10_000
MIN_TICK_SECONDS = 0.01


class Settled(NamedTuple):
    """Effects of a move: stops on the way, and runs of periodic tasks."""

    passes: int
    task_runs: int


class HeldTime:
    """Moves of one clock, one at a time. Used from the event loop."""

    def __init__(self, clock: HeldClock, tasks: TaskRunner, waiters: FetchWaiters) -> None:
        """`tasks` and `waiters` follow `clock` from now on."""
        self.clock = clock
        self._tasks = tasks
        self._waiters = waiters
        self._moving = asyncio.Lock()
        self._seen = clock.monotonic(), clock.machine.monotonic()
        tasks.every("waits", lambda: 0.0, self._follow)

    async def freeze(self) -> Settled:
        """Time stands still."""
        return await self.set_speed(0.0)

    async def release(self) -> Settled:
        """Time goes on as the machine's does, from where it is."""
        return await self.set_speed(1.0)

    async def set_speed(self, factor: float) -> Settled:
        """So many seconds pass in one of the machine's. ClockMoveError."""
        async with self._moving:
            self.clock.set_speed(factor)
            hurry = max(factor, 1.0)
            self._tasks.tick_seconds = max(MIN_TICK_SECONDS, TICK_SECONDS / hurry)
            return await self._settle()

    async def advance(self, ms: int, every_ms: int | None = None) -> Settled:
        """Time passes, at once or with a settled stop after each `every_ms`. ClockMoveError."""
        step = ms if every_ms is None else every_ms
        if every_ms is not None and (every_ms <= 0 or ms / every_ms > MAX_PASSES):
            raise ClockMoveError(f"{ms} ms in steps of {every_ms} ms: at most {MAX_PASSES} steps")
        passes = runs = 0
        async with self._moving:
            while passes == 0 or ms > 0:
                self.clock.advance(min(step, ms))
                ms -= step
                passes += 1
                runs += (await self._settle()).task_runs
        return Settled(passes, runs)

    async def set_wall(self, wall_ms: int) -> Settled:
        """Sets the wall clock, which the clock guard notices. ClockMoveError."""
        async with self._moving:
            self.clock.set_wall(wall_ms)
            return await self._settle(also=("clock",))

    async def _settle(self, also: tuple[str, ...] = ()) -> Settled:
        return Settled(1, await self._tasks.settle(also))

    async def _follow(self) -> None:
        """Waits of clients are shortened by what this clock is ahead of the machine's."""
        before, machine_before = self._seen
        self._seen = now, machine_now = self.clock.monotonic(), self.clock.machine.monotonic()
        ahead = (now - before) - (machine_now - machine_before)
        if ahead > 0:
            self._waiters.pass_over(ahead)
