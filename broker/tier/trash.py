"""Objects that nothing names any longer, until their delay is over.

It is in memory alone: what a stop leaves behind is found by the sweep. Objects that the store did
not remove are asked for again after a second, then after twice as long each time, up to a minute;
those of others do not wait for them.
"""

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from typing import NamedTuple

from broker.runtime.growing_wait import growing_wait
from storage.tier.port import ObjectStore

AT_ONCE = 1000
FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS = 1.0, 60.0


class Removal(NamedTuple):
    """Objects that go in one request."""

    keys: tuple[str, ...] = ()
    failures: int = 0
    """Requests in a row that the store did not do, or did not answer."""

    @property
    def retry_seconds(self) -> float:
        """The wait before the next request."""
        return growing_wait(FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS, self.failures)


class Trash:
    """Used from the event loop, but for `remove`."""

    def __init__(self, store: ObjectStore, monotonic: Callable[[], float]) -> None:
        """Empty."""
        self._store = store
        self._monotonic = monotonic
        self._due: list[tuple[float, int, Removal]] = []
        self._numbers = count()
        self._leaving = Removal()
        self.removed_objects = 0

    def put(self, keys: Sequence[str], delay_ms: int) -> None:
        """These objects may go so many milliseconds from now."""
        for at in range(0, len(keys), AT_ONCE):
            self._put(Removal(tuple(keys[at : at + AT_ONCE])), delay_ms / 1000)

    def put_back(self, leaving: Removal) -> float:
        """The store did not remove these: they wait, for so many seconds."""
        failed = leaving._replace(failures=leaving.failures + 1)
        self._put(failed, failed.retry_seconds)
        return failed.retry_seconds

    def _put(self, leaving: Removal, seconds: float) -> None:
        heapq.heappush(self._due, (self._monotonic() + seconds, next(self._numbers), leaving))

    def names(self) -> frozenset[str]:
        """Objects that wait, and those that are being removed."""
        waiting = (key for _, _, leaving in self._due for key in leaving.keys)
        return frozenset(waiting) | frozenset(self._leaving.keys)

    def take(self) -> Removal | None:
        """Objects that are due; None when none is."""
        if not self._due or self._due[0][0] > self._monotonic():
            self._leaving = Removal()
            return None
        self._leaving = heapq.heappop(self._due)[2]
        return self._leaving

    def remove(self, leaving: Removal) -> None:
        """Has the store remove them. Blocks. StoreError: put them back."""
        self._store.delete(leaving.keys)
        self.removed_objects += len(leaving.keys)
