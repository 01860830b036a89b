"""Which periodic work a broker has, and how often each runs: one line per task."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.app import Broker

SWEEP_SECONDS = 1.0


def schedule(broker: "Broker") -> None:
    """Registers all tasks with the broker's runner."""
    every = broker.tasks.every

    async def sweep() -> None:
        await broker.server.sweep(broker.clock.monotonic())

    every("connections", lambda: SWEEP_SECONDS, sweep)
