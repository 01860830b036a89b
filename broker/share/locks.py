"""Locks and waits as deadlines: they end by the broker's clock, also when a test moves that.

Rule: KIP-932. The duration of a lock is the group's (`share.record.lock.duration.ms`), read when it
begins.
"""

from collections.abc import Callable
from functools import partial

from broker.runtime.deadlines import Deadlines
from broker.share.states import AcquisitionLock, RetryWait


class Locks:
    """The `LockTimer` of one share partition."""

    def __init__(
        self,
        deadlines: Deadlines,
        now_ms: Callable[[], int],
        duration_ms: Callable[[], int],
        ended: Callable[[AcquisitionLock], None],
        wait_over: Callable[[RetryWait], None],
    ) -> None:
        """`ended` is called once for each lock that was started and not stopped, `wait_over` once
        for each wait. `now_ms` is the wall time that they show.
        """
        self._deadlines = deadlines
        self._now_ms = now_ms
        self._duration_ms = duration_ms
        self._ended = ended
        self._wait_over = wait_over

    def start(self, lock: AcquisitionLock) -> None:
        """The lock ends after the group's lock duration from now on."""
        duration_ms = self._duration_ms()
        lock.since_ms = self._now_ms()
        lock.until_ms = lock.since_ms + duration_ms
        lock.deadline.callback = partial(self._ended, lock)
        self._deadlines.set(lock.deadline, duration_ms)

    def stop(self, lock: AcquisitionLock) -> None:
        """The lock holds nothing any more."""
        lock.deadline.cancel()

    def start_wait(self, wait: RetryWait, wait_ms: int) -> None:
        """The wait is over in so many ms."""
        wait.since_ms = self._now_ms()
        wait.until_ms = wait.since_ms + wait_ms
        wait.deadline.callback = partial(self._wait_over, wait)
        self._deadlines.set(wait.deadline, wait_ms)
