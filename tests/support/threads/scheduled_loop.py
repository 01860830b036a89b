"""An event loop and its executors under a `Scheduler`: callbacks in order, work on few threads.

Timers fire in their order, and as early as the dice like: a time-out may come at any moment.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any

from tests.support.threads.interleaving import Scheduler

LANES = 2


class ScheduledHandle:
    """A callback that may be cancelled."""

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._call = (callback, args)
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True

    def run(self) -> None:
        if not self.is_cancelled:
            callback, args = self._call
            callback(*args)


class ScheduledLoop:
    """The part of `asyncio.AbstractEventLoop` that the broker uses."""

    def __init__(self, scheduler: Scheduler, monotonic: Callable[[], float]) -> None:
        self._scheduler = scheduler
        self._monotonic = monotonic
        self._ready: deque[ScheduledHandle] = deque()
        self._timers: list[tuple[float, int, ScheduledHandle]] = []
        self._order = count()
        self._lanes: dict[int, deque[Callable[[], None]]] = {}
        self._at_work = 0

    # --- as asyncio has it ---

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: object = None
    ) -> ScheduledHandle:
        handle = ScheduledHandle(callback, args)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> None:
        self.call_soon(callback, *args)
        self._scheduler.point()

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any
    ) -> ScheduledHandle:
        handle = ScheduledHandle(callback, args)
        heapq.heappush(self._timers, (self._monotonic() + delay, next(self._order), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def time(self) -> float:
        return self._monotonic()

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        raise AssertionError(context.get("message"))

    def run_in_executor(
        self, executor: object, work: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        queue = self._lanes.get(id(executor))
        if queue is None:
            queue = self._lanes[id(executor)] = deque()
            for number in range(LANES):
                self._scheduler.spawn(f"lane-{number}", lambda: self._serve(queue))
        future = self.create_future()
        self._at_work += 1
        queue.append(lambda: self._do(future, work, args))
        return future

    # --- what tests do ---

    def run_until_idle(self, is_busy: Callable[[], bool]) -> None:
        """Run callbacks until there are none, no timers, nothing at work, and not `is_busy()`."""
        while self._ready or self._timers or self._at_work or is_busy():
            self._scheduler.wait(lambda: bool(self._ready or self._timers))
            self._scheduler.point()
            if self._timers and (not self._ready or self._scheduler.dice.random() < 0.1):
                heapq.heappop(self._timers)[2].run()
            else:
                self._ready.popleft().run()

    def _serve(self, queue: deque[Callable[[], None]]) -> None:
        while True:
            self._scheduler.wait(lambda: bool(queue))
            queue.popleft()()

    def _do(self, future: asyncio.Future[Any], work: Callable[..., Any], args: Any) -> None:
        try:
            result = work(*args)
        except Exception as error:  # noqa: BLE001 - as an executor does
            self.call_soon_threadsafe(self._over, future, None, error)
        else:
            self.call_soon_threadsafe(self._over, future, result, None)

    def _over(self, future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
        self._at_work -= 1
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)
