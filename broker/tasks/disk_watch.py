"""Looks at the free space of the data directory, once a second and more often while it is short.

It keeps to the machine's time, whatever becomes of the broker's clock. When space runs short,
retention runs at once and again every few seconds, and what was deleted goes without its delay
(`broker.daemon.periodic_tasks`).
"""

import asyncio
from typing import TYPE_CHECKING

from broker.runtime.event_log import event

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from broker.guards.admission import Intake
    from broker.guards.disk_space import DiskSpace
    from broker.runtime.lanes import DiskLane
    from broker.runtime.probes import BrokerProbes
    from broker.tasks.runner import TaskRunner

RETENTION_SECONDS = 10.0  # between two rounds of retention while space is short
SETTLE_SECONDS = 5.0  # a broker that lives shorter needs no ballast


class DiskWatch:
    """One look after the other, each on a lane. Used from the event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        lane: "DiskLane",
        *,
        disk_space: "DiskSpace",
        intake: "Intake",
        tasks: "TaskRunner",
        probes: "BrokerProbes",
        looked: "Callable[[], Awaitable[None]] | None" = None,
    ) -> None:
        """Looks at nothing before `start`. `looked` hears of each look: see `broker.tier.room`."""
        self._loop = loop
        self._lane = lane
        self._disk_space = disk_space
        self._intake = intake
        self._tasks = tasks
        self._probes = probes
        self._looked = looked
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_stopped = False
        self._retention_due = 0.0
        self._ballast_due = 0.0

    def start(self) -> None:
        """Goes on until `stop`."""
        self._ballast_due = self._loop.time() + SETTLE_SECONDS
        self._wait()

    async def stop(self) -> None:
        """No look is begun any more; waits for one under way."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._running is not None:
            await asyncio.wait([self._running])

    def _wait(self) -> None:
        if not self._is_stopped:
            seconds = self._disk_space.next_look_seconds
            self._timer = self._loop.call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._running = self._loop.create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._look()
        except Exception as error:  # noqa: BLE001 - whatever it was, the next look comes
            self._probes.task_failed("disk")
            event("task_failed", "error", task="disk", error=repr(error))
        self._wait()

    async def _look(self) -> None:
        space = self._disk_space
        await self._lane.run(space.look)
        self._intake.look()
        now = self._loop.time()
        if space.is_low and now >= self._retention_due:
            self._retention_due = now + RETENTION_SECONDS
            self._tasks.hasten("retention")
        if now >= self._ballast_due:
            await self._lane.run(space.trim_ballast)
        if self._looked is not None:
            await self._looked()
