"""Periodic work: what runs, how often, and what happens when it fails.

One tick a second looks at all deadlines, which are kept in the broker's own monotonic seconds: who
moves that clock moves the work, and `settle` waits for it. Work that guards against the outside
world keeps to the machine's time (`physical`). A task that is still running is not started again.
A task that fails is logged and counted, and runs again at its next deadline.
"""

import asyncio
from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass

from broker.runtime.callbacks import failed
from broker.runtime.event_log import event
from broker.runtime.probes import BrokerProbes
from storage.env import Clock

TICK_SECONDS = 1.0

Work = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class _Task:
    name: str
    seconds: Callable[[], float]
    work: Work
    monotonic: Callable[[], float]
    due: float
    left_after: float | None
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
        self.tick_seconds = TICK_SECONDS
        """Interval at which deadlines are checked, by the machine's time."""

    def every(
        self,
        name: str,
        seconds: Callable[[], float],
        work: Work,
        *,
        first: float | None = None,
        physical: bool = False,
        left_after: float | None = None,
    ) -> None:
        """Runs `work` about every `seconds()`, read each time; first after `first` seconds.

        Without `first` the first run waits as long as the others. `physical`: by the loop's time,
        whatever becomes of the broker's clock. `left_after`: a stop waits so many seconds for a
        run, and then cancels it; without it for as long as the run takes.
        """
        monotonic = self._loop.time if physical else self._clock.monotonic
        delay = seconds() if first is None else first
        due = monotonic() + delay
        self._tasks.append(_Task(name, seconds, work, monotonic, due, left_after))

    @property
    def names(self) -> list[str]:
        """Those of all tasks, in the order of registration."""
        return [task.name for task in self._tasks]

    def start(self) -> None:
        """Begins to tick."""
        self._expected = self._loop.time() + self.tick_seconds
        self._timer = self._loop.call_at(self._expected, self._tick)

    async def stop(self) -> bool:
        """No task is begun any more; waits for those that run. False when one was cancelled."""
        if self._timer is not None:
            self._timer.cancel()
        return all(await asyncio.gather(*(_ended(task) for task in self._tasks)))

    def hasten(self, name: str) -> None:
        """The task of that name is due now, and runs with the next tick."""
        for task in self._tasks:
            if task.name == name:
                task.due = task.monotonic()

    def run_due(self) -> None:
        """Begins everything whose deadline has passed (the tick does this; tests may, too)."""
        for task in self._tasks:
            if task.due <= task.monotonic() and task.running is None:
                try:
                    self._begin(task)
                except Exception as error:  # noqa: BLE001 - one task must not keep the others
                    failed("task", error)

    def due_in(self, name: str) -> float | None:
        """Seconds until a task runs next, negative once it is due; None if there is no such task.

        From any thread.
        """
        return next(
            (task.due - task.monotonic() for task in self._tasks if task.name == name), None
        )

    async def settle(self, also: Container[str] = ()) -> int:
        """Runs what is due, one after the other in the order of registration; how many ran.

        Waits for those that run already, and runs them again if the clock has moved past their next
        deadline. Those named in `also` run in any case. Each runs once at most, so it ends even
        while the clock is fast.
        """
        runs = 0
        for task in self._tasks:
            if task.running is not None:
                await asyncio.wait([task.running])
            if task.name in also or task.due <= task.monotonic():
                await asyncio.wait([self._begin(task)])
                runs += 1
        return runs

    def _begin(self, task: _Task) -> asyncio.Task[None]:
        task.due = task.monotonic() + task.seconds()
        task.running = self._loop.create_task(self._run(task))
        return task.running

    def _tick(self) -> None:
        self._probes.loop_lagged(self._loop.time() - self._expected)
        self.start()
        self.run_due()

    async def _run(self, task: _Task) -> None:
        try:
            await task.work()
        except Exception as error:  # noqa: BLE001 - one task must not end the others
            self._probes.task_failed(task.name)
            event("task_failed", "error", task=task.name, error=repr(error))
        finally:
            task.running = None


async def _ended(task: _Task) -> bool:
    if task.running is None:
        return True
    running = task.running
    _, late = await asyncio.wait([running], timeout=task.left_after)
    if late:
        running.cancel()
        await asyncio.wait([running], timeout=task.left_after)
    return not late
