"""The port by which partitions have their records made durable.

Without a fleet that is an fsync of this disk (`GroupCommit`); in one, a commit in its catalog.
"""

from collections.abc import Callable
from typing import Protocol

from storage.log.log import Log

Done = Callable[[BaseException | None], None]


class CommitPort(Protocol):
    """Makes durable what was appended, and answers who waits for it. On the loop only."""

    def request(self, log: Log, offset: int, done: Done) -> None:
        """Calls `done(None)` once all of `log` below `offset` is durable, or `done(error)`."""

    def written(self, log: Log, size_bytes: int, *, interval: bool = True) -> bool:
        """Tells of an append that nobody waits for; True when its answer should wait for
        `request`, because so much is not durable yet.

        `interval`: it is to be durable within a time, else only by and by.
        """

    def start_moved(self, log: Log, done: Done) -> None:
        """Calls `done(None)` once the log never begins earlier again, whoever leads it, or
        `done(error)`. On this disk it does not.
        """

    def forget(self, log: Log) -> None:
        """The log is deleted or closed: who waits is answered."""
