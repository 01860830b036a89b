"""Where the parts of a job run: in processes of this machine, or as tasks of Spark.

A job is cut into items; `work`, a function at the top of a module, turns each into a result. Both
travel between processes, so they are plain values. Results come in no particular order. Spark runs
an item again when its executor dies, so `work` must bear to be run twice.
"""

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from multiprocessing import get_context
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from pipeline.errors import PipelineError
from pipeline.terminal import progress

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
NATIVE, SPARK = "native", "spark"
_AHEAD = 2
"""Items a process that wait for it, so that none stands still."""


class WorkerDied(PipelineError):  # noqa: N818 - what happened
    """A process that worked on an item is gone: killed, or out of memory."""


class Engine(Protocol):
    """Runs the parts of a job."""

    name: str

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """The result of each item, as soon as it is there. What `work` raises is raised here."""

    def __enter__(self) -> Self:
        """Ready to run."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Lets go of processes."""


class NativeEngine:
    """Processes of this machine; needs neither Java nor Spark."""

    name = NATIVE

    def __init__(self, processes: int | None = None) -> None:
        """As many processes as there are cores, unless told; none before the first item."""
        self._count = processes or len(os.sched_getaffinity(0))
        self._pool: ProcessPoolExecutor | None = None

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """A single item runs in this process: a pool would cost more than it brings."""
        if len(items) < 2 or self._count < 2:
            yield from (in_worker(work, item) for item in items)
            return
        if self._pool is None:
            context = get_context("forkserver")
            context.set_forkserver_preload(["pyarrow.parquet", "pipeline.decoder"])
            self._pool = ProcessPoolExecutor(self._count, mp_context=context)
        yield from self._results(self._pool, work, iter(items))

    def __enter__(self) -> Self:
        """Ready to run."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


class SparkEngine:
    """Tasks of a Spark session: an item is a task."""

    name = SPARK

    def __init__(self, session: "SparkSession") -> None:
        """The session stays the caller's."""
        self._session = session

    def run(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """All results, once the last task is done. SparkFailed, ExecutorLacks."""
        if not items:
            return
        from pipeline.spark_errors import spark_errors

        cut = [pickle.dumps(item) for item in items]
        with spark_errors():
            frame = self._session.range(0, len(cut), 1, len(cut))
            done = frame.mapInArrow(partial(_run_in_task, work, cut), "result binary").collect()
        for row in done:
            outcome = pickle.loads(row.result)  # noqa: S301 - what our own task has written
            if isinstance(outcome, PipelineError):
                raise outcome
            yield outcome

    def __enter__(self) -> Self:
        """Ready to run."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The session goes on."""


def run_all(engine: Engine, work: Callable[[T], R], items: Sequence[T], what: str) -> list[R]:
    """All results, in no particular order, with a bar that counts `what`."""
    results = []
    with progress(what, len(items)) as done:
        for result in engine.run(work, items):
            results.append(result)
            done(1)
    return results


def choose_engine(name: str, job: str, *, master: str | None = None) -> Engine:
    """The engine of that name. NoSpark, NoJava, SparkFailed.

    The work is Python's: Java only hands it out, so that it had better start quickly.
    """
    if name == NATIVE:
        return NativeEngine()
    from pipeline.session import open_session

    return SparkEngine(open_session(f"horolog {job}", master=master, is_short=True))


def in_worker(work: Callable[[T], R], item: T) -> R:
    """The result of an item. Faults of the disk become errors that can travel."""
    from storage.errors import StorageError

    try:
        return work(item)
    except (StorageError, OSError) as error:
        raise PipelineError(str(error)) from None


def _run_in_task(
    work: Callable[[Any], Any], cut: Sequence[bytes], batches: Iterable["pa.RecordBatch"]
) -> Iterator["pa.RecordBatch"]:
    """A named error is a result: it would end a task in a page of Java, and be tried again."""
    import pyarrow as pa

    for batch in batches:
        for number in batch.column(0).to_pylist():
            try:
                item = pickle.loads(cut[number])  # noqa: S301 - of our own driver
                outcome = in_worker(work, item)
            except PipelineError as error:
                outcome = error
            yield pa.record_batch({"result": pa.array([pickle.dumps(outcome)], pa.binary())})
