"""Serialises changes to one log, in order of arrival.

A change that cannot be done at once (it runs on a lane, or waits for another log) holds its turn
until it says that it is over. On the event loop only.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from broker.runtime.callbacks import failed

AT_ONCE = 50
"""Changes that begin before others of the loop have their turn: a few ms of appends."""

Begin = Callable[[], None]
Refuse = Callable[[Exception], None]


class WriterGate:
    """The changes that are under way or wait; `waiting` is empty when a log may be changed now."""

    __slots__ = ("_begins", "_is_held", "waiting")

    def __init__(self) -> None:
        """Nobody holds it."""
        self.waiting: deque[tuple[Begin, Refuse]] = deque()
        self._is_held = False
        self._begins = False

    def take(self, begin: Begin, refuse: Refuse) -> None:
        """Calls `begin` when all that came before are over; `end` is to be called once after.

        When `begin` raises, the change is over at once, and `refuse` hears the error.
        """
        self.waiting.append((begin, refuse))
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
        self._begins, begun = True, 0
        while self.waiting and not self._is_held and begun < AT_ONCE:
            begun += 1
            self._is_held = True
            self._begin(self.waiting[0])
        self._begins = False
        if self.waiting and not self._is_held:
            asyncio.get_running_loop().call_soon(self._begin_next)

    def _begin(self, change: tuple[Begin, Refuse]) -> None:
        begin, refuse = change
        try:
            begin()
        except Exception as error:  # noqa: BLE001 - those that wait behind it have their turn
            failed("turn", error)
            if self.waiting and self.waiting[0] is change:
                self.waiting.popleft()
                self._is_held = False
            refuse(error)
