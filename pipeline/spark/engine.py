"""Parts of a job as tasks of Spark, on this machine or on a cluster."""

import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from pipeline.engine.engine import SPARK, in_worker
from pipeline.errors import PipelineError
from pipeline.spark.errors import spark_errors

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE = 2
"""Jobs: the tasks of the next one take the cores that the last tasks of the first one leave.

So a job has one task a core: more would even out nothing, and each costs Spark what it takes to
archive 15 MiB.
"""
_GROUP = f"horolog-{uuid4()}"


class SparkEngine:
    """Tasks of a Spark session: a round is a job, a few items are a task."""

    name = SPARK

    def __init__(self, opened: "Callable[[], SparkSession]") -> None:
        """`opened` gives the session, which stays the caller's; called once there is work."""
        self._opened = cache(opened)

    def run(
        self, work: Callable[[T], R], rounds: Iterable[Sequence[T]]
    ) -> Generator[R, None, None]:
        """The results of a round once its last task is done.

        NoSpark, NoJava, SparkFailed, ExecutorLacks.
        """
        jobs: deque[Future[list[bytes]]] = deque()
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            try:
                for items in filter(None, rounds):
                    cut = [pickle.dumps(item) for item in items]
                    jobs.append(threads.submit(_job, self._opened(), work, cut))
                    if len(jobs) == _AT_ONCE:
                        yield from _outcomes(jobs.popleft().result())
                while jobs:
                    yield from _outcomes(jobs.popleft().result())
            finally:
                if jobs:  # something went wrong, and nobody waits for these
                    _cancel(self._opened())

    def __enter__(self) -> Self:
        """Ready to run."""
        return self

    def __exit__(self, *_: object) -> None:
        """The session goes on."""


def _cancel(session: "SparkSession") -> None:
    with suppress(PipelineError), spark_errors():  # where Java is gone, so are they
        session.sparkContext.cancelJobGroup(_GROUP)


def _job(session: "SparkSession", work: Callable[[T], R], cut: Sequence[bytes]) -> list[bytes]:
    with spark_errors():
        session.sparkContext.setJobGroup(_GROUP, "horolog")
        tasks = min(len(cut), session.sparkContext.defaultParallelism)
        frame = session.range(0, len(cut), 1, tasks)
        done = frame.mapInArrow(partial(_run_in_task, work, cut), "result binary").collect()
    return [row.result for row in done]


def _outcomes(done: Iterable[bytes]) -> Iterator[Any]:
    for each in done:
        outcome = pickle.loads(each)  # noqa: S301 - what our own task has written
        if isinstance(outcome, PipelineError):
            raise outcome
        yield outcome


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
