"""Changes of share partitions that are in memory, but not durable yet, in their order.

Each is made of the one before. When one cannot be written, those behind it that are not refused are
made once more of what is left, as Kafka's coordinators go back to what was written last.
"""

from collections.abc import Callable
from typing import Final

from broker.share.state.key import ShareKey
from broker.share.state.remembered import SharePartitionState

ALWAYS: Final = 2**31 - 1
"""Number of updates behind which the next change is a snapshot, whatever the setting."""

Remembered = SharePartitionState | None
"""State of a share partition; None while nothing is remembered of it."""
Apply = Callable[[Remembered], Remembered]
"""The state that a change makes of the one before."""


class PendingChange:
    """A change under way."""

    __slots__ = ("apply", "is_whole", "is_written", "key", "state")

    def __init__(self, key: ShareKey, state: Remembered, apply: Apply, *, is_whole: bool) -> None:
        """`is_whole`: what is written of it is all of the state, not what was changed."""
        self.key = key
        self.state = state
        self.apply = apply
        self.is_whole = is_whole
        self.is_written = False


class Unwritten:
    """All of them. Used from the event loop only."""

    def __init__(self, states: dict[ShareKey, SharePartitionState]) -> None:
        """`states` are kept as the changes make them."""
        self._states = states
        self._durable: dict[ShareKey, Remembered] = {}
        self._changes: dict[ShareKey, list[PendingChange]] = {}

    def add(self, change: PendingChange) -> None:
        """It is in memory from now on."""
        key = change.key
        if key not in self._changes:
            self._durable[key] = self._states.get(key)
            self._changes[key] = []
        self._changes[key].append(change)
        self._show(key, change.state)

    def written(self, change: PendingChange) -> None:
        """It is durable."""
        change.is_written = True
        waiting = self._waiting(change)
        while waiting and waiting[0].is_written:
            self._durable[change.key] = waiting.pop(0).state
        self._settle(change.key)

    def failed(self, change: PendingChange, *, may_count: bool) -> None:
        """It could not be written, and counts no more.

        `may_count`: unless it is in the log all the same. The next change is a snapshot then, since
        an update could be made of what that one has left out.
        """
        waiting = self._waiting(change)
        if change not in waiting:
            return
        waiting.remove(change)
        state = self._durable[change.key]
        if may_count and state is not None:
            state = self._durable[change.key] = state._replace(updates=ALWAYS)
        for each in waiting:
            state = each.apply(state)
            if state is not None and each.is_whole:
                state = state._replace(updates=ALWAYS)  # what is written has the refused one in it
            each.state = state
        self._show(change.key, state)
        self._settle(change.key)

    def forget(self, is_gone: Callable[[ShareKey], bool]) -> None:
        """Another node has them: whatever becomes of the changes, nothing is shown here."""
        for key in [each for each in self._changes if is_gone(each)]:
            del self._changes[key], self._durable[key]

    def _waiting(self, change: PendingChange) -> list[PendingChange]:
        """The changes of its share partition; none of those that were forgotten."""
        return self._changes.get(change.key, [])

    def _settle(self, key: ShareKey) -> None:
        if not self._changes.get(key, True):
            del self._changes[key], self._durable[key]

    def _show(self, key: ShareKey, state: Remembered) -> None:
        if state is None:
            self._states.pop(key, None)
        else:
            self._states[key] = state
