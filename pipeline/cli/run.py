"""A job's parts, run with a bar on the terminal."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pipeline.cli.terminal import progress
from pipeline.engine.engine import Engine

T = TypeVar("T")
R = TypeVar("R")


def run_all(engine: Engine, work: Callable[[T], R], items: Sequence[T], what: str) -> list[R]:
    """All results, in no particular order, with a bar that counts `what`."""
    results = []
    with progress(what, len(items)) as done:
        for result in engine.run(work, [items]):
            results.append(result)
            done(1)
    return results
