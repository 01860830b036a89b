"""Delays of failed authentications: who guesses passwords waits, and longer each time.

Each address has a count of its own. The first failure waits as long as Kafka's
`connection.failed.authentication.delay.ms` says, each further one twice as long as the one before,
up to five seconds; after a minute without one the address begins again. Successes never wait.
"""

from collections import OrderedDict
from collections.abc import Callable

from broker.runtime.growing_wait import growing_wait

MOST_ADDRESSES = 10_000
LONGEST_SECONDS = 5.0
FORGOTTEN_SECONDS = 60.0


class FailureDelays:
    """Failures by address. Used from the event loop."""

    def __init__(self, monotonic: Callable[[], float], first_seconds: float) -> None:
        """`first_seconds` is the delay of a first failure; 0: there are no delays."""
        self._monotonic = monotonic
        self._first_seconds = first_seconds
        self._failures: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def failed(self, host: str) -> float:
        """Counts a failure from an address; the seconds that its answer waits."""
        now = self._monotonic()
        count, last = self._failures.pop(host, (0, now))
        if now - last > FORGOTTEN_SECONDS:
            count = 0
        self._failures[host] = count + 1, now
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)
        longest = max(LONGEST_SECONDS, self._first_seconds)
        return growing_wait(self._first_seconds, longest, count + 1)
