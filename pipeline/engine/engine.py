"""Engines that run the parts of a job: processes of this machine, or tasks of Spark.

A job is cut into items; `work`, a function at the top of a module, turns each into a result. Both
travel between processes, so they are plain values. Results come in no particular order. Spark runs
an item again when its executor dies, so `work` must bear to be run twice."""

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol, Self, TypeVar

from pipeline.errors import PipelineError

T = TypeVar("T")
R = TypeVar("R")
NATIVE, SPARK = "native", "spark"


class WorkerDied(PipelineError):  # noqa: N818 - what happened
    """A process that worked on an item is gone: killed, or out of memory."""


class Engine(Protocol):
    """Runs the parts of a job."""

    name: str

    def run(
        self, work: Callable[[T], R], rounds: Iterable[Sequence[T]]
    ) -> Generator[R, None, None]:
        """The result of each item, about as soon as it is there.

        Items come in rounds; the next round is requested while earlier ones are at work. Results of
        a round may be withheld until it is done. What `work` raises is raised here.
        """

    def __enter__(self) -> Self:
        """Ready to run."""

    def __exit__(self, *_: object) -> None:
        """Lets go of processes."""


def in_worker(work: Callable[[T], R], item: T) -> R:
    """The result of an item. Faults of the disk become errors that can travel. Raises
    PipelineError.
    """
    from storage.errors import StorageError

    try:
        return work(item)
    except (StorageError, OSError) as error:
        raise PipelineError(str(error)) from None
