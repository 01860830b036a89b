"""Group commit: one thread per log directory that does nothing but fsync.

Everything that arrived while one round of fsyncs ran is covered by the next one, and one wake-up
of the loop per round answers all of it. The same thread serves `interval` durability (at most
100 ms or 256 KiB unsynced per partition, operations B2) and keeps the amount of dirty data bounded,
so that the kernel never throttles `write()` on the loop.

Rules: `request`, `written` and the callbacks belong to the loop; `Log.sync` is the only call made
from the thread. The first fsync error of a log is final (operations B3.1): its waiters hear of it
and it is never synced again.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

FLUSH_BYTES = 64 * 1024 * 1024  # unsynced in a directory: syncing begins whatever the topics ask
MAX_UNSYNCED_BYTES = 256 * 1024 * 1024  # beyond it producers wait for the disk

Done = Callable[[BaseException | None], None]


class Durable(Protocol):
    """What group commit needs of a log."""

    @property
    def durable_offset(self) -> int:
        """Everything below is on the disk."""

    @property
    def dirty_bytes(self) -> int:
        """Bytes that were written and not yet synced."""

    @property
    def first_dirty_at(self) -> float | None:
        """Since when (monotonic seconds) something is unsynced; None if nothing is."""

    def sync(self) -> int:
        """Blocks; returns the offset up to which the log is now durable."""

    def mark_durable(self, offset: int) -> None:
        """On the loop: what `sync` returned becomes visible."""


class CommitProbe(Protocol):
    """Who wants to know about fsyncs."""

    def synced(self, seconds: float, error: BaseException | None) -> None:
        """One fsync took so long; `error` when it failed. Called on the loop."""


_Round = list[tuple[Durable, int, float, BaseException | None]]


class GroupCommit:
    """The fsync thread of one log directory."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic: Callable[[], float],
        probe: CommitProbe,
        *,
        interval_seconds: float,
        interval_bytes: int,
        on_durable: Callable[[Durable], None],
        on_failed: Callable[[Durable, BaseException], None],
    ) -> None:
        """Starts the thread. `on_durable(log)` and `on_failed(log, error)` hear of it first."""
        self._loop = loop
        self._monotonic = monotonic
        self._probe = probe
        self._interval_seconds = interval_seconds
        self._interval_bytes = interval_bytes
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._waiting: dict[Durable, deque[tuple[int, Done]]] = {}
        self._dirty: dict[Durable, None] = {}
        self._unsynced: dict[Durable, int] = {}
        self._unsynced_bytes = 0
        self._due: dict[Durable, None] = {}
        self._gate = threading.Lock()
        self._wake = threading.Semaphore(0)
        self._asleep = True
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

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
        if self._unsynced_bytes > FLUSH_BYTES or (interval and unsynced >= self._interval_bytes):
            self._schedule(log)
        elif interval and log not in self._dirty:
            self._dirty[log] = None
            if self._timer is None:
                self._timer = self._loop.call_later(self._interval_seconds, self._interval_over)
        return self._unsynced_bytes > MAX_UNSYNCED_BYTES

    def forget(self, log: Durable) -> None:
        """The log is deleted or closed: no sync is begun any more, its waiters are answered."""
        self._dirty.pop(log, None)
        self._unsynced_bytes -= self._unsynced.pop(log, 0)
        with self._gate:
            self._due.pop(log, None)
        for _, done in self._waiting.pop(log, ()):
            done(None)

    @property
    def unsynced_bytes(self) -> int:
        """About how much of this directory is not yet synced."""
        return self._unsynced_bytes

    def flush_older_than(self, seconds_of: Callable[[Durable], float]) -> None:
        """Syncs each log that has had unsynced bytes for longer than `seconds_of(log)`."""
        now = self._monotonic()
        for log in list(self._unsynced):
            since = log.first_dirty_at
            if since is not None and now - since >= seconds_of(log):
                self._schedule(log)

    async def close(self) -> None:
        """Ends the thread after the round it is in. What is dirty is the log manager's to sync."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._stopping = True
        self._wake.release()
        await self._loop.run_in_executor(None, self._thread.join)

    def _interval_over(self) -> None:
        self._timer = None
        dirty, self._dirty = self._dirty, {}
        for log in dirty:
            self._schedule(log)

    def _schedule(self, log: Durable) -> None:
        with self._gate:
            self._due[log] = None
            wake, self._asleep = self._asleep, False
        if wake:
            self._wake.release()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            while True:
                with self._gate:
                    due, self._due = self._due, {}
                    self._asleep = not due
                if not due or self._stopping:
                    break
                self._report([self._sync(log) for log in due])
            if self._stopping:
                return

    def _sync(self, log: Durable) -> tuple[Durable, int, float, BaseException | None]:
        started = self._monotonic()
        try:
            offset = log.sync()
        except Exception as error:  # noqa: BLE001 - handed to the waiters and the log, on the loop
            return log, -1, self._monotonic() - started, error
        return log, offset, self._monotonic() - started, None

    def _report(self, synced: _Round) -> None:
        try:
            self._loop.call_soon_threadsafe(self._finish, synced)
        except RuntimeError:  # the loop is closed: the process is going away
            self._stopping = True

    def _finish(self, synced: _Round) -> None:
        for log, offset, seconds, error in synced:
            self._probe.synced(seconds, error)
            if error is not None:
                self._fail(log, error)
                continue
            log.mark_durable(offset)
            self._recount(log)
            self._on_durable(log)
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
        while waiting and waiting[0][0] <= offset:
            waiting.popleft()[1](None)
        if not waiting:  # else: whoever still waits has made the log due again
            self._waiting.pop(log, None)

    def _fail(self, log: Durable, error: BaseException) -> None:
        self._dirty.pop(log, None)
        self._unsynced_bytes -= self._unsynced.pop(log, 0)
        self._on_failed(log, error)
        for _, done in self._waiting.pop(log, ()):
            done(error)
