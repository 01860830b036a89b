"""Periodic work: what runs, how often, and what happens when it fails.

One tick a second looks at all deadlines, which are kept in the injected clock's monotonic seconds,
so a test that moves the clock moves the work. A task that is still running is not started again. A
task that fails is logged and counted, and runs again at its next deadline.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from broker.logs import event
from broker.metrics.probes import BrokerProbes
from storage.env import Clock

TICK_SECONDS = 1.0

Work = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _Task:
    name: str
    seconds: Callable[[], float]
    work: Work
    due: float
    running: asyncio.Task[None] | None = None


class TaskRunner:
    """All periodic work of one broker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, probes: BrokerProbes) -> None:
        """Nothing runs before `start`."""
        self._loop = loop
        self._clock = clock
        self._probes = probes
        self._tasks: list[_Task] = []
        self._timer: asyncio.TimerHandle | None = None
        self._expected = 0.0

    def every(
        self, name: str, seconds: Callable[[], float], work: Work, *, first: float | None = None
    ) -> None:
        """Runs `work` about every `seconds()`, asked anew each time; first after `first` seconds.

        Without `first` the first run waits as long as the others.
        """
        delay = seconds() if first is None else first
        self._tasks.append(_Task(name, seconds, work, self._clock.monotonic() + delay))

    def start(self) -> None:
        """Begins to tick."""
        self._expected = self._loop.time() + TICK_SECONDS
        self._timer = self._loop.call_at(self._expected, self._tick)

    async def stop(self) -> None:
        """No task is begun any more; waits for those that run."""
        if self._timer is not None:
            self._timer.cancel()
        running = [task.running for task in self._tasks if task.running is not None]
        await asyncio.gather(*running, return_exceptions=True)

    def run_due(self) -> None:
        """Begins everything whose deadline has passed (the tick does this; tests may, too)."""
        now = self._clock.monotonic()
        for task in self._tasks:
            if task.due <= now and task.running is None:
                task.due = now + task.seconds()
                task.running = self._loop.create_task(self._run(task))

    def _tick(self) -> None:
        self._probes.loop_lagged(self._loop.time() - self._expected)
        self.run_due()
        self.start()

    async def _run(self, task: _Task) -> None:
        try:
            await task.work()
        except Exception as error:  # noqa: BLE001 - one task must not end the others
            self._probes.task_failed(task.name)
            event("task_failed", "error", task=task.name, error=repr(error))
        finally:
            task.running = None
