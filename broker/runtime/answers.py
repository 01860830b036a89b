"""Answers that a small request can make large: made piece by piece, in bounded memory and time.

A handler gives the pieces of its answer as a generator: items, and None wherever it may rest or has
to wait for a task, which goes on although its client is gone. What takes no longer than
`AT_ONCE_SECONDS` is answered at once; a longer one goes on in turns of that length between which
others are served, one such answer at a time, and ends when its client goes; it is encoded on a
thread. Those that are no larger than their requests go on beside others, in turns as well. What an
item takes is asked of its `AnswerRoom` before it is made: beyond `MOST_BYTES` it is refused with
POLICY_VIOLATION (44), and so is every later one. Items that are asked for twice are answered once:
`asked_once`. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from broker.runtime.deferred import Deferred, LongAnswer, OrderedAnswer
from broker.runtime.memory_account import ENTRY_BYTES
from protocol.errors import ErrorCode, KafkaError

MOST_BYTES = 32 * 1024 * 1024
AT_ONCE_SECONDS = 0.002
MOST_BESIDE = 16  # answers no larger than their requests that are under way, in turns

I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")
W = TypeVar("W", bound="asyncio.Future[Any]")

Waited = asyncio.Future[Any]


class AnswerRoom:
    """Memory that an answer under way may still take, and what it waits for."""

    __slots__ = ("most_bytes", "taken_bytes", "waits_for")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Nothing is taken."""
        self.most_bytes = most_bytes
        self.taken_bytes = 0
        self.waits_for: Waited | None = None
        """Set before a None: no further piece is taken until this is done."""

    def take(self, entries: int, extra_bytes: int = 0) -> None:
        """Room for so many small objects and so many bytes beside; POLICY_VIOLATION (44)."""
        self.taken_bytes += entries * ENTRY_BYTES + extra_bytes
        if self.taken_bytes > self.most_bytes:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"The answer would take more than {self.most_bytes} bytes: ask for less at once",
            )


Pieces = Callable[[AnswerRoom], Iterator[I | None]]


def asked_once(items: Iterable[I], key: Callable[[I], Hashable]) -> list[I]:
    """Each item once, by its key; the first one counts."""
    found: dict[Hashable, I] = {}
    for each in items:
        found.setdefault(key(each), each)
    return list(found.values())


class Answers:
    """Makes the answers of one broker."""

    def __init__(self, monotonic: Callable[[], float], most_bytes: int = MOST_BYTES) -> None:
        """`monotonic` gives seconds; `most_bytes` is what one answer may take."""
        self._monotonic = monotonic
        self._most_bytes = most_bytes
        self._one, self._beside = asyncio.Semaphore(1), asyncio.Semaphore(MOST_BESIDE)
        self._slice = asyncio.Lock()
        self._room: AnswerRoom | None = None
        self._tasks: set[Waited] = set()
        self.long: int = 0
        """Answers that took longer than at once."""

    @property
    def under_way_bytes(self) -> int:
        """Memory of the long answer under way, in bytes. From any thread."""
        room = self._room
        return 0 if room is None else min(room.taken_bytes, room.most_bytes)

    def make(
        self, pieces: Pieces[I], respond: Callable[[list[I]], R], *, beside: bool = False,
        in_order: bool = False,
    ) -> R | Deferred[R]:  # fmt: skip
        """The answer that `respond` makes of all items, at once or later.

        `beside`: it takes about as much memory as its request, and so goes on beside others.
        `in_order`: no later request of the same connection is handled meanwhile.
        """
        room = AnswerRoom(self._most_bytes)
        making = _Making(pieces(room), room, list[I](), respond)
        if self._advance(making):
            return respond(making.items)
        self.long += 1
        answer: Deferred[R] = OrderedAnswer() if in_order else LongAnswer()
        turn = self._beside if beside else self._one
        task = self._kept(asyncio.get_running_loop().create_task(self._go_on(answer, making, turn)))
        answer.when_abandoned(lambda: _end(task))
        return answer

    async def _go_on(
        self, answer: Deferred[R], making: "_Making[I, R]", turn: asyncio.Semaphore
    ) -> None:
        try:
            while not await self._in_turn(making, turn):
                await self._wait(making.room)
            made = making.respond(making.items)
        except Exception as error:  # noqa: BLE001 - handed on
            answer.fail(error)
        else:
            answer.resolve(made)

    async def _in_turn(self, making: "_Making[I, R]", turn: asyncio.Semaphore) -> bool:
        """Takes pieces, giving way to others, to the end or a wait; True at the end."""
        async with turn:
            if turn is self._one:
                self._room = making.room
            try:
                while making.room.waits_for is None:
                    async with self._slice:
                        await asyncio.sleep(0)
                        if self._advance(making):
                            return True
            finally:
                if turn is self._one:
                    self._room = None
        return False

    async def _wait(self, room: AnswerRoom) -> None:
        """Until the task is done; its result is the affair of who named it."""
        task, room.waits_for = room.waits_for, None
        if task is not None:
            await asyncio.wait((self._kept(task),))

    def _advance(self, making: "_Making[I, R]") -> bool:
        """Takes pieces for a while; whether there are no more."""
        until = self._monotonic() + AT_ONCE_SECONDS
        for each in making.rest:
            if each is not None:
                making.items.append(each)
            if making.room.waits_for is not None or self._monotonic() >= until:
                return False
        return True

    def _kept(self, task: W) -> W:
        """Refers to a task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@dataclass(slots=True)
class _Making(Generic[I, R]):
    """An answer under way."""

    rest: Iterator[I | None]
    room: AnswerRoom
    items: list[I]
    respond: Callable[[list[I]], R]


def _end(task: Waited) -> None:
    task.cancel()
