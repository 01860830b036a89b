"""Whose turn it is to change a log: one change at a time, in the order in which they came.

A change that cannot be done at once (it runs on a lane, or waits for another log) holds its turn
until it says that it is over. On the event loop only.
"""

from collections import deque
from collections.abc import Callable

Begin = Callable[[], None]


class Turns:
    """The changes that are under way or wait; `waiting` is empty when a log may be changed now."""

    __slots__ = ("_begins", "_is_held", "waiting")

    def __init__(self) -> None:
        """Nobody holds it."""
        self.waiting: deque[Begin] = deque()
        self._is_held = False
        self._begins = False

    def take(self, begin: Begin) -> None:
        """Calls `begin` when all that came before are over; `end` is to be called once after."""
        self.waiting.append(begin)
        self._begin_next()

    def end(self) -> None:
        """The change that began last is over; the next one begins."""
        self.waiting.popleft()
        self._is_held = False
        self._begin_next()

    def _begin_next(self) -> None:
        """One after the other, not one inside of the other, however many end as they begin."""
        if self._begins:
            return
        self._begins = True
        while self.waiting and not self._is_held:
            self._is_held = True
            self.waiting[0]()
        self._begins = False
