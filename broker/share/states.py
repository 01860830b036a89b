"""States of records in a share partition, and the values that the rooms of it exchange.

Rules: KIP-932. A record is AVAILABLE, then ACQUIRED by a member until its lock ends, and in the
end ACKNOWLEDGED or ARCHIVED. Numbers are Kafka's of `DeliveryState`; ACQUIRED is never written.
"""

from typing import Final, NamedTuple, Protocol

from broker.runtime.deadlines import Deadline

AVAILABLE: Final = 0
ACQUIRED: Final = 1
ACKNOWLEDGED: Final = 2
ARCHIVED: Final = 4
WRITTEN_STATES: Final = frozenset((AVAILABLE, ACKNOWLEDGED, ARCHIVED))


class AcquisitionLock:
    """Records that one member acquired at one time: its own until the deadline."""

    __slots__ = ("deadline", "ended", "first", "held", "last", "member", "since_ms", "until_ms")

    def __init__(self, member: str, first: int, last: int) -> None:
        """Holds nothing yet; all that it will ever hold is between the two offsets."""
        self.member = member
        self.first = first
        self.last = last
        self.held = 0
        """Number of offsets whose acknowledgement is not durable yet."""
        self.since_ms = self.until_ms = 0
        """Begin and end by the wall clock of its begin, for those who look."""
        self.ended = False
        self.deadline = Deadline()


class RetryWait:
    """Records that nobody gets before a time, between two deliveries."""

    __slots__ = ("deadline", "first", "is_over", "last", "since_ms", "until_ms")

    def __init__(self, first: int, last: int) -> None:
        """All records that wait for it are between the two offsets."""
        self.first = first
        self.last = last
        self.is_over = False
        self.since_ms = self.until_ms = 0
        """As of a lock."""
        self.deadline = Deadline()


class LockTimer(Protocol):
    """Ends locks in time, and waits: calls back once, unless the lock was stopped before."""

    def start(self, lock: AcquisitionLock) -> None:
        """The lock ends after the group's lock duration from now on."""

    def stop(self, lock: AcquisitionLock) -> None:
        """The lock holds nothing any more."""

    def start_wait(self, wait: RetryWait, wait_ms: int) -> None:
        """The wait is over in so many ms."""


class StateBatch(NamedTuple):
    """State and delivery count of a range of offsets, both ends included, as it is stored."""

    first: int
    last: int
    state: int
    deliveries: int


class StateWrite:
    """A change of a share partition that is to be stored: Kafka's ShareUpdate without its epochs.

    `start_offset` is the start of before this change, `finished` the number of finished offsets
    from there on, this change included (DeliveryCompleteCount).
    """

    __slots__ = ("batches", "done", "finished", "held", "start_offset")

    def __init__(self, start_offset: int) -> None:
        """Without changes, and under way."""
        self.start_offset = start_offset
        self.finished = 0
        self.batches: list[StateBatch] = []
        self.held: list[tuple[AcquisitionLock, int]] = []
        """Locks, and of each the number of offsets that it loses when this is durable."""
        self.done = False
        """True once it is durable, or was undone, or when nothing waits for it."""


class GivenUp(NamedTuple):
    """Neighbouring offsets, both ends included, that are given up, and why: "rejected", "limit"."""

    first: int
    last: int
    deliveries: int
    reason: str
    member: str


class LetterWrite(StateWrite):
    """The end of records of which a dead letter is to be durable before this is stored.

    Until it is stored nobody gets them, and they are not finished. It is never undone.
    """

    __slots__ = ("letters",)

    def __init__(self, start_offset: int) -> None:
        """Without changes, and under way."""
        super().__init__(start_offset)
        self.letters: list[GivenUp] = []

    def give_up(self, run: "Run", reason: str, *, counts: bool) -> "Run":
        """The run, given up. `counts`: its lock holds it until this is durable."""
        lock = run.lock
        member = "" if lock is None else lock.member
        self.letters.append(GivenUp(run.first, run.last, run.deliveries, reason, member))
        self.batches.append(StateBatch(run.first, run.last, ARCHIVED, run.deliveries))
        if counts and lock is not None:
            self.held.append((lock, run.last - run.first + 1))
        return Run(run.first, run.last, ARCHIVED, run.deliveries, lock, self)


REJECTED, LIMIT = "rejected", "limit"
"""Reasons for which a record is given up."""


class Run(NamedTuple):
    """Neighbouring offsets, both ends included, of one state, count, lock and write.

    With a `write` that is not done the state is what it will be; the lock is that of before. With a
    `wait` that is not over nobody gets them yet.
    """

    first: int
    last: int
    state: int
    deliveries: int
    lock: AcquisitionLock | None = None
    write: StateWrite | None = None
    wait: RetryWait | None = None

    @property
    def is_pending(self) -> bool:
        """True while the change to this state is not durable."""
        return self.write is not None and not self.write.done

    @property
    def is_free(self) -> bool:
        """True when a member may acquire it."""
        if self.state != AVAILABLE or self.is_pending:
            return False
        return self.wait is None or self.wait.is_over

    @property
    def is_finished(self) -> bool:
        """True when it is delivered or given up for good, durably."""
        return self.state >= ACKNOWLEDGED and not self.is_pending


class ShareRules(NamedTuple):
    """Settings of a group that bind its share partitions."""

    delivery_count_limit: int = 5
    max_record_locks: int = 2000
    retry_backoff_ms: int = 0
    retry_backoff_max_ms: int = 60_000
    max_pending: int = 1_000_000
    letters: bool = False
    """Of a record that is given up a dead letter is written first."""


def released(run: Run, limit: int) -> int:
    """The state of a record that nobody holds any more, after `run.deliveries` deliveries."""
    return ARCHIVED if run.deliveries >= limit else AVAILABLE
