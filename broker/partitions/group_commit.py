"""Group commit: threads of a log directory that do nothing but fsync.

Everything that arrived while a log was being synced is covered by its next sync, and one wake-up of
the loop answers all of it. A round begins when the loop has handled the data of its sockets, so
that it covers many requests when there are many. Different logs are synced side by side. The same
threads serve `interval` durability (at most 100 ms or 256 KiB unsynced per partition, operations
B2) and keep the amount of dirty data bounded, so that the kernel never throttles `write()`.

Rules: everything but `Log.sync` happens on the loop; a log is synced by one thread at a time. The
first fsync error of a log is final (operations B3.1): its waiters hear of it.
"""

import asyncio
import contextlib
import heapq
import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from broker.partitions.commit import Done
from broker.partitions.sync_thread import Durable, Synced, SyncThread
from broker.runtime.callbacks import failed

SYNC_THREADS = 4
FLUSH_SHARE = 24  # of the memory: so much unsynced in a directory, and syncing begins anyhow
MIN_FLUSH_BYTES = 64 * 1024 * 1024
MAX_FLUSH_BYTES = 1024 * 1024 * 1024
RETRY_SECONDS = 0.5  # until the next try to have a first thread
FLUSH_REST = 7 / 8  # of that bound may be left when what it has made due is synced
FLUSH_LOGS = 64  # so many logs it makes due at once: others find a free thread
HOLD_FACTOR = 2  # so many times that, and producers wait: Linux throttles from 15 % of memory on


class CommitProbe(Protocol):
    """Observer of fsyncs."""

    def synced(self, seconds: float, error: BaseException | None) -> None:
        """One fsync took so long; `error` when it failed. Called on the loop."""


def flush_bytes_of_this_machine() -> int:
    """Bytes that may be unsynced before syncing begins: far below where the kernel would
    throttle.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(MIN_FLUSH_BYTES, min(MAX_FLUSH_BYTES, memory // FLUSH_SHARE))


class GroupCommit:
    """The fsyncs of one log directory."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        probe: CommitProbe,
        *,
        interval_seconds: float,
        interval_bytes: int,
        flush_bytes: int,
        on_durable: Callable[[Durable], None],
        on_failed: Callable[[Durable, BaseException], None],
    ) -> None:
        """`on_durable(log)` and `on_failed(log, error)` hear of a sync before its waiters.

        Beyond `flush_bytes` unsynced in the directory, syncing begins whatever the topics ask, with
        the logs that have most of it.
        """
        self._loop = loop
        self._monotonic = monotonic
        self._probe = probe
        self._interval_seconds = interval_seconds
        self._interval_bytes = interval_bytes
        self._flush_bytes = flush_bytes
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._waiting: dict[Durable, deque[tuple[int, Done]]] = {}
        self._interval: dict[Durable, None] = {}  # to be synced when the interval is over
        self._unsynced: dict[Durable, int] = {}
        self._unsynced_bytes = 0
        self._due: dict[Durable, None] = {}
        self._syncing: set[Durable] = set()
        self._threads: list[SyncThread] = []
        self._idle: list[SyncThread] = []
        self._timer: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._begins = False
        self._closed = False

    def request(self, log: Durable, offset: int, done: Done) -> None:
        """Calls `done(None)` once all of `log` below `offset` is durable, or `done(error)`."""
        if log.durable_offset >= offset:
            done(None)
            return
        self._waiting.setdefault(log, deque()).append((offset, done))
        self._schedule(log)

    def written(self, log: Durable, size_bytes: int, *, interval: bool = True) -> bool:
        """Tells of an append that nobody waits for; `interval`: the 100 ms / 256 KiB promise.

        True when so much is unsynced in this directory that the caller should hold its answer
        back with `request`, which slows the producer down instead of the event loop.
        """
        unsynced = self._unsynced.get(log, 0) + size_bytes
        self._unsynced[log] = unsynced
        self._unsynced_bytes += size_bytes
        if self._unsynced_bytes > self._flush_bytes:
            self._begin_soon()
        if interval and unsynced >= self._interval_bytes:
            self._schedule(log)
        elif interval and log not in self._interval:
            self._interval[log] = None
            if self._timer is None:
                self._timer = self._loop.call_later(self._interval_seconds, self._interval_over)
        return self._unsynced_bytes > self._flush_bytes * HOLD_FACTOR

    def start_moved(self, _: Durable, done: Done) -> None:
        """As the port has it: nobody else leads it."""
        done(None)

    def forget(self, log: Durable) -> None:
        """The log is deleted or closed: no sync is begun any more, its waiters are answered."""
        self._interval.pop(log, None)
        self._unsynced_bytes -= self._unsynced.pop(log, 0)
        self._due.pop(log, None)
        self._tell(self._waiting.pop(log, ()), None)

    @property
    def unsynced_bytes(self) -> int:
        """About how much of this directory is not yet synced."""
        return self._unsynced_bytes

    def flush_older_than(self, seconds_of: Callable[[Durable], float], now: float) -> None:
        """Syncs each log that has had unsynced bytes for longer than `seconds_of(log)`.

        `now` is of the clock that `first_dirty_at` was taken from.
        """
        for log in list(self._unsynced):
            since = log.first_dirty_at
            if since is not None and now - since >= seconds_of(log):
                self._schedule(log)

    async def close(self) -> None:
        """Ends the threads after what they are doing; what is dirty stays so."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._retry is not None:
            self._retry.cancel()
        self._closed = True
        threads, self._threads = self._threads, []
        for thread in threads:
            await self._loop.run_in_executor(None, thread.end)

    def _interval_over(self) -> None:
        self._timer = None
        dirty, self._interval = self._interval, {}
        for log in dirty:
            self._schedule(log)

    def _schedule(self, log: Durable) -> None:
        self._due[log] = None
        self._begin_soon()

    def _begin_soon(self) -> None:
        if not self._begins:
            self._begins = True
            self._loop.call_soon(self._begin)

    def _flush(self) -> None:
        """Makes the largest logs due, whoever writes: those that are idle count as well."""
        comes = self._due.keys() | self._syncing
        left = self._unsynced_bytes - sum(self._unsynced.get(log, 0) for log in comes)
        if left <= self._flush_bytes:
            return
        others = (log for log in self._unsynced if log not in comes)
        for log in heapq.nlargest(FLUSH_LOGS, others, key=self._unsynced.__getitem__):
            self._due[log] = None
            left -= self._unsynced[log]
            if left <= self._flush_bytes * FLUSH_REST:
                return

    def _begin(self) -> None:
        """Hands the due logs that are not being synced to threads that have nothing to do."""
        self._begins = False
        if self._unsynced_bytes > self._flush_bytes:
            self._flush()
        ready = [log for log in self._due if log not in self._syncing]
        if not ready or self._closed:
            return
        free = len(self._idle) + SYNC_THREADS - len(self._threads)
        share = -(-len(ready) // max(free, 1))
        while ready and free:
            thread = self._thread()
            if thread is None:
                return
            part, ready = ready[:share], ready[share:]
            free -= 1
            self._syncing.update(part)
            for log in part:
                del self._due[log]
            thread.sync(part)

    def _thread(self) -> SyncThread | None:
        """One that has nothing to do; None when the machine gives no more: what is due waits for
        one of those that work, or for the next try.
        """
        if self._idle:
            return self._idle.pop()
        try:
            thread = SyncThread(self._monotonic, self._reported, self._faulted)
        except Exception as error:  # noqa: BLE001 - who waits is served later
            failed("commit", error)
            if not self._threads:
                self._begins = True
                self._retry = self._loop.call_later(RETRY_SECONDS, self._begin)
            return None
        self._threads.append(thread)
        return thread

    def _reported(self, thread: SyncThread, synced: list[Synced]) -> None:
        """On the thread."""
        self._on_loop(self._finish, thread, synced)

    def _faulted(self, error: BaseException) -> None:
        """On the thread."""
        self._on_loop(failed, "commit", error)

    def _on_loop(self, callback: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is going away
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _finish(self, thread: SyncThread, synced: list[Synced]) -> None:
        self._idle.append(thread)
        for each in synced:
            self._syncing.discard(each.log)
            try:
                self._settle(each)
            except Exception as fault:  # noqa: BLE001 - other logs were synced, too
                failed("commit", fault)
        if self._due:
            self._begin_soon()

    def _settle(self, synced: Synced) -> None:
        log, offset, seconds, error = synced
        self._probe.synced(seconds, error)
        if error is not None:
            self._fail(log, error)
            return
        log.mark_durable(offset)
        self._recount(log)
        try:
            self._on_durable(log)
        except Exception as fault:  # noqa: BLE001 - what is durable is answered all the same
            failed("commit", fault)
        self._answer(log, offset)

    def _recount(self, log: Durable) -> None:
        before = self._unsynced.pop(log, 0)
        left = min(before, log.dirty_bytes)
        self._unsynced_bytes -= before - left
        if left:
            self._unsynced[log] = left

    def _answer(self, log: Durable, offset: int) -> None:
        waiting = self._waiting.get(log)
        if not waiting:
            return
        reached = []
        while waiting and waiting[0][0] <= offset:
            reached.append(waiting.popleft())
        self._tell(reached, None)
        if not waiting:  # else: a remaining waiter has made the log due again
            self._waiting.pop(log, None)

    def _fail(self, log: Durable, error: BaseException) -> None:
        self._interval.pop(log, None)
        self._unsynced_bytes -= self._unsynced.pop(log, 0)
        try:
            self._on_failed(log, error)
        except Exception as fault:  # noqa: BLE001 - its waiters hear of the error all the same
            failed("commit", fault)
        self._tell(self._waiting.pop(log, ()), error)

    def _tell(self, waiting: Iterable[tuple[int, Done]], error: BaseException | None) -> None:
        for _, done in waiting:
            try:
                done(error)
            except Exception as fault:  # noqa: BLE001 - the others that wait are answered
                failed("commit", fault)
