"""Objects that nothing names any longer, until their delay is over.

It is in memory alone: what a stop leaves behind is found by the sweep.
"""

import heapq
from collections.abc import Callable, Sequence
from itertools import count

from storage.tier.port import ObjectStore

AT_ONCE = 1000
RETRY_MS = 60_000


class Trash:
    """Used from the event loop, but for `remove`."""

    def __init__(self, store: ObjectStore, monotonic: Callable[[], float]) -> None:
        """Empty."""
        self._store = store
        self._monotonic = monotonic
        self._due: list[tuple[float, int, tuple[str, ...]]] = []
        self._numbers = count()
        self._leaving: tuple[str, ...] = ()
        self.removed_objects = 0

    def put(self, keys: Sequence[str], delay_ms: int) -> None:
        """These objects may go so many milliseconds from now."""
        due = self._monotonic() + delay_ms / 1000
        for at in range(0, len(keys), AT_ONCE):
            part = tuple(keys[at : at + AT_ONCE])
            heapq.heappush(self._due, (due, next(self._numbers), part))

    def names(self) -> frozenset[str]:
        """Objects that wait, and those that are being removed."""
        waiting = (key for _, _, part in self._due for key in part)
        return frozenset(waiting) | frozenset(self._leaving)

    def take(self) -> tuple[str, ...]:
        """Objects that are due; none when none is."""
        if not self._due or self._due[0][0] > self._monotonic():
            return ()
        self._leaving = heapq.heappop(self._due)[2]
        return self._leaving

    def remove(self, keys: tuple[str, ...]) -> None:
        """Has the store remove them. Blocks. StoreError: put them back."""
        self._store.delete(keys)
        self.removed_objects += len(keys)
