"""Acknowledgements: what a member says of records that it holds (KIP-932).

All of a partition's ranges count, or none: the new runs are computed first and published when every
range was found good. One pass over ranges and runs, for a range may name each offset's type.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from broker.share.states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    LIMIT,
    REJECTED,
    AcquisitionLock,
    LetterWrite,
    Run,
    ShareRules,
    StateBatch,
    StateWrite,
    released,
)
from broker.share.waits.backoff import Backoff
from broker.share.window import InFlightBatch, InFlightWindow
from protocol.errors import ErrorCode, KafkaError

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
TYPES: Final = frozenset((GAP, ACCEPT, RELEASE, REJECT))
TYPES_WITH_RENEWAL: Final = TYPES | {RENEW}


class AcknowledgedRange(Protocol):
    """A range of an acknowledgement on the wire: one type for all offsets, or one for each."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]


class AcknowledgedPart(NamedTuple):
    """Neighbouring offsets, both ends included, that are acknowledged in one way."""

    first: int
    last: int
    type: int


def segments_of(ranges: Iterable[AcknowledgedRange], *, may_renew: bool) -> list[AcknowledgedPart]:
    """The ranges of one partition by type, in order. KafkaError INVALID_REQUEST when they overlap,
    go back, or their types do not fit; INVALID_RECORD_STATE when one begins where another ends.
    Renewals need a request that announces them.
    """
    known = TYPES_WITH_RENEWAL if may_renew else TYPES
    found: list[AcknowledgedPart] = []
    end = -1
    for each in ranges:
        types = each.acknowledge_types
        if 0 <= end == each.first_offset:  # as Kafka 4.3: the first range has finished it
            raise _not_held(f"offset {end} is named twice")
        if not end < each.first_offset <= each.last_offset:
            raise _invalid(f"range {each.first_offset}-{each.last_offset} follows offset {end}")
        if not types or (1 < len(types) != each.last_offset - each.first_offset + 1):
            raise _invalid(f"{len(types)} types for {each.first_offset}-{each.last_offset}")
        if not known.issuperset(types):
            raise _invalid(f"unknown type among those of {each.first_offset}-{each.last_offset}")
        end = each.last_offset
        if len(types) == 1:
            found.append(AcknowledgedPart(each.first_offset, end, types[0]))
        else:
            found += _by_type(each.first_offset, types)
    return found


def _by_type(first: int, types: Sequence[int]) -> Iterable[AcknowledgedPart]:
    last, kind = first, types[0]
    for offset, each in enumerate(types[1:], first + 1):
        if each != kind:
            yield AcknowledgedPart(first, last, kind)
            first, kind = offset, each
        last = offset
    yield AcknowledgedPart(first, last, kind)


class Acknowledgement:
    """A member's acknowledgement of a window; nothing is changed before `publish`."""

    def __init__(self, window: InFlightWindow, member: str, rules: ShareRules) -> None:
        """Nothing is computed."""
        self.backoff = Backoff(rules)
        """Waits of what is released."""
        self.write = StateWrite(window.start)
        self.renewed = AcquisitionLock(member, window.end, window.start)
        """Holds what is renewed."""
        self._window = window
        self._member = member
        self._limit = rules.delivery_count_limit
        self.letters = LetterWrite(window.start) if rules.letters else None
        """The end of what is given up, where dead letters are written."""
        self._edits: list[tuple[InFlightBatch, list[Run]]] = []
        self._finishing = 0
        self._taken: list[tuple[AcquisitionLock, int]] = []
        """Locks from which records went over to the renewed one."""

    def compute(self, segments: Sequence[AcknowledgedPart]) -> None:
        """Finds the new runs. KafkaError INVALID_RECORD_STATE for what the member does not hold,
        INVALID_REQUEST for what was never delivered.
        """
        waiting = [_from(each, self._window.start) for each in segments]
        waiting = [each for each in waiting if each.first <= each.last]
        if not waiting:
            return
        if waiting[-1].last > self._window.end:
            raise self._beyond(waiting[-1])
        waiting.reverse()
        first, last = waiting[-1].first, waiting[0].last
        for batch in self._window.between(first, last):
            self._edits.append((batch, self._new_runs(batch, waiting)))
        if waiting:
            raise _not_in_flight(waiting[-1])
        write = self.write
        write.batches = [
            StateBatch(run.first, run.last, run.state, run.deliveries)
            for _, runs in self._edits
            for run in runs
            if run.write is write
        ]
        write.finished = self._window.finished + self._finishing

    def publish(self) -> None:
        """Makes the change the window's."""
        for batch, runs in self._edits:
            self._window.set_runs(batch, runs)
        self._window.finished += self._finishing
        for lock, count in self._taken:
            lock.held -= count
            self.renewed.held += count

    @property
    def left(self) -> list[AcquisitionLock]:
        """Locks that hold less now, since records were renewed."""
        return [lock for lock, _ in self._taken]

    def _new_runs(self, batch: InFlightBatch, waiting: list[AcknowledgedPart]) -> list[Run]:
        """The runs of a batch after the segments, which are taken from the end of the list."""
        runs: list[Run] = []
        for run in batch.runs:
            if not waiting or waiting[-1].first > run.last:
                runs.append(run)
            elif waiting[-1].first < run.first:
                raise _not_in_flight(waiting[-1])
            else:
                self._check(run)
                self._split(run, waiting, runs)
        return runs

    def _split(self, run: Run, waiting: list[AcknowledgedPart], runs: list[Run]) -> None:
        """Cuts a run that the member holds along the segments."""
        at, end, count, lock = run.first, run.last, run.deliveries, run.lock
        states = (ARCHIVED, ACKNOWLEDGED, released(run, self._limit), ARCHIVED)
        write, acknowledged = self.write, 0
        while waiting and waiting[-1].first <= end:
            first, last, kind = waiting.pop()
            if at < first:
                runs.append(Run(at, first - 1, ACQUIRED, count, lock))
            if last > end:
                waiting.append(AcknowledgedPart(end + 1, last, kind))
                last = end
            at = last + 1
            if kind == RENEW:
                runs.append(self._renew(run, first, last))
                continue
            state = states[kind]
            if state == ARCHIVED and kind != GAP and self.letters is not None:
                reason = REJECTED if kind == REJECT else LIMIT
                part = Run(first, last, ACQUIRED, count, lock)
                runs.append(self.letters.give_up(part, reason, counts=True))
                self._finishing += at - first
                continue
            acknowledged += at - first
            if state:
                self._finishing += at - first
            wait = self.backoff.of(first, last, count) if state == AVAILABLE else None
            runs.append(Run(first, last, state, count, lock, write, wait))
        if at <= end:
            runs.append(Run(at, end, ACQUIRED, count, lock))
        if acknowledged:
            assert lock is not None
            write.held.append((lock, acknowledged))

    def _renew(self, run: Run, first: int, last: int) -> Run:
        assert run.lock is not None
        self._taken.append((run.lock, last - first + 1))
        self.renewed.first = min(self.renewed.first, first)
        self.renewed.last = max(self.renewed.last, last)
        return Run(first, last, ACQUIRED, run.deliveries, self.renewed)

    def _check(self, run: Run) -> None:
        if run.state != ACQUIRED:
            how = "are being acknowledged" if run.is_pending else "are not acquired"
            raise _not_held(f"offsets {run.first}-{run.last} {how}")
        assert run.lock is not None
        if run.lock.member != self._member:
            raise _not_held(f"another member holds offsets {run.first}-{run.last}")

    def _beyond(self, segment: AcknowledgedPart) -> KafkaError:
        """The error for offsets behind the window's end."""
        what = f"offsets up to {segment.last}, the last that was delivered is {self._window.end}"
        return _invalid(what) if self._window.in_flight else _not_held(what)


def _from(segment: AcknowledgedPart, start: int) -> AcknowledgedPart:
    """The part that is not finished yet; what is below the window's start is done with."""
    return segment if segment.first >= start else segment._replace(first=start)


def _not_in_flight(segment: AcknowledgedPart) -> KafkaError:
    """The error for offsets that wait for their time."""
    return _not_held(f"offset {segment.first} was not delivered")


def _invalid(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"acknowledgement: {what}")


def _not_held(what: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD_STATE, f"acknowledgement: {what}")
