"""The locks of a share partition that run, for tests that end them by hand."""

from broker.share.states import AcquisitionLock


class ByHand:
    """A `LockTimer` that only remembers."""

    def __init__(self) -> None:
        self.running: dict[AcquisitionLock, None] = {}

    def start(self, lock: AcquisitionLock) -> None:
        self.running[lock] = None

    def stop(self, lock: AcquisitionLock) -> None:
        self.running.pop(lock, None)

    def take(self) -> AcquisitionLock:
        """The oldest lock, which runs no longer."""
        lock = next(iter(self.running))
        self.stop(lock)
        return lock
