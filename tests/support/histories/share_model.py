"""A share partition as a dictionary of records, the oracle of the real one: one entry an offset.

It says what may be acquired, what an acknowledgement answers, what is on the disk and where the
start is. Which of several free records a member gets it leaves to the real one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from broker.share.acknowledge import REJECT, RELEASE, RENEW, AcknowledgedPart
from broker.share.acquire import Acquired
from broker.share.states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    AcquisitionLock,
    LetterWrite,
    Run,
    ShareRules,
    StateBatch,
    StateWrite,
)
from broker.share.window import InFlightWindow

LETTER = LetterWrite(-1)
"""The write of what is given up, until the real partition names it."""
STATES = (ARCHIVED, ACKNOWLEDGED, AVAILABLE, ARCHIVED)
"""Wanted by gap, accept, release, reject."""


@dataclass
class Record:
    """One offset; `write` is the change that is under way, `due_ms` when it may be had again."""

    state: int = AVAILABLE
    deliveries: int = 0
    lock: AcquisitionLock | None = None
    write: StateWrite | None = None
    due_ms: int = 0

    def is_free(self, now_ms: int) -> bool:
        return self.state == AVAILABLE and self.write is None and self.due_ms <= now_ms

    @property
    def is_final(self) -> bool:
        return self.state in {ACKNOWLEDGED, ARCHIVED}


@dataclass
class Disk:
    """State left by the writes: the start; by offset count and state, the higher wins."""

    start: int = 0
    states: dict[int, tuple[int, int]] = field(default_factory=dict)

    def take(self, write: StateWrite) -> None:
        self.start = max(self.start, write.start_offset)
        for batch in write.batches:
            for offset in range(batch.first, batch.last + 1):
                state = (batch.deliveries, batch.state)
                self.states[offset] = max(self.states.get(offset, state), state)

    def batches(self) -> list[StateBatch]:
        """Each offset by itself, from the start on."""
        some = sorted(self.states.items())
        return [StateBatch(at, at, state[1], state[0]) for at, state in some if at >= self.start]


class ShareModel:
    """The records of one life of the partition."""

    def __init__(self, disk: Disk, rules: ShareRules, *, is_delayed: bool = False) -> None:
        self.disk, self.rules = disk, rules
        self.limit = rules.delivery_count_limit
        self.now_ms = 0
        self.is_delayed = is_delayed
        """Records come at their time: who owns this says which are there."""
        self.start = disk.start
        self.records: dict[int, Record] = {}
        known = [offset for offset in disk.states if offset >= self.start]
        for offset in range(self.start, max(known, default=self.start - 1) + 1):
            if is_delayed and offset not in disk.states:
                continue
            deliveries, state = disk.states.get(offset, (0, AVAILABLE))
            self.records[offset] = Record(state, deliveries)
        self.advance()

    @property
    def end(self) -> int:
        return max(self.records, default=self.start - 1)

    def advance(self) -> None:
        """The start passes what is final and durable; it goes from memory."""
        while (at := self.records.get(self.start)) and at.is_final and at.write is None:
            del self.records[self.start]
            self.start += 1
        for offset, record in list(self.records.items()):
            if offset < self.start and record.state != ACQUIRED and record.write is None:
                del self.records[offset]

    def _is_free(self, record: Record) -> bool:
        return record.is_free(self.now_ms)

    def is_free(self, offset: int) -> bool:
        """True when a member may get it."""
        return offset >= self.start and self._is_free(self.records[offset])

    def first_free(self) -> int | None:
        """The first offset that a member may get."""
        return min(filter(self.is_free, self.records), default=None)

    def next_fetch(self) -> int:
        free = self.first_free()
        return max(self.end + 1, self.start) if free is None else free

    def skipped(self, start: int, there: set[int]) -> None:
        """The start has passed offsets that the log does not have."""
        for offset in range(self.start, start):
            if offset not in self.records:
                assert offset not in there, f"{offset} is passed over"
                self.records[offset] = Record(ARCHIVED)

    def finished(self, without: Sequence[StateWrite] = ()) -> int:
        """Number of finished offsets, without those that wait for some writes."""
        return sum(
            each.is_final and each.write not in without
            for at, each in self.records.items()
            if at >= self.start
        )

    def take_letters(self, writes: Iterable[LetterWrite]) -> None:
        """Learns which write each record that is given up belongs to."""
        for write in writes:
            for each in write.letters:
                for at in range(each.first, each.last + 1):
                    record = self.records[at]
                    assert record.write is LETTER, f"{at} is given up"
                    assert each.deliveries == record.deliveries
                    assert each.reason == "rejected" or record.deliveries >= self.limit
                    record.write = write
        left = [at for at, record in self.records.items() if record.write is LETTER]
        assert not left, f"no letters of {left}"

    def gone(self, first: int, last: int) -> None:
        """The log has nothing in a range that begins where was read."""
        for offset in range(max(first, self.start), last + 1):
            record = self.records.get(offset)
            if record is None and self.is_delayed:
                continue
            if record is None and offset > self.end:
                if any(at >= self.start for at in self.records):
                    self.records[offset] = Record(ARCHIVED)
                else:
                    self.start = offset + 1
            elif record is not None and self._is_free(record):
                record.state = ARCHIVED

    def withdrawn(self, window: InFlightWindow, aborted: Iterable[int]) -> None:
        """Batches of aborted transactions may be given up in place of being acquired."""
        told = states_of(window)
        for at in sorted(aborted):
            record = self.records.get(at)
            if at < self.start or (record is not None and not self._is_free(record)):
                continue
            run = told.get(at)
            if at < window.start:
                self.records[at] = Record(ARCHIVED)
            elif run is not None and run.state == ARCHIVED:
                before = record.deliveries if record else 0
                assert before <= run.deliveries <= before + 1
                self.records[at] = Record(ARCHIVED, run.deliveries)

    def taken_in(self, window: InFlightWindow) -> None:
        """In record mode the rest of a record batch is taken in with the part that is acquired."""
        for at, run in states_of(window).items():
            if at > self.end and run.is_free and not run.deliveries:
                self.records[at] = Record()

    def learn_locks(self, window: InFlightWindow, member: str) -> None:
        """Notes the lock of each record of the member."""
        for at, run in states_of(window).items():
            record = self.records.get(at)
            if record is None or record.state != ACQUIRED or run.lock is None:
                continue
            assert record.lock in {None, run.lock} or run.lock.member == member
            record.lock = run.lock

    def acquired(self, got: Iterable[Acquired], aborted: set[int]) -> None:
        """Checks that all the member got was free or new; it holds it now."""
        before = -1
        for part in got:
            assert before < part.first <= part.last, "ranges go back"
            before = part.last
            for offset in range(part.first, part.last + 1):
                assert not self.is_delayed or offset in self.records, f"{offset} was not due"
                record = self.records.setdefault(offset, Record())
                assert offset >= self.start, f"{offset} is below the start"
                assert offset not in aborted, f"{offset} was aborted"
                assert self._is_free(record), f"{offset} is not free: {record}"
                record.deliveries += 1
                record.state = ACQUIRED
                assert record.deliveries == part.deliveries <= self.limit

    def may_acknowledge(self, member: str, segments: Iterable[AcknowledgedPart]) -> bool:
        return all(
            at < self.start or self.is_held_by(member, at)
            for segment in segments
            for at in range(segment.first, segment.last + 1)
        )

    def is_held_by(self, member: str, offset: int) -> bool:
        record = self.records.get(offset)
        if record is None or record.state != ACQUIRED or record.write is not None:
            return False
        return record.lock is not None and record.lock.member == member

    def acknowledged(self, segments: Iterable[AcknowledgedPart], write: StateWrite | None) -> None:
        for segment in segments:
            for at in range(max(segment.first, self.start), segment.last + 1):
                if segment.type != RENEW:
                    gives_up = segment.type in {RELEASE, REJECT}
                    self._change(at, STATES[segment.type], write, gives_up=gives_up)
                    self._back_off(self.records[at])

    def taken_back(
        self, lock: AcquisitionLock | None, member: str | None, write: StateWrite | None
    ) -> None:
        """By a lock's end, or (with a write that can fail) by a session's."""
        for at, record in self.records.items():
            if record.state != ACQUIRED or record.write is not None or record.lock is None:
                continue
            if record.lock is lock or record.lock.member == member:
                self._change(at, AVAILABLE, write, gives_up=True)
                if lock is not None:
                    self._back_off(record)

    def _change(self, offset: int, state: int, write: StateWrite | None, *, gives_up: bool) -> None:
        record = self.records[offset]
        record.state, record.write = self._settled(offset, record, state), write
        self._letter(offset, record, gives_up=gives_up)

    def _letter(self, offset: int, record: Record, *, gives_up: bool) -> None:
        if self.rules.letters and gives_up and offset >= self.start and record.state == ARCHIVED:
            record.write = LETTER

    def _back_off(self, record: Record) -> None:
        """After a release, and after a lock's end: not after a session's."""
        if record.state == AVAILABLE:
            wait_ms = self.rules.retry_backoff_ms * 2 ** (record.deliveries - 1)
            record.due_ms = self.now_ms + min(wait_ms, self.rules.retry_backoff_max_ms)

    def _settled(self, offset: int, record: Record, state: int) -> int:
        given_up = offset < self.start or record.deliveries >= self.limit
        return ARCHIVED if state == AVAILABLE and given_up else state

    def written(self, write: StateWrite) -> None:
        for record in self.records.values():
            if record.write is write:
                record.write = record.lock = None

    def failed(self, write: StateWrite) -> None:
        for at, record in self.records.items():
            if record.write is write:
                assert record.lock is not None
                ended = record.lock.ended
                record.write = None
                record.state = self._settled(at, record, AVAILABLE) if ended else ACQUIRED
                record.due_ms = 0
                self._back_off(record)
                self._letter(at, record, gives_up=ended)

    def log_starts_at(self, offset: int) -> None:
        self.start = max(self.start, offset)
        self.advance()

    def compare(self, window: InFlightWindow) -> None:
        """The real window says the same of every offset."""
        told = {
            at: (run.state, run.deliveries, run.is_pending)
            for at, run in states_of(window).items()
            if at >= self.start or run.state == ACQUIRED or run.is_pending
        }
        mine = {
            at: (record.state, record.deliveries, record.write is not None)
            for at, record in self.records.items()
        }
        assert told == mine, f"real {told}, model {mine}"
        real = window.start, window.finished
        assert real == (self.start, self.finished()), f"{real}, {self.start, self.finished()}"
        assert self.is_delayed or window.next_fetch() == self.next_fetch()


def states_of(window: InFlightWindow) -> dict[int, Run]:
    """The run of each offset."""
    told: dict[int, Run] = {}
    for batch in window.batches:
        for run in batch.runs:
            assert run.first <= run.last
            for at in range(run.first, run.last + 1):
                assert at not in told, f"{at} twice"
                told[at] = run
    return told
