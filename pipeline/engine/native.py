"""Parts of a job in processes of this machine: neither Java nor Spark.

They are forked when the engine is entered: they begin with what the job has loaded by then, and
have none of the threads, locks and files that it opens later. They end with it, even when it is
killed.
"""

import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import chain, islice
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Self, TypeVar

from pipeline.engine.engine import NATIVE, WorkerDied, in_worker
from pipeline.engine.worker_memory import keep_memory

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 2
"""Items a process that wait for it, so that none stands still."""
_STORES = "obstore"
"""Library of object stores. Its threads are not in a fork, where each call would wait for ever."""
_ORPHANED = 1


class NativeEngine:
    """Processes of this machine."""

    name = NATIVE

    def __init__(self, processes: int | None = None) -> None:
        """Uses as many processes as there are cores by default."""
        self._count = processes or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None
        self._workers: list[BaseProcess] = []

    def run(
        self, work: Callable[[T], R], rounds: Iterable[Sequence[T]]
    ) -> Generator[R, None, None]:
        """A single item runs in this process: it would only be sent to and fro."""
        items = chain.from_iterable(rounds)
        first = list(islice(items, 2))
        items = chain(first, items)
        if len(first) < 2 or self._pool is None:
            yield from (in_worker(work, item) for item in items)
            return
        yield from self._results(self._pool, work, items)

    def __enter__(self) -> Self:
        """The processes begin."""
        if self._count > 1:
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=get_context(_start()), initializer=_begin
            )
            others = active_children()
            self._pool.submit(int)  # what is submitted first brings them all
            self._workers = [each for each in active_children() if each not in others]
        return self

    def __exit__(self, *error: object) -> None:
        """Items at work are finished, others dropped; on Ctrl-C nothing is finished."""
        if self._pool is None:
            return
        if error[0] in {KeyboardInterrupt, SystemExit}:
            for worker in self._workers:
                worker.terminate()
        self._pool.shutdown(cancel_futures=True)
        self._pool = None

    def _results(
        self, pool: ProcessPoolExecutor, work: Callable[[T], R], items: Iterator[T]
    ) -> Iterator[R]:
        from concurrent.futures.process import BrokenProcessPool

        waiting: set[Future[R]] = set()
        try:
            for item in items:
                waiting.add(pool.submit(in_worker, work, item))
                while len(waiting) >= _AHEAD * self._count:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (each.result() for each in done)
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process died (killed, or out of memory): run again"
            ) from error


def _start() -> str | None:
    """The way in which workers begin: forked, unless a library that is loaded does not bear it.

    None: as Python sees fit, since libraries of macOS do not bear a fork, either.
    """
    if sys.platform != "linux":
        return None
    return "spawn" if _STORES in sys.modules else "fork"


def _begin() -> None:
    """A worker is there. Ctrl-C is for the job, which ends its workers."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_the_job, daemon=True).start()
    keep_memory()


def _end_with_the_job() -> None:
    """A job that was killed cannot tell its workers, and they would wait for it for ever."""
    job = parent_process()
    assert job is not None
    job.join()
    os._exit(_ORPHANED)
