"""The partitions of a stream, seen with patience: one that is missing for a moment is not gone.

After a restart a broker may know less for a while than it has, and does not list a partition
without a leader. Partitions that a stream has read before, or is about to, are asked for again
until they are there or `PATIENCE_SECONDS` are over; each partition is waited for once. Where a loss
is no error, a stream has what is there of the others meanwhile, and behind that.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from pipeline.errors import NothingThere
from pipeline.sources.options import ReadOptions
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.planning import views_of

PATIENCE_SECONDS = 30.0
RETRY_SECONDS = 0.5

_Key = tuple[str, int]


class SettledViews:
    """Looks at the partitions that the options ask for."""

    def __init__(
        self,
        options: ReadOptions,
        look: Callable[[ReadOptions], list[PartitionView]] = views_of,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Asks nothing yet. `now` in seconds."""
        self._options = options
        self._look, self._now, self._sleep = look, now, sleep
        self._given_up: set[_Key] = set()

    def now(self, wanted: Iterable[_Key] = ()) -> list[PartitionView]:
        """The partitions as they stand, `wanted` among them if they come back in time.

        NothingThere as of a batch read, where a loss is an error.
        """
        needed = set(wanted) - self._given_up
        until = self._now() + PATIENCE_SECONDS
        while True:
            views, refusal = self._try()
            there = {(view.topic, view.partition) for view in views}
            if refusal is None and needed <= there:
                self._given_up -= there
                return views
            if self._now() >= until or not needed:
                break
            self._sleep(RETRY_SECONDS)
        if refusal is not None:
            raise refusal
        self._given_up = (self._given_up | needed) - there
        return views

    def _try(self) -> tuple[list[PartitionView], NothingThere | None]:
        if not self._options.fails_on_loss:
            return views_there(self._options, self._look), None
        try:
            return self._look(self._options), None
        except NothingThere as refusal:
            return [], refusal


def views_there(
    options: ReadOptions, look: Callable[[ReadOptions], list[PartitionView]] = views_of
) -> list[PartitionView]:
    """The partitions that are asked for and are there; a topic that is missing refuses no other."""
    with suppress(NothingThere):
        return look(options)
    found: list[PartitionView] = []
    for each in _one_by_one(options):
        with suppress(NothingThere):
            found += look(each)
    return found


def _one_by_one(options: ReadOptions) -> Iterator[ReadOptions]:
    """Options of each topic, or of each partition that is assigned."""
    for topic, indexes in (options.assigned or {}).items():
        for index in indexes:
            yield replace(options, assigned={topic: (index,)})
    for topic in options.topics:
        yield replace(options, topics=(topic,))
