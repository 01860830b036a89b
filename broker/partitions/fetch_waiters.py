"""Fetches that wait for data: by partition, by the bytes still missing, by deadline.

A waiter is woken when the bytes it misses have become readable, when its deadline passes, or when
one of its partitions changes in a way it must hear of (deleted, failed). Waking costs
O(partitions of the woken waiter); a deadline costs O(log n) in a heap with one loop timer for all.
Callbacks run once per waiter, after the call that woke them has returned: from the loop, or sooner
when who woke them says `answer_woken`.
"""

import asyncio
import heapq
from collections.abc import Callable, Hashable, Sequence
from itertools import count

from broker.runtime.callbacks import failed

FEW = 4  # woken fetches that are answered before the append that woke them


class Waiter:
    """One waiting fetch. `missing` is how many readable bytes it still waits for.

    `is_over`: no more waiting, whatever there is; its deadline has passed or the broker stops.
    """

    __slots__ = ("callback", "deadline", "done", "is_over", "keys", "missing")

    def __init__(
        self,
        keys: Sequence[Hashable],
        missing: int,
        deadline: float,
        callback: Callable[[], None],
    ) -> None:
        """See `FetchWaiters.register`."""
        self.keys = keys
        self.missing = missing
        self.deadline = deadline
        self.callback = callback
        self.done = False
        self.is_over = False


class FetchWaiters:
    """All waiting fetches of the broker. Used from the event loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Timers run on `loop`; deadlines are in `loop.time()` seconds."""
        self._loop = loop
        self._by_key: dict[Hashable, set[Waiter]] = {}
        self._deadlines: list[tuple[float, int, Waiter]] = []
        self._order = count()
        self._timer: asyncio.TimerHandle | None = None
        self._ready: list[Waiter] = []
        self._waiting = 0

    def __len__(self) -> int:
        """Number of waiting fetches."""
        return self._waiting

    def register(
        self,
        keys: Sequence[Hashable],
        missing: int,
        wait_ms: int,
        callback: Callable[[], None],
    ) -> Waiter:
        """Waits until `missing` more bytes are readable in `keys`, or `wait_ms` have passed.

        `callback` is called once from the loop, unless `cancel` comes first.
        """
        waiter = Waiter(keys, missing, self._loop.time() + wait_ms / 1000, callback)
        for key in keys:
            self._by_key.setdefault(key, set()).add(waiter)
        heapq.heappush(self._deadlines, (waiter.deadline, next(self._order), waiter))
        self._waiting += 1
        if self._deadlines[0][2] is waiter:
            self._set_timer()
        return waiter

    def remaining_ms(self, waiter: Waiter) -> int:
        """Rest of a waiter's time, to wait again with, in ms."""
        return max(0, round((waiter.deadline - self._loop.time()) * 1000))

    def pass_over(self, seconds: float) -> None:
        """So many seconds have passed for the waiters that the loop's clock does not know of."""
        for _, _, waiter in self._deadlines:
            waiter.deadline -= seconds
        self._deadlines = [(each[2].deadline, *each[1:]) for each in self._deadlines]
        if self._timer is not None:
            self._timer.cancel()
        self._expire()

    def wake(self, key: Hashable, size_bytes: int) -> None:
        """`size_bytes` more have become readable in `key`."""
        waiters = self._by_key.get(key)
        if not waiters:
            return
        satisfied = []
        for waiter in waiters:
            waiter.missing -= size_bytes
            if waiter.missing <= 0:
                satisfied.append(waiter)
        for waiter in satisfied:
            self._complete(waiter)

    def wake_all(self, key: Hashable) -> None:
        """The partition changed otherwise (deleted, offline, truncated): everybody looks again."""
        for waiter in list(self._by_key.get(key, ())):
            self._complete(waiter)

    def answer_woken(self) -> None:
        """Answers the fetches that were just woken before anything else, unless they are many.

        What a consumer waits for, it then gets an answer earlier; who appended waits for one
        more answer to be made.
        """
        if 0 < len(self._ready) <= FEW:
            self._fire()

    def give_up(self, waiter: Waiter) -> None:
        """Its client waits for something else: its callback is called as if its time were over."""
        if not waiter.done:
            waiter.is_over = True
            self._complete(waiter)

    def cancel(self, waiter: Waiter) -> None:
        """The peer is gone: the callback will not be called."""
        if not waiter.done:
            self._forget(waiter)
        waiter.callback = _nothing

    def complete_all(self) -> None:
        """Everybody is answered with what there is (at a graceful stop)."""
        for _, _, waiter in list(self._deadlines):
            if not waiter.done:
                waiter.is_over = True
                self._complete(waiter)

    def _complete(self, waiter: Waiter) -> None:
        self._forget(waiter)
        if not self._ready:
            self._loop.call_soon(self._fire)
        self._ready.append(waiter)

    def _fire(self) -> None:
        ready, self._ready = self._ready, []
        for waiter in ready:
            callback, waiter.callback = waiter.callback, _nothing  # it knows the waiter: no circle
            try:
                callback()
            except Exception as error:  # noqa: BLE001 - the other fetches are answered
                failed("waiting_fetch", error)

    def _forget(self, waiter: Waiter) -> None:
        waiter.done = True
        self._waiting -= 1
        for key in waiter.keys:
            waiters = self._by_key.get(key)
            if waiters is not None:
                waiters.discard(waiter)
                if not waiters:
                    del self._by_key[key]
        if len(self._deadlines) > 64 and self._waiting * 2 < len(self._deadlines):
            self._deadlines = [entry for entry in self._deadlines if not entry[2].done]
            heapq.heapify(self._deadlines)

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(self._deadlines[0][0], self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._deadlines and (self._deadlines[0][2].done or self._deadlines[0][0] <= now):
            waiter = heapq.heappop(self._deadlines)[2]
            if not waiter.done:
                waiter.is_over = True
                self._complete(waiter)
        if self._deadlines:
            self._set_timer()


def _nothing() -> None:
    """The callback of a waiter that was cancelled, or has been called."""
