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
        duration_ms: Callable[[], int],
        ended: Callable[[AcquisitionLock], None],
        wait_over: Callable[[RetryWait], None],
    ) -> None:
        """`ended` is called once for each lock that was started and not stopped, `wait_over` once
        for each wait.
        """
        self._deadlines = deadlines
        self._duration_ms = duration_ms
        self._ended = ended
        self._wait_over = wait_over

    def start(self, lock: AcquisitionLock) -> None:
        """The lock ends after the group's lock duration from now on."""
        lock.deadline.callback = partial(self._ended, lock)
        self._deadlines.set(lock.deadline, self._duration_ms())

    def stop(self, lock: AcquisitionLock) -> None:
        """The lock holds nothing any more."""
        lock.deadline.cancel()

    def start_wait(self, wait: RetryWait, wait_ms: int) -> None:
        """The wait is over in so many ms."""
        wait.deadline.callback = partial(self._wait_over, wait)
        self._deadlines.set(wait.deadline, wait_ms)
