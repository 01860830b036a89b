"""Threads that bring bytes from the store, for fetches and for searches by time.

They are apart from those of the disk, so that a slow store keeps nobody else waiting, and what
waits for them is bounded: beyond that, the answer is an error that clients try again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from broker.runtime.lanes import DiskLanes
from config.store import ConfigStore
from storage.tier.port import StoreError

T = TypeVar("T")

NAME = "tier-reads"
MOST_THREADS = 64
"""Threads at most, whatever remote.log.reader.threads becomes."""


class StoreReads:
    """Used from the event loop."""

    def __init__(self, lanes: DiskLanes, config: ConfigStore) -> None:
        """No thread runs before it is needed."""
        self._config = config
        self._lane = lanes.wide_lane(NAME, MOST_THREADS)
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self.running = 0
        self.refused = 0
        """Reads that were refused because too many waited."""

    @property
    def waiting(self) -> int:
        """Reads that wait for their turn."""
        return len(self._waiting)

    @property
    def wait_seconds(self) -> float:
        """For how long a fetch waits: `remote.fetch.max.wait.ms`."""
        return self._config.broker_config.remote_fetch_max_wait_ms / 1000

    @property
    def search_seconds(self) -> float:
        """For how long a search by time takes: `remote.list.offsets.request.timeout.ms`."""
        return self._config.broker_config.remote_list_offsets_request_timeout_ms / 1000

    def run(self, work: Callable[..., T], *args: object) -> asyncio.Future[T]:
        """Runs it on a thread; StoreError at once when too much waits already."""
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        most = self._config.broker_config.remote_log_reader_max_pending_tasks
        if len(self._waiting) >= most:
            self.refused += 1
            answer.set_exception(StoreError(NAME, "read", f"{most} reads wait already"))
            return answer
        self._waiting.append((answer, partial(work, *args)))
        self._begin_next()
        return answer

    def _begin_next(self) -> None:
        threads = min(self._config.broker_config.remote_log_reader_threads, MOST_THREADS)
        while self._waiting and self.running < threads:
            answer, work = self._waiting.popleft()
            self.running += 1
            self._lane.run(work).add_done_callback(partial(self._ended, answer))

    def _ended(self, answer: "asyncio.Future[Any]", done: "asyncio.Future[Any]") -> None:
        self.running -= 1
        if done.cancelled():
            answer.cancel()
        elif not answer.done():
            error = done.exception()
            if error is None:
                answer.set_result(done.result())
            else:
                answer.set_exception(error)
        self._begin_next()
