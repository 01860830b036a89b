"""An event loop whose time passes only while nothing is to be done: hours in moments, and the same
course for the same seed.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from typing import Any, TypeVar

T = TypeVar("T")
MANY_TIMERS = 100


class StuckLoopError(AssertionError):
    """Nothing will ever happen again, and the work is not done."""


class _NoFiles(selectors.BaseSelector):
    """A selector for a loop that never waits for files."""

    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[id(fileobj)] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(id(fileobj))

    def select(self, timeout: float | None = None) -> list[Any]:
        raise NotImplementedError

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class _Timer(asyncio.TimerHandle):
    """A handle that compares itself with nothing but its like."""

    __slots__ = ()

    def __lt__(self, other: Any) -> bool:
        return bool(self._when < other._when)  # type: ignore[attr-defined]


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time` begins at 0. Steps as asyncio's, in their order, without its looks at the system:
    they were a seventh of what a history takes.
    """

    _scheduled: list[Any]
    _timer_cancelled_count: int

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_NoFiles())

    def time(self) -> float:
        return self._now

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        timer = _Timer(when, callback, args, self, context or copy_context())
        timer._scheduled = True  # type: ignore[attr-defined]
        heappush(self._scheduled, timer)
        return timer

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context or copy_context())
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def _run_once(self) -> None:
        """One step: what is ready, or else the next moment for which something was planned."""
        self._drop_cancelled()
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            if not scheduled:
                raise StuckLoopError("the loop has nothing to do")
            self._now = max(self._now, scheduled[0]._when)
        end = self._now + self._clock_resolution  # type: ignore[attr-defined]
        while scheduled and scheduled[0]._when < end:
            timer = heappop(scheduled)
            timer._scheduled = False
            ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def _drop_cancelled(self) -> None:
        scheduled = self._scheduled
        if len(scheduled) > MANY_TIMERS and self._timer_cancelled_count * 2 > len(scheduled):
            for each in scheduled:
                each._scheduled = not each._cancelled
            self._scheduled = scheduled = [each for each in scheduled if not each._cancelled]
            heapify(scheduled)
            self._timer_cancelled_count = 0
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heappop(scheduled)._scheduled = False


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Runs it on a loop of its own."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.close()
