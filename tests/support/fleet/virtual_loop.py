"""An event loop whose time passes only while nothing is to be done: hours in moments, and the same
course for the same seed.
"""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class StuckLoopError(AssertionError):
    """Nothing will ever happen again, and the work is not done."""


class _NoFiles(selectors.BaseSelector):
    """A selector that waits for nothing: it moves the time on."""

    def __init__(self) -> None:
        self.now = 0.0
        self._keys: dict[int, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, 0, events, data)
        self._keys[id(fileobj)] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys.pop(id(fileobj))

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise StuckLoopError("the loop has nothing to do")
        self.now += max(timeout, 0.0)
        return []

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its `time` begins at 0."""

    def __init__(self) -> None:
        self._no_files = _NoFiles()
        super().__init__(self._no_files)

    def time(self) -> float:
        return self._no_files.now


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
