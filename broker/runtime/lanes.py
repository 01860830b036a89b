"""Lanes for blocking work. Each log directory has its own: a sick disk queues only itself.

- Inline, on the loop: hot appends, reads from the page cache, index look-ups in memory.
- `DiskLane`: a few threads per log directory for cold reads, recovery, deletion, inflating.
- `GroupCommit` (broker/partitions/group_commit.py): up to four threads per log directory, for
  nothing but fsync.
- `patient_threads`: work without a deadline that takes a core as long as it lasts.
"""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from broker.runtime.deferred import Deferred
from broker.runtime.wire_error import wire_error
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError

T = TypeVar("T")

THREADS_PER_DIRECTORY = 2
PATIENCE = 10  # nice levels: where cores are short, about a tenth of what others get


class DiskLanes:
    """Threads for blocking calls, by log directory. Made on first use: an idle broker has none."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Results are delivered on `loop`."""
        self._loop = loop
        self._executors: dict[str, ThreadPoolExecutor] = {}
        self._patient: set[str] = set()
        self._threads: dict[str, int] = {}
        self._closed = False

    def lane(self, log_dir: str) -> "DiskLane":
        """The lane of a log directory."""
        return DiskLane(self, log_dir)

    def wide_lane(self, name: str, threads: int) -> "DiskLane":
        """A lane with so many threads, for work that mostly waits: on a store, not on a disk."""
        self._threads[name] = threads
        return DiskLane(self, name)

    def patient_lane(self, name: str) -> "DiskLane":
        """A lane for work that only computes; its threads give way to all others."""
        self._patient.add(name)
        return DiskLane(self, name)

    def run(self, log_dir: str, work: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Runs `work(*args)` on a thread of `log_dir`; the future has its result or its error."""
        assert not self._closed, "work was given to closed lanes"
        executor = self._executors.get(log_dir)
        if executor is None:
            make = patient_threads if log_dir in self._patient else ThreadPoolExecutor
            threads = self._threads.get(log_dir, THREADS_PER_DIRECTORY)
            executor = make(threads, f"lane-{len(self._executors)}")
            self._executors[log_dir] = executor
        return self._loop.run_in_executor(executor, work, *args)

    async def close(self) -> None:
        """Waits for the work that is under way; queued work is dropped."""
        self._closed = True
        for executor in self._executors.values():
            await self._loop.run_in_executor(None, _shut_down, executor)
        self._executors.clear()


class DiskLane:
    """The threads of one log directory, for work that reads or writes there."""

    __slots__ = ("_lanes", "log_dir")

    def __init__(self, lanes: DiskLanes, log_dir: str) -> None:
        """Work of this lane runs on the threads that `lanes` has for `log_dir`, a path."""
        self._lanes = lanes
        self.log_dir = log_dir

    def run(self, work: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Runs `work(*args)` on a thread; the future has its result or its error."""
        return self._lanes.run(self.log_dir, work, *args)


class Turn:
    """Blocking work, one piece at a time.

    A piece keeps its turn until it ends, even if nobody waits for it any longer: threads cannot be
    interrupted. So whoever comes after a caller that was cancelled finds its work done, not going
    on beside theirs.
    """

    def __init__(self) -> None:
        """Nothing is under way."""
        self._taken = asyncio.Lock()

    async def run(self, lane: DiskLane, work: Callable[..., T], *args: object) -> T:
        """The result of `work(*args)` on a thread of the lane, or its error."""
        return await asyncio.shield(await self.begin(lane, work, *args))

    async def begin(
        self, lane: DiskLane, work: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """As `run`, once it has begun."""
        await self._taken.acquire()
        try:
            under_way = asyncio.ensure_future(lane.run(work, *args))
        except BaseException:
            self._taken.release()
            raise
        under_way.add_done_callback(lambda _: self._taken.release())
        under_way.add_done_callback(heard)
        return under_way


def heard(done: asyncio.Future[Any]) -> None:
    """Takes note of an error: whoever waited for the work has it, or is gone."""
    if not done.cancelled():
        done.exception()


def patient_threads(count: int, name: str) -> ThreadPoolExecutor:
    """Threads that give way to all others.

    On two busy cores a clean of equal rights made the p99 of appends two to ten times as long.
    Only Linux has priorities of single threads; elsewhere they are as others.
    """
    return ThreadPoolExecutor(count, name, _give_way if sys.platform == "linux" else None)


def _give_way() -> None:
    thread = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, thread, os.getpriority(os.PRIO_PROCESS, os.getpid()) + PATIENCE)


def settle(answer: Deferred[T], future: asyncio.Future[T]) -> None:
    """Passes the result of work on a lane on. A sick disk is an expected outcome: it has a code."""
    if future.cancelled():
        answer.fail(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "The broker is stopping"))
        return
    error = future.exception()
    if error is None:
        answer.resolve(future.result())
    elif isinstance(error, StorageError):
        answer.fail(wire_error(error))
    else:
        answer.fail(error)


def _shut_down(executor: ThreadPoolExecutor) -> None:
    executor.shutdown(wait=True, cancel_futures=True)
