"""Parts of a job in processes of this machine: neither Java nor Spark."""

import gc
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import chain, islice
from multiprocessing import forkserver, get_context
from typing import Self, TypeVar

from pipeline.engines import NATIVE, WorkerDied, in_worker
from pipeline.worker_memory import worker_memory

T = TypeVar("T")
R = TypeVar("R")
_AHEAD = 2
"""Items a process that wait for it, so that none stands still."""
_USUAL = ["click", "pipeline.sources.reading", "pipeline.sinks.archive_writer"]
"""Loaded once, for all processes, while the job plans."""


class NativeEngine:
    """Processes of this machine."""

    name = NATIVE

    def __init__(self, processes: int | None = None) -> None:
        """As many processes as there are cores, unless told."""
        self._count = processes or len(os.sched_getaffinity(0))
        self._context = get_context("forkserver")
        self._pool: ProcessPoolExecutor | None = None

    def run(
        self, work: Callable[[T], R], rounds: Iterable[Sequence[T]]
    ) -> Generator[R, None, None]:
        """A single item runs in this process: a pool would cost more than it brings."""
        items = chain.from_iterable(rounds)
        first = list(islice(items, 2))
        items = chain(first, items)
        if len(first) < 2 or self._count < 2:
            yield from (in_worker(work, item) for item in items)
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._count, mp_context=self._context, initializer=gc.freeze
            )  # what was loaded stays: no collection needs to look at it
        yield from self._results(self._pool, work, items)

    def __enter__(self) -> Self:
        """The process that the others are forked from begins to load what they need."""
        if self._count > 1:
            self._context.set_forkserver_preload(_USUAL)
            with worker_memory():
                forkserver.ensure_running()
        return self

    def __exit__(self, *_: object) -> None:
        """The processes end; items that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

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
