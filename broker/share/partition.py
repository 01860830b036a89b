"""A share partition: one group's records of one partition, as a pure machine (KIP-932).

Events come in, states change in memory at once, and what is to be stored comes out as a
`StateWrite`; the owner stores it and says `written` or `failed`. Locks run in a `LockTimer`, whose
owner says `lock_ended`. Used from the event loop only; nothing here waits, reads or writes.
"""

from collections.abc import Iterable, Sequence

from broker.share.acknowledge import AcknowledgedPart, Acknowledgement
from broker.share.acquire import Acquired, Acquisition, Ask, Fetched, bounds_of
from broker.share.states import (
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    LIMIT,
    AcquisitionLock,
    LetterWrite,
    LockTimer,
    RetryWait,
    Run,
    ShareRules,
    StateBatch,
    StateWrite,
    released,
)
from broker.share.waits.backoff import Backoff
from broker.share.waits.delayed import DelayedRecords
from broker.share.window import Change, InFlightBatch, InFlightWindow, archived


class SharePartition:
    """The records of a partition that a group has not finished, and who holds which."""

    def __init__(self, start: int, timer: LockTimer, rules: ShareRules) -> None:
        """Nothing is finished from offset `start` on. The owner replaces `rules` at any time."""
        self.window = InFlightWindow(start)
        self.rules = rules
        self._timer = timer
        self._waits: set[RetryWait] = set()
        self.delayed: DelayedRecords | None = None
        """Records by the time at which they are due; None in a group without delay."""
        self.letters: list[LetterWrite] = []
        """Ends of records that wait for their dead letters; the owner takes them over."""
        self._unwritten: set[LetterWrite] = set()
        self.lost = 0
        """Number of offsets that the log lost while they waited for their time."""

    @property
    def start(self) -> int:
        """The first offset that is not finished (SPSO)."""
        return self.window.start

    @property
    def is_waiting(self) -> bool:
        """True while there are records that nobody gets yet."""
        return bool(self._waits)

    def next_fetch(self) -> int | None:
        """The offset to read from for the next acquisition; None when no more may be acquired, or
        nothing is due.
        """
        window = self.window
        if self.delayed is not None:
            return self.delayed.next_free()
        offset = window.next_fetch()
        if offset <= window.end or window.in_flight < self.rules.max_record_locks:
            return offset
        return None

    def acquire(self, member: str, fetched: Fetched, ask: Ask) -> list[Acquired]:
        """Gives a member records that were read. What it gets is its own until its lock ends."""
        window = self.window
        self._leave_out_what_is_gone(fetched)
        last, most = bounds_of(window, fetched, ask, self.rules)
        lock = AcquisitionLock(member, window.end, window.start)
        acquisition = Acquisition(window, fetched, ask, lock)
        first = max(fetched.batches[0][0], window.start)
        if self.delayed is not None:
            acquisition.run_parts(self.delayed.spans(fetched.batches), ask, self.rules)
        elif most > 0 and first <= last:
            acquisition.run(first, last, most, self.rules.delivery_count_limit)
        acquisition.withdraw(fetched.aborted)
        window.advance()
        self._begin(lock, acquisition.got)
        return acquisition.got

    def acknowledge(self, member: str, segments: Sequence[AcknowledgedPart]) -> StateWrite | None:
        """Takes in what a member says of its records: all of it, or nothing (KafkaError). None when
        there is nothing to store.
        """
        change = Acknowledgement(self.window, member, self.rules)
        change.compute(segments)
        change.publish()
        self._begin_waits(change.backoff)
        self._post(change.letters)
        change.write.finished = self._finished()
        if change.renewed.held:
            self._timer.start(change.renewed)
        for lock in change.left:
            if not lock.held:
                self._timer.stop(lock)
        return self._begun(change.write) if change.write.batches else None

    def release(self, member: str) -> StateWrite | None:
        """Takes back all that a member holds, as its session ends."""
        window, write, letters = self.window, StateWrite(self.start), self._letters()

        def back(run: Run) -> Run:
            lock = run.lock
            if run.state != ACQUIRED or lock is None or lock.member != member:
                return run
            state = self._freed(run)
            if letters is not None and state == ARCHIVED and run.last >= self.start:
                return letters.give_up(run, LIMIT, counts=True)
            write.held.append((lock, run.last - run.first + 1))
            return Run(run.first, run.last, state, run.deliveries, lock, write)

        changed = self._change(window.first, window.end, back)
        self._post(letters)
        self._note(write, changed)
        if write.batches:
            return self._begun(write)
        self.written(write)
        return None

    def lock_ended(self, lock: AcquisitionLock) -> StateWrite | None:
        """Takes back what a lock still holds. That stands, whatever becomes of the write."""
        write, backoff = StateWrite(self.start), Backoff(self.rules)
        letters = self._letters()
        lock.ended = True

        def back(run: Run) -> Run:
            if run.state != ACQUIRED or run.lock is not lock:
                return run
            return self._ended(run, backoff, letters)

        changed = self._change(lock.first, lock.last, back)
        self._post(letters)
        self._note(write, changed)
        write.done = True
        self._begin_waits(backoff)
        self.window.advance()
        return write if write.batches else None

    def wait_over(self, wait: RetryWait) -> None:
        """Makes records free that waited for their next delivery."""
        wait.is_over = True
        self._waits.discard(wait)

        def free(run: Run) -> Run:
            return run._replace(wait=None) if run.wait is wait else run

        self._change(wait.first, wait.last, free)

    def written(self, write: StateWrite) -> None:
        """A change is durable."""
        write.done = True
        if self.delayed is not None:
            self.delayed.write_ends(write)
        for lock, count in write.held:
            lock.held -= count
            if not lock.held and not lock.ended:
                self._timer.stop(lock)
        for batch in write.batches:
            if batch.state == AVAILABLE:
                self.window.became_free(batch.first, batch.last)
            elif self.delayed is not None:
                self.window.join_finished(batch.first, batch.last)
        write.held = []  # runs keep the write until they change once more
        self.window.advance()

    def lettered(self, write: LetterWrite) -> None:
        """The dead letters of a write are durable: it is to be stored as of now."""
        self._unwritten.discard(write)
        write.start_offset = self.start
        write.finished = self._finished()
        write.batches = [each for each in write.batches if each.last >= self.start]

    def failed(self, write: StateWrite) -> None:
        """A change could not be stored: its records are locked as before it, or free if their lock
        ended since. One with dead letters stays under way, to be stored again.
        """
        if isinstance(write, LetterWrite):
            self._unwritten.add(write)
            return
        if write.done or not write.batches:
            return
        if self.delayed is not None:
            self.delayed.write_ends(write)
        backoff, letters = Backoff(self.rules), self._letters()

        def undone(run: Run) -> Run:
            if run.write is not write:
                return run
            lock = run.lock
            assert lock is not None
            if lock.ended:
                return self._ended(run, backoff, letters)
            return Run(run.first, run.last, ACQUIRED, run.deliveries, lock)

        self._change(self.window.first, self.window.end, undone)
        self._post(letters)
        write.done = True
        self._begin_waits(backoff)
        self.window.advance()

    def log_starts_at(self, offset: int) -> bool:
        """The log has lost what is below an offset. True when that moved the start, which is stored
        with the next change. What a member holds there stays its own; nothing comes of it.
        """
        if offset <= self.start:
            return False
        if self.delayed is not None:
            self.lost += self.delayed.log_starts_at(offset)
        self.window.cut(offset)
        self.window.advance()
        return True

    def starts(self) -> StateWrite:
        """Makes the write of a start that was chosen, so that a restart does not choose another."""
        write = StateWrite(self.start)
        write.finished = self._finished()
        write.done = True
        return write

    def restore(self, batches: Iterable[StateBatch]) -> None:
        """Takes in the stored states from the start on, in order and apart from each other. What
        is between them was never finished, and is as new: with a delay it is taken in again from
        the log. ValueError when they overlap.
        """
        window = self.window
        at = window.start
        for each in batches:
            if each.first < at or each.last < each.first:
                raise ValueError(f"stored states {each.first}-{each.last} after offset {at - 1}")
            window.append(_one_run(each))
            if each.state == AVAILABLE:
                window.became_free(each.first, each.last)
            at = each.last + 1
        if self.delayed is None:
            self._fill()
        window.advance()

    def delay(self, now_ms: int) -> None:
        """From now on records come at their time: what is not finished is taken in once more, from
        the start on, but for what members have had.
        """
        self.delayed = DelayedRecords(self.window, now_ms)
        self.window.forget_new()

    def no_delay(self) -> None:
        """From now on records come at once; those that wait are as new."""
        self.delayed = None
        self._fill()

    def _fill(self) -> None:
        """Takes in as new what is between the states."""
        window = self.window
        window.freed = None
        for first, last in list(window.holes(window.start, window.end)):
            window.insert(_one_run(StateBatch(first, last, AVAILABLE, 0)))
        window.became_free(window.start, window.end)

    def _leave_out_what_is_gone(self, fetched: Fetched) -> None:
        """Finishes records that compaction took: the log has nothing from the offset read to
        the first batch.
        """
        window, first = self.window, fetched.batches[0][0]
        if fetched.at < first:
            window.change(fetched.at, first - 1, lambda run: archived(run) if run.is_free else run)
        if self.delayed is None and fetched.at <= window.next_new < first:
            if window.in_flight:
                gone = StateBatch(window.next_new, first - 1, ARCHIVED, 0)
                window.append(_one_run(gone))
            else:
                window.cut(first)

    def _begin(self, lock: AcquisitionLock, got: Sequence[Acquired]) -> None:
        if got:
            lock.first, lock.last = got[0].first, got[-1].last
            lock.held = sum(each.last - each.first + 1 for each in got)
            self._timer.start(lock)

    def _begun(self, write: StateWrite) -> StateWrite:
        if self.delayed is not None:
            self.delayed.write_begins(write)
        return write

    def _begin_waits(self, backoff: Backoff) -> None:
        self._waits.update(backoff.begin(self._timer))

    def _letters(self) -> LetterWrite | None:
        return LetterWrite(self.start) if self.rules.letters else None

    def _post(self, letters: LetterWrite | None) -> None:
        if letters is not None and letters.batches:
            self.letters.append(letters)
            self._unwritten.add(letters)

    def _finished(self) -> int:
        """Number of finished offsets, without those that wait for their dead letters."""
        waiting = (each for write in self._unwritten for each in write.batches)
        start = self.start
        return self.window.finished - sum(
            each.last - max(each.first, start) + 1 for each in waiting if each.last >= start
        )

    def _ended(self, run: Run, backoff: Backoff, letters: LetterWrite | None) -> Run:
        """A run whose lock ended; its write, if there is one, failed."""
        state = self._freed(run)
        wait = None
        if letters is not None and state == ARCHIVED and run.last >= self.start:
            return letters.give_up(run, LIMIT, counts=False)
        if state == AVAILABLE:
            wait = backoff.of(run.first, run.last, run.deliveries)
        return Run(run.first, run.last, state, run.deliveries, wait=wait)

    def _freed(self, run: Run) -> int:
        """The state of a run that nobody holds any more; what the log has lost is given up."""
        if run.last < self.start:
            return ARCHIVED
        return released(run, self.rules.delivery_count_limit)

    def _change(self, first: int, last: int, change: Change) -> list[Run]:
        """Changes both sides of the start: no run reaches over it."""
        window = self.window
        below = window.change(first, min(last, self.start - 1), change)
        return below + window.change(max(first, self.start), last, change)

    def _note(self, write: StateWrite, changed: Iterable[Run]) -> None:
        """Notes changed runs in a write; what is below the start needs no storing."""
        write.batches = [
            StateBatch(run.first, run.last, run.state, run.deliveries)
            for run in changed
            if run.last >= self.start and not isinstance(run.write, LetterWrite)
        ]
        write.finished = self._finished()


def _one_run(batch: StateBatch) -> InFlightBatch:
    run = Run(batch.first, batch.last, batch.state, batch.deliveries)
    return InFlightBatch(batch.first, batch.last, [run])
