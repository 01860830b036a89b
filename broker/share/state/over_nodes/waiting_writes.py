"""Changes of one share partition that wait for the request before them: they go as one."""

from collections.abc import Callable

from broker.runtime.deferred import Deferred
from broker.share.state.coordinator import ShareChange
from broker.share.state.merge import merge

MOST_BATCHES = 1000
"""In one request of what waited."""


class WaitingWrites:
    """Changes of one leader, in their order."""

    def __init__(self, change: ShareChange) -> None:
        """The first one."""
        self._changes = [change]
        self._answers: list[Deferred[None]] = []
        self._size = len(change.batches)
        self.is_open = True
        """False once they are on their way."""

    def takes(self, change: ShareChange) -> bool:
        """True for a change that may go with them."""
        first = self._changes[0]
        epochs = change.state_epoch, change.leader_epoch
        fits = self._size + len(change.batches) <= MOST_BATCHES
        return self.is_open and fits and epochs == (first.state_epoch, first.leader_epoch)

    def add(self, change: ShareChange) -> None:
        """One more, which `takes` has said may go with them."""
        self._changes.append(change)
        self._size += len(change.batches)

    def answer(self) -> Deferred[None]:
        """The result of the change that was added last."""
        answer: Deferred[None] = Deferred()
        self._answers.append(answer)
        return answer

    def closed(self) -> ShareChange:
        """All of them as one: the last start and count, of each offset the highest state."""
        self.is_open = False
        last = self._changes[-1]
        if len(self._changes) == 1:
            return last
        batches = [each for change in self._changes for each in change.batches]
        return last._replace(batches=merge((), batches, last.start_offset))

    def settle(self, settle: Callable[[Deferred[None]], None]) -> None:
        """Each of the answers has the outcome."""
        for each in self._answers:
            settle(each)
