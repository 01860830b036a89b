"""Reads of one log on lanes: the disk's, or the tier's for what only its store has.

A store that is silent keeps the tier's threads busy, and what waits for them is refused in the
end. So nothing goes there that is in the log's directory.
"""

from __future__ import annotations  # functions are made per request: cheap ones

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from broker.partitions.partition_services import PartitionServices, StoreSearches
from broker.runtime.deferred import Deferred
from broker.runtime.lanes import settle
from broker.runtime.unpacking import RequestBudget
from protocol.errors import ErrorCode, KafkaError
from storage.errors import StorageError
from storage.log.log import Log
from storage.search.segment_access import NotInMemory
from storage.segment.log_snapshot import TimestampOffset
from storage.validation.unpacking import TooMuchWork, Work

T = TypeVar("T")

SEARCH_AWAY_BYTES = 64 * 1024 * 1024
"""Most that one search may unpack of what is in the tier's store."""
SEARCH_BYTES = 4096
"""Least unpacking budget of a search on the loop: that of a batch of that size."""

Found = TimestampOffset | None
Search = Callable[[bool, bool, Work], Found]
"""Gets whether it may wait for the disk, and whether it may ask the tier's store."""


class LaneReads:
    """Used from the event loop only."""

    __slots__ = ("_log", "_serving")

    def __init__(self, log: Log, serving: PartitionServices) -> None:
        """Nothing is read."""
        self._log = log
        self._serving = serving

    def run(self, work: Callable[[], T], at: int | None) -> Deferred[T]:
        """Runs what reads the log from the offset `at` on; None: what is here already."""
        answer: Deferred[T] = Deferred()
        away = self._threads_for(at)
        future = self._serving.lane.run(work) if away is None else away.run(work)
        future.add_done_callback(partial(settle, answer))
        return answer

    def run_anywhere(self, work: Callable[[], T]) -> Deferred[T]:
        """Runs what also reads other logs."""
        answer: Deferred[T] = Deferred()
        future = (self._serving.away or self._serving.lane).run(work)
        future.add_done_callback(partial(settle, answer))
        return answer

    def unpack(
        self, work: Callable[[Work], T], budget: RequestBudget, at: int | None
    ) -> Deferred[T]:
        """As `run`, for what unpacks; TooMuchWork when that is more than `budget` has left."""
        if self._threads_for(at) is not None:
            return self.run(lambda: work(budget.work(SEARCH_AWAY_BYTES)), at)
        answer: Deferred[T] = Deferred()
        self._serving.unpacking.on_lane(budget, work, partial(settle, answer))
        return answer

    def _threads_for(self, at: int | None) -> StoreSearches | None:
        """Threads of the tier, for offsets that only its store has."""
        snapshot = self._log.snapshot
        is_here = at is None or max(at, snapshot.log_start_offset) >= snapshot.local_start_offset
        return None if is_here else self._serving.away

    # --- by time ---

    def search(
        self, search: Search, budget: RequestBudget, *, at_once: bool
    ) -> Found | Deferred[Found]:
        """Searches at once from memory, or on a lane, where a fault is detected again and
        raised.
        """
        snapshot = self._log.snapshot
        if snapshot.log_start_offset == snapshot.log_end_offset:
            return None
        if at_once:
            try:
                return self._serving.unpacking.at_once(
                    SEARCH_BYTES, budget, lambda work: search(False, False, work)
                )
            except (NotInMemory, StorageError, TooMuchWork):
                pass
        away = self._serving.away
        if away is None or not snapshot.first_local:
            return self.unpack(lambda work: search(True, True, work), budget, None)
        return self._search_both(away, search, budget)

    def _search_both(
        self, threads: StoreSearches, search: Search, budget: RequestBudget
    ) -> Deferred[Found]:
        """Searches what is here on the disk's lane, then with the store if that was not enough."""
        answer: Deferred[Found] = Deferred()

        def searched(found: Found, error: BaseException | None) -> None:
            if isinstance(error, NotInMemory):
                if not answer.abandoned:
                    _search_away(threads, search, budget, answer)
            elif error is not None:
                answer.fail(error)
            else:
                answer.resolve(found)

        self.unpack(lambda work: search(True, False, work), budget, None).listen(searched)
        return answer


def _search_away(
    threads: StoreSearches, search: Search, budget: RequestBudget, answer: Deferred[Found]
) -> None:
    """Searches where the tier's store may be asked, for so long as is allowed."""
    future = threads.run(lambda: search(True, True, budget.work(SEARCH_AWAY_BYTES)))

    def give_up() -> None:
        if not answer.settled:
            answer.fail(KafkaError(ErrorCode.REQUEST_TIMED_OUT, "The tier's store is slow"))

    timer = asyncio.get_running_loop().call_later(threads.search_seconds, give_up)

    def done(_: object) -> None:
        timer.cancel()
        if not answer.settled:
            settle(answer, future)

    future.add_done_callback(done)
