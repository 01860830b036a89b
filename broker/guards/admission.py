"""Admission of records: the one check of a produce request beforehand.

`is_guarded` is false while all is well, and that is all that a good batch costs. Otherwise each
batch is checked: the disk must have room for it, and the broker must not be in a crash hold. A
refused client receives a code that clients retry (KAFKA_STORAGE_ERROR).
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
        """True when `admit` has to be called."""

    def look(self) -> None:
        """Reads the present state of the guards."""
        self.is_guarded = self._disk_space.is_tight or self._crash_guard.is_holding

    def admit(self, size_bytes: int) -> None:
        """KafkaError (KAFKA_STORAGE_ERROR) when a batch of that size may not be taken in."""
        self._crash_guard.check()
        if self._disk_space.is_tight:
            self._disk_space.admit(size_bytes)
