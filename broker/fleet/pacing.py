"""Repeats a statement until it has an answer."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from broker.fleet.catalog.port import CatalogError
from broker.fleet.times import FleetTimes

T = TypeVar("T")


class FleetClock(Protocol):
    """Time for waits. The wall clock decides nothing in a fleet."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""

    async def sleep(self, seconds: float) -> None:
        """Returns after some seconds."""


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
