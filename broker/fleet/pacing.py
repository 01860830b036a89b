"""Repeats a statement until it has an answer."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol, TypeVar

from broker.fleet.catalog.port import CatalogError
from broker.fleet.times import FleetTimes

T = TypeVar("T")
LOOKS = 20
"""Of which the quickest one counts."""


class FleetClock(Protocol):
    """Time for waits. The wall clock decides nothing in a fleet."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""

    async def sleep(self, seconds: float) -> None:
        """Returns after some seconds."""

    def wall_ms(self) -> int:
        """The time that records of this node get."""


class ClockDistance(NamedTuple):
    """Distance of two clocks: between `ahead_ms` less and more `uncertain_ms`."""

    uncertain_ms: float
    ahead_ms: float


class ClockGap:
    """Distance of a node's wall clock from the catalog's: to be shown, nothing goes by it."""

    def __init__(self) -> None:
        """Nothing was asked."""
        self._looks: deque[ClockDistance] = deque(maxlen=LOOKS)

    def seen(self, before_ms: int, there_ms: int, after_ms: int) -> None:
        """The catalog said its time between two looks at the wall clock."""
        half_ms = (after_ms - before_ms) / 2
        if half_ms >= 0:  # else the clock was set meanwhile
            self._looks.append(ClockDistance(half_ms, before_ms + half_ms - there_ms))

    @property
    def known(self) -> ClockDistance | None:
        """By the quickest of the last answers; None before the first one."""
        return min(self._looks, default=None)

    @property
    def ahead_ms(self) -> int | None:
        """By how much this node's clock is ahead; negative: behind."""
        known = self.known
        return None if known is None else round(known.ahead_ms)


async def until_answered(
    ask: Callable[[], Awaitable[T]], clock: FleetClock, times: FleetTimes
) -> T:
    """The answer to a statement, which is sent in the same words until one comes."""
    pause = times.retry
    while True:
        try:
            return await ask()
        except CatalogError:
            await clock.sleep(pause)
            pause = min(2 * pause, times.retry_most)
