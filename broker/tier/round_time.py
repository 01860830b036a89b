"""Time of one of the tier's rounds: a partition with a backlog keeps no other one waiting."""

from collections.abc import Callable

from broker.guards.disk_space import DiskSpace

ROUND_SECONDS = 30.0
SCARCE_SECONDS = 1.0
"""The same while space is scarce: what has been copied elsewhere meanwhile is to leave soon."""


class RoundTime:
    """Once it is over, each partition copies one segment more at most. Used from the event loop."""

    def __init__(self, monotonic: Callable[[], float], space: DiskSpace) -> None:
        """The round begins."""
        self._monotonic = monotonic
        self._space = space
        self._began = monotonic()
        self.has_left = False
        """True when a partition was left that may have more to copy."""

    def is_over(self) -> bool:
        """True when who copies is to leave the rest for the next round; that is noted."""
        most = SCARCE_SECONDS if self._space.is_scarce else ROUND_SECONDS
        if self._monotonic() - self._began < most:
            return False
        self.has_left = True
        return True
