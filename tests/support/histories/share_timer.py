"""The locks and waits of a share partition that run, for tests that end them by hand."""

from broker.share.states import AcquisitionLock, RetryWait


class ByHand:
    """A `LockTimer` that only remembers."""

    def __init__(self) -> None:
        self.running: dict[AcquisitionLock, None] = {}
        self.waits: dict[RetryWait, int] = {}
        """The end of each wait, in ms of `now_ms`."""
        self.now_ms = 0

    def start(self, lock: AcquisitionLock) -> None:
        self.running[lock] = None

    def stop(self, lock: AcquisitionLock) -> None:
        self.running.pop(lock, None)

    def start_wait(self, wait: RetryWait, wait_ms: int) -> None:
        self.waits[wait] = self.now_ms + wait_ms

    def take(self) -> AcquisitionLock:
        """The oldest lock, which runs no longer."""
        lock = next(iter(self.running))
        self.stop(lock)
        return lock

    def over(self) -> list[RetryWait]:
        """The waits that are over by now, which run no longer."""
        over = [wait for wait, at in self.waits.items() if at <= self.now_ms]
        for wait in over:
            del self.waits[wait]
        return over
