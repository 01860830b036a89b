"""Deadlines of members and rebalances: a heap, one timer of the loop for the earliest.

Times are seconds of `GroupTime`: they pass with the broker's clock, and never slower than the
machine's, so that a test clock which stands still hangs no client. Moving a deadline to a later
time costs nothing until the earlier one is reached. What was cancelled leaves the heap when that is
twice as large as it was without: a member that has gone takes no memory until its session would
have ended. Callbacks run from the loop, each once.
"""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from broker.runtime.callbacks import failed
from storage.env import Clock

MIN_WAIT_SECONDS = 0.001
FEW = 1000
"""Entries among which nobody looks for cancelled ones."""
ROUNDING_SECONDS = 1e-6
"""Sums of seconds are that exact."""


class GroupTime:
    """Seconds that pass as fast as the faster one of two clocks."""

    def __init__(self, clock: Clock, machine: Clock) -> None:
        """`clock` is the broker's; without a test clock both are the same."""
        self._clock = clock
        self._machine = machine
        self._seen = clock.monotonic(), machine.monotonic()
        self._now = 0.0

    def now(self) -> float:
        """Seconds since this was made."""
        seen = self._clock.monotonic(), self._machine.monotonic()
        self._now += max(seen[0] - self._seen[0], seen[1] - self._seen[1])
        self._seen = seen
        return self._now


class Deadline:
    """Something that happens at `at` unless it is moved or cancelled before."""

    __slots__ = ("at", "callback", "queued_at")

    def __init__(self) -> None:
        """It happens when `Deadlines.set` says; what, is set before."""
        self.callback: Callable[[], None] = _nothing
        self.at: float | None = None
        self.queued_at: float | None = None
        """Of its entry in the heap that counts."""

    def cancel(self) -> None:
        """It does not happen."""
        self.at = None


class Deadlines:
    """All deadlines of the groups. Used from the event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, time: GroupTime) -> None:
        """Nothing is due."""
        self._loop = loop
        self._time = time
        self._heap: list[tuple[float, int, Deadline]] = []
        self._most = FEW
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        """Number of entries of the heap; some may be of the past."""
        return len(self._heap)

    def set(self, deadline: Deadline, wait_ms: int) -> None:
        """It happens in so many ms, whatever was said before."""
        at = self._time.now() + max(wait_ms, 0) / 1000
        deadline.at = at
        if deadline.queued_at is None or at < deadline.queued_at:
            self._push(deadline, at)
            self._set_timer()

    def expire(self) -> None:
        """Runs what is due."""
        now = self._time.now() + ROUNDING_SECONDS
        while self._heap and self._heap[0][0] <= now:
            queued_at, _, deadline = heapq.heappop(self._heap)
            if deadline.queued_at != queued_at:  # it was set to an earlier time since
                continue
            deadline.queued_at = None
            at = deadline.at
            if at is None:
                continue
            if at > now:
                self._push(deadline, at)
                continue
            deadline.at = None
            try:
                deadline.callback()
            except Exception as error:  # noqa: BLE001 - the deadlines of other groups go on
                failed("group_deadline", error)
        self._set_timer()

    def close(self) -> None:
        """Nothing happens any more."""
        self._heap.clear()
        self._stop_timer()

    def _push(self, deadline: Deadline, at: float) -> None:
        if len(self._heap) >= self._most:
            self._drop_cancelled()
        deadline.queued_at = at
        heapq.heappush(self._heap, (at, next(self._order), deadline))

    def _drop_cancelled(self) -> None:
        """Leaves out entries of what does not happen, or of a later time than it happens."""
        kept = []
        for entry in self._heap:
            queued_at, _, deadline = entry
            if deadline.queued_at != queued_at:
                continue
            if deadline.at is None:
                deadline.queued_at = None
            else:
                kept.append(entry)
        heapq.heapify(kept)
        self._heap = kept
        self._most = max(FEW, 2 * len(kept))

    def _set_timer(self) -> None:
        if not self._heap:
            self._stop_timer()
            return
        first = self._heap[0][0]
        if self._timer is not None and self._timer_at <= first:
            return
        self._stop_timer()
        wait = max(first - self._time.now(), MIN_WAIT_SECONDS)
        self._timer_at = first
        self._timer = self._loop.call_later(wait, self._on_time)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        self.expire()


def _nothing() -> None:
    """The default callback: does nothing."""
