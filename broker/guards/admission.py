"""Whether records may be taken in now: the one question that a produce request asks beforehand.

`is_guarded` is false while all is well, and that is all that a good batch costs. Otherwise each
batch is asked about: whether the disk has room for it, and whether the broker came out of a loop of
crashes. Who is refused is told a code that clients try again (KAFKA_STORAGE_ERROR).
"""

from broker.guards.crash_guard import CrashGuard
from broker.guards.disk_space import DiskSpace


class Intake:
    """The guards of one broker. Used from the event loop."""

    __slots__ = ("_crash_guard", "_disk_space", "is_guarded")

    def __init__(self, disk_space: DiskSpace, crash_guard: CrashGuard) -> None:
        """Open until `look`."""
        self._disk_space = disk_space
        self._crash_guard = crash_guard
        self.is_guarded = False
        """Whether `admit` has to be asked."""

    def look(self) -> None:
        """What the guards say by now."""
        self.is_guarded = self._disk_space.is_tight or self._crash_guard.is_holding

    def admit(self, size_bytes: int) -> None:
        """KafkaError (KAFKA_STORAGE_ERROR) when a batch of that size may not be taken in."""
        self._crash_guard.check()
        if self._disk_space.is_tight:
            self._disk_space.admit(size_bytes)
