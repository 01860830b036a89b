"""Threads that run one at a time and change places where a seed says so: same seed, same run.

Real threads run real code; exactly one of them has the baton. It may pass it on before each line
(or bytecode) of the modules that are watched, and at each call of `Scheduler.point`, which the
simulated disk makes before it changes. What would block waits in `Scheduler.wait`, so nobody is
ever stopped while another one needs what he holds, and a deadlock is seen at once.
"""

import random
import sys
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty
from types import FrameType, SimpleNamespace, TracebackType
from typing import Any, Self

MEANS = (2, 5, 15, 50, 150)  # lines between two changes, on the average
NARROW_MEANS = (1, 3, 10)
RARE_MEANS = (30, 100, 300)  # the same, where whoever is interrupted has to wait for all others
MOST_CHANGES = 200_000  # beyond that a run counts as one that never ends


class Ended(BaseException):
    """The run is over: a thread that waits goes home."""


class Actor:
    """One thread: whether it may go on, and the lock that it sleeps on."""

    __slots__ = ("baton", "is_done", "name", "rank", "until")

    def __init__(self, name: str, rank: float) -> None:
        self.name = name
        self.rank = rank
        self.is_done = False
        self.until: Callable[[], bool] | None = None
        self.baton = threading.Lock()
        self.baton.acquire()

    def may_run(self) -> bool:
        return not self.is_done and (self.until is None or self.until())


class Scheduler:
    """Scheduler of threads: who runs, and for how long."""

    def __init__(
        self, seed: int, is_watched: Callable[[str], bool], *, is_narrow: bool = False
    ) -> None:
        """`is_watched` tells files by name whose lines are places to change at.

        `is_narrow`: there are few, so that each counts more.
        """
        self.dice = random.Random(seed)
        self.monitors: list[Callable[[], None]] = []
        """Called at each change, on any thread; what they raise ends the run."""
        self.changes = 0
        self.failure: BaseException | None = None
        self._is_ranked = self.dice.random() < 0.5
        means = NARROW_MEANS if is_narrow else RARE_MEANS if self._is_ranked else MEANS
        self._mean = self.dice.choice(means)
        self._lowest = 0.0
        self._by_bytecode = self.dice.random() < 0.25
        self._left = 1
        self._is_watched = is_watched
        self._known: dict[str, bool] = {}
        self._main = Actor("loop", self.dice.random())
        self._now = self._main
        self._actors = [self._main]
        self._threads: list[threading.Thread] = []
        self._is_over = False

    def run(self, work: Callable[[], None]) -> None:
        """Run `work` on this thread among the others, until it returns. Raises what went wrong."""
        before = sys.gettrace()
        sys.settrace(self._trace)
        try:
            work()
        except Ended:
            pass
        finally:
            sys.settrace(before)
            self._end()
        if self.failure is not None:
            raise self.failure

    def spawn(self, name: str, work: Callable[[], None]) -> Actor:
        """Another thread, which may run from now on."""
        actor = Actor(name, self.dice.random())
        self._actors.append(actor)
        thread = threading.Thread(target=self._live, args=(actor, work), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()
        return actor

    def point(self) -> None:
        """A place at which another thread may go on."""
        self._left -= 1
        if self._left <= 0 and not self._is_over:
            self._left = 1 + int(self.dice.expovariate(1 / self._mean))
            self._look()
            self._lowest -= 1
            self._now.rank = self._lowest
            self._change(self._choice())

    def wait(self, until: Callable[[], bool]) -> None:
        """This thread does not go on before `until()`."""
        me = self._now
        me.until = until
        if self._is_over:
            raise Ended
        self._change(self._choice())
        me.until = None

    def lock(self) -> "ScheduledLock":
        """In the place of `threading.Lock()`."""
        return ScheduledLock(self)

    def threading(self) -> SimpleNamespace:
        """In the place of the module `threading`."""
        return SimpleNamespace(
            Thread=lambda target, name, daemon: ScheduledThread(self, target, name),
            Lock=self.lock,
        )

    def queue(self) -> "ScheduledQueue":
        """In the place of `queue.SimpleQueue()`."""
        return ScheduledQueue(self)

    def _look(self) -> None:
        try:
            for monitor in self.monitors:
                monitor()
        except AssertionError as error:
            self._fail(error)
            raise Ended from error

    def _choice(self) -> Actor:
        ready = [actor for actor in self._actors if actor.may_run()]
        if not ready:
            waiting = ", ".join(actor.name for actor in self._actors if not actor.is_done)
            self._fail(AssertionError(f"a deadlock: {waiting}"))
            raise Ended
        return self._one_of(ready)

    def _one_of(self, ready: list[Actor]) -> Actor:
        if self._is_ranked:
            return max(ready, key=lambda actor: actor.rank)
        return self.dice.choice(ready)

    def _change(self, other: Actor) -> None:
        me = self._now
        if other is me:
            return
        self.changes += 1
        if self.changes > MOST_CHANGES:
            self._fail(AssertionError("it never ends"))
            raise Ended
        self._now = other
        other.baton.release()
        me.baton.acquire()
        if self._is_over:
            raise Ended

    def _live(self, actor: Actor, work: Callable[[], None]) -> None:
        actor.baton.acquire()
        try:
            if not self._is_over:
                sys.settrace(self._trace)
                work()
        except Ended:
            pass
        except BaseException as error:  # noqa: BLE001 - raised by `run`
            self._fail(error)
        finally:
            sys.settrace(None)
            actor.is_done = True
            if not self._is_over:
                self._hand_on()

    def _hand_on(self) -> None:
        """The thread ends: another one goes on; after a failure that is the first."""
        ready = [actor for actor in self._actors if actor.may_run()]
        other = self._main if self.failure or not ready else self._one_of(ready)
        self._is_over = self.failure is not None or not ready
        self._now = other
        other.baton.release()

    def _fail(self, error: BaseException) -> None:
        if self.failure is None:
            self.failure = error

    def _end(self) -> None:
        self._is_over = True
        for actor in self._actors[1:]:
            if not actor.is_done:
                actor.baton.release()
        for thread in self._threads:
            thread.join()

    def _trace(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_code.co_filename
        watched = self._known.get(name)
        if watched is None:
            watched = self._known[name] = self._is_watched(name)
        if not watched:
            return None
        if self._by_bytecode:
            frame.f_trace_opcodes = True
        return self._step

    def _step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event in {"line", "opcode"}:
            self.point()
        return self._step


class ScheduledLock:
    """A lock that whoever waits for it leaves to the others."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._is_held = False

    def acquire(self, blocking: bool = True) -> bool:
        while self._is_held:
            if not blocking:
                return False
            self._scheduler.wait(lambda: not self._is_held)
        self._is_held = True
        return True

    def release(self) -> None:
        assert self._is_held
        self._is_held = False

    def locked(self) -> bool:
        return self._is_held

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class ScheduledQueue:
    """A `SimpleQueue` of the same kind. A time is over as soon as the others have had a turn."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._items: deque[object] = deque()

    def put(self, item: object) -> None:
        self._items.append(item)
        self._scheduler.point()

    def get(self, timeout: float | None = None) -> object:
        if not self._items:
            self._scheduler.wait(lambda: timeout is not None or bool(self._items))
        if not self._items:
            raise Empty
        return self._items.popleft()


class ScheduledThread:
    """A thread of the same kind."""

    def __init__(self, scheduler: Scheduler, target: Callable[[], None], name: str) -> None:
        self._scheduler = scheduler
        self._target = target
        self._name = name
        self._actor: Actor | None = None

    def start(self) -> None:
        self._actor = self._scheduler.spawn(self._name, self._target)

    def join(self) -> None:
        actor = self._actor
        assert actor is not None
        if not actor.is_done:
            self._scheduler.wait(lambda: actor.is_done)
