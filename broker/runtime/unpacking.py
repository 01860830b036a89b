"""Unpacking of packed batches, so that a small one that unpacks to much delays no other client.

The packed size says little: 2 KB may unpack to 64 MiB. So each batch is tried with a bound on its
unpacked size, and continues where there is more time when it needs more:

- at once, on the loop: sizes in proportion to the packed size; more than that, up to about 1 MiB,
  only while unpacking has taken less than half of the loop's recent time;
- on a lane: up to 8 MiB;
- as the only one on the lanes: up to what its request may take. The next is of another connection,
  if one waits, so that none stands behind all of another's.

A connection has sixteen batches on the lanes at once; its others wait for these, and leave the
lanes to the work of others in between.

A request unpacks 64 MiB and walks a million records in all, and as much more as it is large itself.
Each frame, member or block of a packed batch after the first takes as long as 2 KiB, and counts so.
"""

from asyncio import Future
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from protocol.errors import ErrorCode, KafkaError
from storage.validation.unpacking import PART_BYTES, TooMuchWork, Work

T = TypeVar("T")

MIB = 1024 * 1024
REQUEST_BYTES, REQUEST_RECORDS = 64 * MIB, 1_000_000
RATIO = 16
"""Bytes that each byte sent may always unpack to; each also allows for a record."""
AT_ONCE_LEAST_BYTES, AT_ONCE_BYTES, AT_ONCE_RECORDS = 16 * 1024, MIB + MIB // 8, 100_000
LANE_BYTES = 8 * MIB
OF_A_CONNECTION = 16
"""Batches of one connection that are on the lanes, or wait to be the only one there. With fewer
the lanes stand still now and then: a search in 1,000 partitions took a seventh longer with 4."""
LOOP_SHARE, LOOP_BURST_SECONDS = 0.5, 0.01

Attempt = Callable[[Work], T]


class RequestBudget:
    """Rest of what one request may unpack. `owner`: the connection that sent it."""

    __slots__ = ("bytes_left", "owner", "records_left")

    def __init__(self, owner: int = 0) -> None:
        """A whole one."""
        self.owner = owner
        self.bytes_left = REQUEST_BYTES
        self.records_left = REQUEST_RECORDS

    def admit(self, size_bytes: int) -> None:
        """Packed bytes of the request: they allow for more."""
        self.bytes_left += RATIO * size_bytes
        self.records_left += size_bytes

    def work(self, most_bytes: int, most_records: int = 1 << 31) -> Work:
        """As much of it as one attempt may take."""
        most = min(most_bytes, self.bytes_left), min(most_records, self.records_left)
        return Work(*most, 1 + most_bytes // PART_BYTES)

    def spend(self, given: tuple[int, int], work: Work) -> None:
        """Takes off the budget what an attempt used of what it was `given`."""
        self.bytes_left -= given[0] - work.bytes_left
        self.records_left -= given[1] - work.records_left

    def is_more_than(self, given: tuple[int, int]) -> bool:
        """True when another attempt may take more than that one."""
        return self.bytes_left > given[0] or self.records_left > given[1]


class Lane(Protocol):
    """Threads of a log directory."""

    def run(self, work: Callable[..., T], *args: object) -> "Future[T]":
        """Runs it there."""


class Unpacking:
    """The attempts of one log directory. Used from the event loop only."""

    __slots__ = (
        "_credit",
        "_is_busy",
        "_lane",
        "_looked_at",
        "_monotonic",
        "_of_owner",
        "_queues",
        "_under_way",
        "_waiting",
    )

    def __init__(self, lane: Lane, monotonic: Callable[[], float]) -> None:
        """Nothing was unpacked."""
        self._lane = lane
        self._monotonic = monotonic
        self._credit = LOOP_BURST_SECONDS
        self._looked_at = monotonic()
        self._queues: dict[int, deque[Callable[[], None]]] = {}
        self._is_busy = False
        self._of_owner: Counter[int] = Counter()
        self._waiting: dict[int, deque[Callable[[], None]]] = {}
        self._under_way: set[tuple[int, Work]] = set()

    @property
    def under_way_bytes(self) -> int:
        """Bytes that the attempts on the lanes have unpacked so far; from any thread."""
        return sum(given - work.bytes_left for given, work in tuple(self._under_way))

    def at_once(self, size_bytes: int, budget: RequestBudget, attempt: Attempt[T]) -> T:
        """Try it on the loop, a batch of that packed size; TooMuchWork when it needs a lane."""
        began = self._monotonic()
        self._credit = min(
            LOOP_BURST_SECONDS, self._credit + LOOP_SHARE * (began - self._looked_at)
        )
        self._looked_at = began
        small = AT_ONCE_LEAST_BYTES + RATIO * size_bytes
        most = AT_ONCE_BYTES if self._credit > 0 else min(small, AT_ONCE_BYTES)
        work = budget.work(most, AT_ONCE_RECORDS)
        given = (work.bytes_left, work.records_left)
        try:
            return attempt(work)
        finally:
            budget.spend(given, work)
            if given[0] - work.bytes_left > small:
                self._credit -= self._monotonic() - began

    def on_lane(
        self, budget: RequestBudget, attempt: Attempt[T], done: "Callable[[Future[T]], None]"
    ) -> None:
        """Try it on a lane, and alone if it needs more; `done` gets the future of the last try.

        That one has TooMuchWork for what the request may not take.
        """
        owner = budget.owner

        def over(future: "Future[T]") -> None:
            try:
                self._left(owner)
            finally:
                done(future)

        def begin() -> None:
            self._try(budget, LANE_BYTES, attempt, over, None)

        if self._of_owner[owner] >= OF_A_CONNECTION:
            self._waiting.setdefault(owner, deque()).append(begin)
            return
        self._of_owner[owner] += 1
        begin()

    def _left(self, owner: int) -> None:
        """One of the connection's batches is done: its next one has the place."""
        waiting = self._waiting.get(owner)
        if waiting is None:
            self._of_owner[owner] -= 1
            if not self._of_owner[owner]:
                del self._of_owner[owner]
            return
        begin = waiting.popleft()
        if not waiting:
            del self._waiting[owner]
        begin()

    def _try(
        self,
        budget: RequestBudget,
        most_bytes: int,
        attempt: Attempt[T],
        done: "Callable[[Future[T]], None]",
        over: Callable[[], None] | None,
    ) -> None:
        work = budget.work(most_bytes)
        given = (work.bytes_left, work.records_left)
        under_way = (work.bytes_left, work)
        self._under_way.add(under_way)

        def tried(future: "Future[T]") -> None:
            self._under_way.discard(under_way)
            budget.spend(given, work)
            if over is not None:
                over()
            elif _was_too_much(future) and budget.is_more_than(given):
                self.alone(budget, attempt, done)
                return
            done(future)

        self._lane.run(attempt, work).add_done_callback(tried)

    def alone(
        self, budget: RequestBudget, attempt: Attempt[T], done: "Callable[[Future[T]], None]"
    ) -> None:
        """Try it on a lane, while nothing else that is large is unpacked."""

        def begin() -> None:
            self._try(budget, 1 << 62, attempt, done, self._over)

        self._queues.setdefault(budget.owner, deque()).append(begin)
        self._begin_next()

    def _over(self) -> None:
        self._is_busy = False
        self._begin_next()

    def _begin_next(self) -> None:
        """The connection whose turn it is goes behind the others afterwards."""
        if self._is_busy or not self._queues:
            return
        self._is_busy = True
        owner = next(iter(self._queues))
        queue = self._queues.pop(owner)
        begin = queue.popleft()
        if queue:
            self._queues[owner] = queue
        begin()


def too_much_of_a_request(code: ErrorCode) -> KafkaError:
    """The error for a client whose request would take more than its budget."""
    return KafkaError(
        code,
        f"The records of the request unpack to more than {REQUEST_BYTES} bytes and {RATIO} for "
        f"each byte sent, or to more than {REQUEST_RECORDS} records: ask for less in one request",
    )


def _was_too_much(future: "Future[Any]") -> bool:
    return not future.cancelled() and isinstance(future.exception(), TooMuchWork)
