"""Changes of the states of partitions that a share group reads: of one group one at a time.

States that are made for a first read and starts that are set would undo each other: who comes
second waits for the end of the first, however that ends. Used from the event loop only.
"""

from collections.abc import Callable
from typing import TypeVar

from broker.groups.share.group import ShareGroup
from broker.runtime.callbacks import failed
from broker.runtime.deferred import Deferred, hand_on, refused

T = TypeVar("T")
Done = Callable[[], None]
Start = Callable[[], Deferred[T]]


class StateRounds:
    """StateRounds of all groups."""

    def __init__(self) -> None:
        """No round is under way."""
        self._waiting: dict[ShareGroup, list[Done]] = {}

    def is_under_way(self, share: ShareGroup) -> bool:
        """True while states of the group change."""
        return share in self._waiting

    def when_done(self, share: ShareGroup, done: Done) -> None:
        """Calls `done` at the end of the round that is under way."""
        self._waiting[share].append(done)

    def begin(self, share: ShareGroup) -> None:
        """Begins a round: none is under way."""
        assert share not in self._waiting
        self._waiting[share] = []

    def end(self, share: ShareGroup) -> None:
        """Ends the round: who waited goes on, in order, and may begin the next one."""
        for done in self._waiting.pop(share):
            try:
                done()
            except Exception as error:  # noqa: BLE001 - the others wait too
                failed("answer", error)

    def alone(self, share: ShareGroup, start: Start[T]) -> Deferred[T]:
        """A round of its own, once no other is under way; `start` gives its outcome."""
        answer: Deferred[T] = Deferred()

        def go() -> None:
            if self.is_under_way(share):
                self.when_done(share, go)
                return
            self.begin(share)
            try:
                outcome = start()
            except Exception as error:  # noqa: BLE001 - handed on
                outcome = refused(error)
            outcome.listen(over)

        def over(value: T | None, error: BaseException | None) -> None:
            self.end(share)
            hand_on(answer, value, error)

        go()
        return answer
