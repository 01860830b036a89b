"""A bar of partitions on standard error, while that is a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from config.quantities import size

if TYPE_CHECKING:
    from rich.progress import Progress

    from storage.tier.names import PartitionKeys
    from storage.tier.restore import RestoreProgress


class PartitionBar:
    """Partitions that are done, out of all."""

    def __init__(self, progress: "Progress") -> None:
        """Their number is not known yet."""
        self._progress = progress
        self._task = progress.add_task("partitions", total=None)
        self._fetched_bytes = 0

    def partitions(self, count: int) -> None:
        """There are so many."""
        self._progress.update(self._task, total=count)

    def partition(self, _: "PartitionKeys") -> None:
        """One more has begun."""
        self._progress.advance(self._task)

    def fetched(self, size_bytes: int) -> None:
        """So many bytes have come."""
        self._fetched_bytes += size_bytes
        told = f"partitions ({size(self._fetched_bytes)} fetched)"
        self._progress.update(self._task, description=told)


def progress_of(bar: PartitionBar | None) -> "RestoreProgress":
    """Reports of a work on partitions, as the bar shows them."""
    from storage.tier.restore import RestoreProgress

    if bar is None:
        return RestoreProgress()
    return RestoreProgress(bar.partitions, bar.partition, bar.fetched)


@contextmanager
def partition_bar() -> Iterator[PartitionBar | None]:
    """The bar; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield PartitionBar(progress)
