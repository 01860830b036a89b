"""What a proof is: a long, seeded search for a broken promise, and what it came to.

Each proof is a module of this package with `prove(work: Work) -> Outcome`; `__main__` lists them.
"""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Protocol, TypeVar

from broker.runtime.event_log import journal

KEPT_FINDINGS = 20
Seed = TypeVar("Seed")
Found = TypeVar("Found")


class HasFindings(Protocol):
    """The result of a part of a proof."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Broken promises."""


Part = TypeVar("Part", bound=HasFindings)


@dataclass(frozen=True, slots=True)
class Work:
    """How much a proof is asked to do."""

    points: int | None = None
    """Points to visit (crash points, cuts, schedules, ...); None: the proof's own slice for CI."""
    seed: int = 0
    """The first seed; a proof counts up from there, so a finding is replayed by its seed alone."""
    processes: int = 2
    """Worker processes to use at most."""

    def wanted(self, slice_points: int) -> int:
        """Points to visit, where the CI slice is `slice_points`."""
        return slice_points if self.points is None else self.points


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a proof came to: one row of the table."""

    count: int
    """Points that were visited."""
    unit: str
    """What a point is, in the plural: "crash points"."""
    seeds: str = ""
    """The seeds that were used, as "0-41"."""
    findings: tuple[str, ...] = ()
    """Broken promises, each with its seed and how to replay it. Empty: the promise held."""
    skipped: str | None = None
    """Why nothing could be proved here (not root, a tool is missing); None: it was."""
    note: str = ""
    """One more figure worth a column, such as logs that ended read-only."""
    matrix: tuple[tuple[str, ...], ...] = ()
    """What was tried, in rows, the first of them titles; shown when points were asked for."""


def spread(work: Work, one: Callable[[Seed], Found], seeds: Iterable[Seed]) -> Iterator[Found]:
    """`one(seed)` for each seed, over processes, in the order of the seeds."""
    if work.processes <= 1:
        yield from map(one, seeds)
        return
    fork = get_context("fork")
    with ProcessPoolExecutor(work.processes, fork, initializer=_collect_seldom) as pool:
        yield from pool.map(one, seeds)


def shown(parts: Iterable[Part]) -> Iterator[Part]:
    """`parts`, whose findings are shown as soon as they come: they outlive a search cut off."""
    for part in parts:
        for finding in part.findings:
            print(f"found: {finding}", file=sys.stderr, flush=True)
        yield part


def _collect_seldom() -> None:
    """A search for garbage is a tenth of what a history takes, and finds little."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@contextmanager
def quietly() -> Iterator[None]:
    """Without the lines of a broker's log and of its audit."""
    write, journal.write = journal.write, lambda line: None
    try:
        with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere):
            yield
    finally:
        journal.write = write
