"""Commits of a fleet, as partitions ask for them: durable is what the catalog has.

This disk is synced all the same, in the background: a node that comes back need not fetch what it
has, and closed segments go to the store from here.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from broker.fleet.committer import NotCommitted
from broker.fleet.host import OwnedLog, WriteCommits
from broker.fleet.pacing import FleetClock
from broker.partitions.commit import CommitPort, Done
from broker.runtime.callbacks import failed
from protocol.errors import ErrorCode, KafkaError
from storage.log.log import Log

TOO_LATE = "The catalog has not committed it in time; it may do so yet"

Later = Callable[[float, Callable[[], None]], object]
"""Calls something after some seconds."""


class _Served(NamedTuple):
    """A log in service, and who commits it."""

    log: OwnedLog
    commits: WriteCommits


class _Waiter:
    """One write that waits; answered once."""

    __slots__ = ("_done", "due", "is_answered")

    def __init__(self, done: Done, due: float) -> None:
        """`due`: monotonic seconds at which it is answered in any case."""
        self._done = done
        self.due = due
        self.is_answered = False

    def answer(self, error: BaseException | None) -> None:
        """The first answer counts."""
        if self.is_answered:
            return
        self.is_answered = True
        self._done(_on_the_wire(error))


class FleetCommit:
    """The `CommitPort` of a node of a fleet. Used from the event loop."""

    def __init__(
        self, local: CommitPort, clock: FleetClock, later: Later, wait_seconds: float
    ) -> None:
        """Nothing is served. `local` syncs this disk.

        A write that is not committed after `wait_seconds` is answered with REQUEST_TIMED_OUT; it
        may still be committed, as with any time-out.
        """
        self._local = local
        self._clock = clock
        self._later = later
        self._wait_seconds = wait_seconds
        self._served: dict[Log, _Served] = {}
        self._waiting: deque[_Waiter] = deque()
        self._is_watching = False

    def serve(self, log: Log, owned: OwnedLog, commits: WriteCommits) -> None:
        """Writes of this log are committed from now on."""
        self._served[log] = _Served(owned, commits)

    def end(self, log: Log, owned: OwnedLog) -> None:
        """No longer, unless it is served again meanwhile. Its committer answers who waits."""
        served = self._served.get(log)
        if served is not None and served.log is owned:
            del self._served[log]

    def request(self, log: Log, offset: int, done: Done) -> None:
        """As the port has it. NOT_LEADER_OR_FOLLOWER (6), REQUEST_TIMED_OUT (7)."""
        served = self._served.get(log)
        if log.durable_offset >= offset:
            done(None)
        elif served is None:
            done(_not_here())
        else:
            self._local.written(log, 0)
            served.commits.request(served.log, offset, self._waiter(done).answer)

    def written(self, log: Log, size_bytes: int, *, interval: bool = True) -> bool:
        """As the port has it."""
        served = self._served.get(log)
        if served is not None:
            served.commits.appended(served.log)
        return self._local.written(log, size_bytes, interval=interval)

    def start_moved(self, log: Log, done: Done) -> None:
        """As the port has it. NOT_LEADER_OR_FOLLOWER (6), REQUEST_TIMED_OUT (7)."""
        served = self._served.get(log)
        if served is None:
            done(_not_here())
        else:
            served.commits.start_moved(served.log, self._waiter(done).answer)

    @property
    def waiting_writes(self) -> int:
        """Writes that wait for a commit; about, and from any thread."""
        return sum(not each.is_answered for each in tuple(self._waiting))

    def forget(self, log: Log) -> None:
        """As the port has it."""
        self._local.forget(log)

    def _waiter(self, done: Done) -> _Waiter:
        waiter = _Waiter(done, self._clock.monotonic() + self._wait_seconds)
        self._drop_answered()
        self._waiting.append(waiter)
        self._watch()
        return waiter

    def _watch(self) -> None:
        """One timer for all that wait: they are due in the order in which they came."""
        if not self._is_watching:
            self._is_watching = True
            rest = self._waiting[0].due - self._clock.monotonic()
            self._later(max(rest, 0.0), self._look)

    def _look(self) -> None:
        self._is_watching = False
        waiting, now = self._waiting, self._clock.monotonic()
        while waiting and waiting[0].due <= now:
            self._answer_late(waiting.popleft())
        self._drop_answered()
        if waiting:
            self._watch()

    def _drop_answered(self) -> None:
        while self._waiting and self._waiting[0].is_answered:
            self._waiting.popleft()

    def _answer_late(self, waiter: _Waiter) -> None:
        try:
            waiter.answer(KafkaError(ErrorCode.REQUEST_TIMED_OUT, TOO_LATE))
        except Exception as fault:  # noqa: BLE001 - others wait, too
            failed("fleet_commit", fault)


def _on_the_wire(error: BaseException | None) -> BaseException | None:
    return _not_here() if isinstance(error, NotCommitted) else error


def _not_here() -> KafkaError:
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "The partition has another leader by now")
