"""A thread that does nothing but fsync, for group commit.

Right after a sync its waiters hear of it; the mark that a start after a crash goes by is left on
the disk when the thread has time, `VOUCH_SECONDS` later at the most.
"""

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import NamedTuple, Protocol

VOUCH_SECONDS = 0.1  # a mark costs a tenth of what a sync does


class Durable(Protocol):
    """Operations that group commit needs of a log."""

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

    def vouch(self) -> None:
        """Leaves a mark of that on the disk; blocks. May be left out, and comes when there is time.

        Waiters for a sync do not wait for it.
        """

    def mark_durable(self, offset: int) -> None:
        """On the loop: what `sync` returned becomes visible."""


class Synced(NamedTuple):
    """Result of one sync."""

    log: Durable
    offset: int
    seconds: float
    error: BaseException | None


class SyncThread:
    """A thread that syncs the logs it is given and reports once for all of them."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        report: "Callable[[SyncThread, list[Synced]], None]",
        fault: Callable[[BaseException], None],
    ) -> None:
        """Starts it; `report` is called on the thread, and `fault` with what nobody expected."""
        self._monotonic = monotonic
        self._report = report
        self._fault = fault
        self._work: SimpleQueue[Sequence[Durable]] = SimpleQueue()
        self._unvouched: dict[Durable, None] = {}
        self._vouched_at = monotonic()
        self._thread = threading.Thread(target=self._run, name="group-commit", daemon=True)
        self._thread.start()

    def sync(self, logs: Sequence[Durable]) -> None:
        """Begins to sync these; not before the last ones were reported."""
        self._work.put(logs)

    def end(self) -> None:
        """Ends the thread after what it is doing, and waits for that."""
        self.sync(())
        self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                logs = self._work.get(timeout=VOUCH_SECONDS if self._unvouched else None)
            except Empty:
                self._vouch()
                continue
            if not logs:
                self._vouch()
                return
            self._report(self, [self._synced(log) for log in logs])
            self._unvouched.update(dict.fromkeys(logs))
            if self._monotonic() - self._vouched_at > VOUCH_SECONDS:
                self._vouch()

    def _vouch(self) -> None:
        logs, self._unvouched = self._unvouched, {}
        for log in logs:
            try:
                log.vouch()
            except Exception as error:  # noqa: BLE001 - the thread is that of all logs
                self._fault(error)
        self._vouched_at = self._monotonic()

    def _synced(self, log: Durable) -> Synced:
        started = self._monotonic()
        try:
            offset = log.sync()
        except Exception as error:  # noqa: BLE001 - handed to the waiters and the log, on the loop
            return Synced(log, -1, self._monotonic() - started, error)
        return Synced(log, offset, self._monotonic() - started, None)
