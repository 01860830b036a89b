"""The machine's time, moved ahead by a test that runs a broker in its own process."""

import asyncio

from broker.daemon.app import Broker
from storage.posix import real_env


class MovedClock:
    """The real time, and what it was moved by."""

    def __init__(self) -> None:
        """Not moved yet."""
        self.real = real_env().clock
        self.ahead = 0.0
        """Seconds that both clocks were moved by."""
        self.stepped_ms = 0
        """Time by which the wall clock alone was moved, in ms."""

    def now_ms(self) -> int:
        """The wall clock."""
        return self.real.now_ms() + int(self.ahead * 1000) + self.stepped_ms

    def monotonic(self) -> float:
        """Seconds, of the clock that no step moves."""
        return self.real.monotonic() + self.ahead


async def pass_time(broker: Broker, clock: MovedClock, seconds: float) -> None:
    """Time passes; what it makes due runs once, before this returns."""
    clock.ahead += seconds
    broker.services.tasks.run_due()
    async with asyncio.timeout(20):
        while any(task.running for task in broker.services.tasks._tasks):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
