"""A response that comes later, without a coroutine and without a task.

A handler that must wait (an fsync, new data for a long poll) returns a `Deferred` at once and
resolves it from the event loop when the answer is known. Its one listener (the connection) is then
called synchronously, so that answers which become ready together leave in one write. Rules: it is
settled once, from the loop's thread only; settling after `abandon` is allowed and does nothing.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from broker.runtime.callbacks import failed

T = TypeVar("T")

Listener = Callable[[T | None, BaseException | None], None]


class Deferred(Generic[T]):
    """A value of type T, or an error, that is not known yet."""

    __slots__ = (
        "_abandoned",
        "_error",
        "_listener",
        "_on_abandon",
        "_on_hurry",
        "_value",
        "is_urgent",
        "settled",
    )

    is_long: ClassVar[bool] = False
    """True for values that may take long to encode, so that this is done apart from the loop."""
    keeps_order: ClassVar[bool] = False
    """True when no later request of its connection is handled before this has its value."""

    def __init__(self) -> None:
        """Nothing known, nobody listening."""
        self.settled = False
        self.is_urgent = False
        """Set when a later answer waits for this one: no more waiting for a better one."""
        self._value: T | None = None
        self._error: BaseException | None = None
        self._listener: Listener[T] | None = None
        self._on_abandon: Callable[[], None] | None = None
        self._on_hurry: Callable[[], None] | None = None
        self._abandoned = False

    def resolve(self, value: T) -> None:
        """The answer is known; the listener hears it before this returns, and fails by itself."""
        self._settle(value, None)

    def fail(self, error: BaseException) -> None:
        """There will be no answer: the connection closes and the error is logged."""
        self._settle(None, error)

    def listen(self, listener: Listener[T]) -> None:
        """Sets the one listener; called with (value, error), at once when already settled."""
        assert self._listener is None, "a deferred has one listener"
        if not self.settled:
            self._listener = listener
            return
        value, error = self._value, self._error
        self._listener, self._value, self._error = _heard, None, None
        self._on_abandon = self._on_hurry = None
        listener(value, error)

    @property
    def abandoned(self) -> bool:
        """True when the answer is not wanted any more."""
        return self._abandoned

    def when_abandoned(self, callback: Callable[[], None]) -> None:
        """Sets the callback for a peer that goes away first (to leave the waiting list, for
        example).
        """
        self._on_abandon = callback

    def when_hurried(self, callback: Callable[[], None]) -> None:
        """Sets the callback for `hurry` while this waits longer than it would have to."""
        self._on_hurry = callback

    def hurry(self) -> None:
        """Settle this with what there is, if it waits for more out of courtesy; else nothing."""
        if self.settled or self.is_urgent:
            return
        self.is_urgent = True
        if self._on_hurry is not None:
            self._on_hurry()

    def abandon(self) -> None:
        """Nobody wants the answer any more; a later settling is ignored."""
        self._abandoned = True
        self._listener = None
        if not self.settled and self._on_abandon is not None:
            self._on_abandon()

    def _settle(self, value: T | None, error: BaseException | None) -> None:
        if self._abandoned:
            return
        assert not self.settled, "a deferred is settled once"
        self.settled = True
        listener = self._listener
        if listener is None:
            self._value, self._error = value, error
            return
        self._listener = _heard  # lets go of everything: nothing waits for the collector
        self._on_abandon = self._on_hurry = None
        try:
            listener(value, error)
        except Exception as fault:  # noqa: BLE001 - who settles this has others to settle
            failed("answer", fault)


def resolved(value: T) -> Deferred[T]:
    """A value that is known already."""
    known: Deferred[T] = Deferred()
    known.resolve(value)
    return known


def refused(error: BaseException) -> Deferred[Any]:
    """An error that is known already."""
    known: Deferred[Any] = Deferred()
    known.fail(error)
    return known


def hand_on(answer: Deferred[T], value: T | None, error: BaseException | None) -> None:
    """Settles `answer` as what it listens to was settled: `listen(partial(hand_on, answer))`."""
    if error is None:
        answer.resolve(value)  # type: ignore[arg-type]
    else:
        answer.fail(error)


def _heard(value: object, error: BaseException | None) -> None:
    """Stands for a listener that was called."""


class LongAnswer(Deferred[T]):
    """An answer that may be large."""

    __slots__ = ()

    is_long: ClassVar[bool] = True


class OrderedAnswer(LongAnswer[T]):
    """An answer to a change that takes turns with others: no later one may overtake it.

    Kafka handles one request of a connection at a time.
    """

    __slots__ = ()

    keeps_order: ClassVar[bool] = True
