"""Answers that a small request can make large: made piece by piece, in bounded memory and time.

A handler gives the pieces of its answer as a generator: items, and None wherever it may rest. What
takes no longer than `AT_ONCE_SECONDS` is answered at once; a longer one goes on in turns of that
length between which others are served, one such answer at a time, and ends when its client goes; it
is encoded on a thread. What an item takes is asked of its `AnswerRoom` before it is made: beyond
`MOST_BYTES` it is refused with POLICY_VIOLATION (44), and so is every later one. Items that are
asked for twice are answered once: `asked_once`. Used from the event loop only.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from broker.runtime.deferred import Deferred, LongAnswer
from broker.runtime.memory_account import ENTRY_BYTES
from protocol.errors import ErrorCode, KafkaError

MOST_BYTES = 32 * 1024 * 1024
AT_ONCE_SECONDS = 0.002

I = TypeVar("I")  # noqa: E741 - an item
R = TypeVar("R")


class AnswerRoom:
    """Memory that an answer under way may still take."""

    __slots__ = ("most_bytes", "taken_bytes")

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        """Nothing is taken."""
        self.most_bytes = most_bytes
        self.taken_bytes = 0

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
        self._turn = asyncio.Lock()
        self._room: AnswerRoom | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.long: int = 0
        """Answers that took longer than at once."""

    @property
    def under_way_bytes(self) -> int:
        """Memory of the long answer under way, in bytes. From any thread."""
        room = self._room
        return 0 if room is None else min(room.taken_bytes, room.most_bytes)

    def make(self, pieces: Pieces[I], respond: Callable[[list[I]], R]) -> R | Deferred[R]:
        """The answer that `respond` makes of all items, at once or later."""
        room = AnswerRoom(self._most_bytes)
        rest, items = pieces(room), list[I]()
        if self._advance(rest, items):
            return respond(items)
        self.long += 1
        answer: Deferred[R] = LongAnswer()
        task = asyncio.get_running_loop().create_task(
            self._go_on(answer, room, rest, items, respond)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        answer.when_abandoned(lambda: _end(task))
        return answer

    async def _go_on(
        self,
        answer: Deferred[R],
        room: AnswerRoom,
        rest: Iterator[I | None],
        items: list[I],
        respond: Callable[[list[I]], R],
    ) -> None:
        try:
            async with self._turn:
                self._room = room
                try:
                    await asyncio.sleep(0)
                    while not self._advance(rest, items):  # noqa: ASYNC110 - others' turn
                        await asyncio.sleep(0)
                    made = respond(items)
                finally:
                    self._room = None
        except Exception as error:  # noqa: BLE001 - handed on
            answer.fail(error)
        else:
            answer.resolve(made)

    def _advance(self, rest: Iterator[I | None], items: list[I]) -> bool:
        """Takes pieces for a while; whether there are no more."""
        until = self._monotonic() + AT_ONCE_SECONDS
        for each in rest:
            if each is not None:
                items.append(each)
            if self._monotonic() >= until:
                return False
        return True


def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
