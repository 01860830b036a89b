"""Histories of a share partition, each step compared with `share_model`: members fetch, acknowledge
and go, locks and waits end, writes fail, the log is compacted and cut, the broker dies.

`ShareHistory(seed).play()` raises AssertionError with what is wrong.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from broker.share.acknowledge import AcknowledgedPart
from broker.share.acquire import Ask, Fetched, Range
from broker.share.partition import SharePartition
from broker.share.states import (
    ACQUIRED,
    ARCHIVED,
    AcquisitionLock,
    LetterWrite,
    ShareRules,
    StateWrite,
)
from protocol.errors import KafkaError
from tests.support.histories.share_model import Disk, ShareModel
from tests.support.histories.share_timer import ByHand

MEMBERS = ("a", "b", "c")
STEPS = 40
MOST_ROUNDS = 300


class Waiting(NamedTuple):
    """A write under way, and whether its acknowledgement is answered when it is durable."""

    write: StateWrite
    accepted: frozenset[int]


class ShareHistory:
    """One partition through several lives."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        limit = self.dice.choice((2, 3, 5))
        most, backoff_ms = self.dice.choice((5, 20, 2000)), self.dice.choice((0, 0, 10))
        self.rules = ShareRules(limit, most, backoff_ms, self.dice.choice((15, 1000)),
                                letters=self.dice.random() < 0.4)  # fmt: skip
        self.log: list[Range] = []
        self.log_start = self.log_end = 0
        self.aborted: set[int] = set()
        self.promised: set[int] = set()
        """Offsets whose acceptance was answered."""
        self.sent: set[int] = set()
        """Offsets of which a dead letter is durable."""
        self.skipped: set[int] = set()
        """Offsets that a member said to be no records."""
        self.disk = Disk()
        self.waiting: list[Waiting] = []
        self.steps: list[Callable[[], None]] = [
            *[self.append] * 3, *[self.fetch] * 6, *[self.acknowledge] * 6, *[self.write_ends] * 5,
            *[self.lock_ends] * 2, self.session_ends, self.log_starts, self.compacts, self.dies,
            *[self.time_passes] * (3 if self.rules.retry_backoff_ms else 0),
            *[self.letter_is_written] * (4 if self.rules.letters else 0),
        ]  # fmt: skip
        self._begin()

    def _begin(self) -> None:
        self.timer = ByHand()
        self.lettering: list[LetterWrite] = []
        self.model = ShareModel(self.disk, self.rules)
        self.real = SharePartition(self.disk.start, self.timer, self.rules)
        self.real.restore(self.disk.batches())

    def play(self) -> None:
        """All steps, then everybody accepts what is left."""
        for _ in range(STEPS):
            self._step(self.dice.choice(self.steps))
        self.drain()

    def _step(self, step: Callable[[], None]) -> None:
        before = self.real.start
        step()
        if step != self.dies:
            assert self.real.start >= before, "the start went back"
        self._check()

    def _check(self) -> None:
        window = self.real.window
        self.model.compare(window)
        assert window.run_count == sum(len(batch.runs) for batch in window.batches)
        for at, record in self.model.records.items():
            assert record.state != ACQUIRED or record.lock in self.timer.running, f"{at} for ever"
            is_open = not record.is_final and at >= self.real.start
            assert not (is_open and at in self.promised), f"{at} came back"

    def append(self) -> None:
        for _ in range(self.dice.randint(1, 3)):
            base = self.log_end + (self.dice.random() < 0.1) * self.dice.randint(1, 4)
            self.log_end = base + self.dice.choice((1, 1, 2, 5, 12))
            self.log.append((base, self.log_end - 1))
            if self.dice.random() < 0.1:
                self.aborted.update(range(base, self.log_end))

    def fetch(self) -> None:
        at = self.real.next_fetch()
        if at is None:
            assert self.model.end - self.model.start + 1 >= self.rules.max_record_locks
            return
        ask = Ask(self.dice.choice((1, 3, 10, 500)), self.dice.choice((1, 4, 500)),
                  by_record=self.dice.random() < 0.3)  # fmt: skip
        self._fetch(at, self.dice.choice(MEMBERS), ask)

    def _fetch(self, at: int, member: str, ask: Ask) -> bool:
        """True when the member got something or the partition came on."""
        if at < self.log_start:
            self._log_starts()
            return True
        read = [batch for batch in self.log if batch[1] >= at][: self.dice.randint(1, 4)]
        if not read:
            return False
        aborted = tuple(batch for batch in read if batch[0] in self.aborted)
        got = self.real.acquire(member, Fetched(at, read, aborted), ask)
        self.model.gone(at, read[0][0] - 1)
        self.model.withdrawn(self.real.window, (at for at in self.aborted if at <= read[-1][1]))
        self.model.acquired(got, {at for first, last in aborted for at in range(first, last + 1)})
        if ask.by_record:
            self.model.taken_in(self.real.window)
        self.model.learn_locks(self.real.window, member)
        self.model.advance()
        count = sum(part.last - part.first + 1 for part in got)
        assert count <= ask.max_records or not ask.by_record
        assert got or aborted or at < read[0][0] or self.real.next_fetch() != at, "nothing came"
        return True

    def acknowledge(self) -> None:
        """Mostly what a member holds, sometimes more than that."""
        member = self.dice.choice(MEMBERS)
        held = [at for at in self.model.records if self.model.is_held_by(member, at)]
        if not held:
            return
        some = sorted(self.dice.sample(held, self.dice.randint(1, len(held))))
        if self.dice.random() < 0.2:
            some = sorted({*some, self.dice.randint(max(some[0] - 3, 0), some[-1] + 3)})
        self._say(
            member,
            [AcknowledgedPart(at, at, self.dice.choice((0, 1, 1, 2, 2, 3, 4))) for at in some],
        )

    def _say(self, member: str, segments: list[AcknowledgedPart]) -> None:
        segments = self._joined(segments)
        may = self.model.may_acknowledge(member, segments)
        try:
            write = self.real.acknowledge(member, segments)
        except KafkaError:
            assert not may, "refused"
            return
        assert may, "let pass"
        self.model.acknowledged(segments, write)
        self.skipped.update(
            at for each in segments if not each.type for at in range(each.first, each.last + 1)
        )
        self._take_letters()
        self.model.learn_locks(self.real.window, member)
        if write is not None:
            accepted = [
                range(each.first, each.last + 1)
                for each in segments
                if each.type == 1 or (each.type == 3 and not self.rules.letters)
            ]
            self._wait_for(write, frozenset(at for each in accepted for at in each))

    def _joined(self, segments: list[AcknowledgedPart]) -> list[AcknowledgedPart]:
        """Some neighbours of one type as one segment."""
        joined: list[AcknowledgedPart] = []
        for each in segments:
            last = joined[-1] if joined else None
            if last and (last.last + 1, last.type) == each[::2] and self.dice.random() < 0.7:
                joined[-1] = last._replace(last=each.last)
            else:
                joined.append(each)
        return joined

    def _wait_for(self, write: StateWrite, accepted: frozenset[int] = frozenset()) -> None:
        finished = self.model.finished(self.lettering)
        assert write.finished == finished, "DeliveryCompleteCount"
        assert write.start_offset == self.model.start
        self.waiting.append(Waiting(write, accepted))

    def write_ends(self) -> None:
        """Writes end in order; one that fails may be on the disk all the same."""
        if not self.waiting:
            return
        write, accepted = self.waiting.pop(0)
        fails = self.dice.random() < 0.15
        if not fails or self.dice.random() < 0.3:
            self._reaches_disk(write)
        if fails and isinstance(write, LetterWrite):
            self.real.failed(write)
            self.lettering.append(write)
        elif fails:
            self.real.failed(write)
            self.model.failed(write)
            self._take_letters()
        else:
            self.real.written(write)
            self.model.written(write)
            self.promised |= accepted
        self.model.advance()

    def _reaches_disk(self, write: StateWrite) -> None:
        """No end of a record without its letter, where letters are written."""
        ends = {at for each in write.batches if each.state == ARCHIVED
                for at in range(each.first, each.last + 1)}  # fmt: skip
        if isinstance(write, LetterWrite):
            assert ends <= self.sent, f"no letters of {ends - self.sent}"
        elif self.rules.letters:
            assert ends <= self.skipped, f"{ends - self.skipped} ended without letters"
        self.disk.take(write)

    def _take_letters(self) -> None:
        self.model.take_letters(self.real.letters)
        self.lettering += self.real.letters
        self.real.letters.clear()

    def letter_is_written(self) -> None:
        """Then the end of its records may be stored. One that failed comes again."""
        if not self.lettering or self.dice.random() < 0.3:
            return
        write = self.lettering.pop(self.dice.randrange(len(self.lettering)))
        letters = {at for each in write.letters for at in range(each.first, each.last + 1)}
        self.sent |= letters
        self.real.lettered(write)
        self._wait_for(write, frozenset(letters))

    def lock_ends(self) -> None:
        if not self.timer.running:
            return
        lock = self.dice.choice(list(self.timer.running))
        self.timer.stop(lock)
        write = self.real.lock_ended(lock)
        self.model.taken_back(lock, None, None)
        self._take_letters()
        if write is not None:
            self._wait_for(write)
        self.model.advance()

    def time_passes(self) -> None:
        """Some waits are over."""
        self._pass_ms(self.dice.choice((1, 9, 10, 40)))

    def _pass_ms(self, ms: int) -> None:
        self.timer.now_ms += ms
        self.model.now_ms += ms
        for wait in self.timer.over():
            self.real.wait_over(wait)

    def session_ends(self) -> None:
        member = self.dice.choice(MEMBERS)
        write = self.real.release(member)
        self.model.taken_back(None, member, write)
        self._take_letters()
        if write is not None:
            self._wait_for(write)
        self.model.advance()

    def log_starts(self) -> None:
        """Retention or DeleteRecords takes batches away."""
        if self.log and self.dice.random() < 0.5:
            self.log = self.log[self.dice.randint(1, 3) :]
            self.log_start = self.log[0][0] if self.log else self.log_end
            self._log_starts()

    def _log_starts(self) -> None:
        moved = self.real.log_starts_at(self.log_start)
        assert moved == (self.log_start > self.model.start)
        self.model.log_starts_at(self.log_start)

    def compacts(self) -> None:
        """A whole batch goes; the newest stays."""
        if len(self.log) > 2:
            self.log.pop(self.dice.randrange(1, len(self.log) - 1))

    def dies(self) -> None:
        """Writes under way are on the disk, or not."""
        for write, _ in self.waiting:
            if self.dice.random() < 0.5:
                self._reaches_disk(write)
        self.waiting.clear()
        self._begin()

    def drain(self) -> None:
        """Everybody accepts all: in the end each record that the log has is finished."""
        self.append()
        for _ in range(MOST_ROUNDS):
            self._accept_all()
            self._pass_ms(self.rules.retry_backoff_ms)
            at = self.real.next_fetch()
            came_on = at is not None and self._fetch(at, "a", Ask(500, 500))
            if not (came_on or self.timer.running or self.timer.waits or self.waiting):
                break
        assert self.real.start == self.log_end, f"{self.real.start} of {self.log_end}"

    def _accept_all(self) -> None:
        while self.waiting or self.lettering:
            self._step(self.write_ends)
            self._step(self.letter_is_written)
        for member in MEMBERS:
            held = [at for at in sorted(self.model.records) if self.model.is_held_by(member, at)]
            self._say(member, [AcknowledgedPart(at, at, 1) for at in held])
        while self.waiting or self.lettering:
            self._step(self.write_ends)
            self._step(self.letter_is_written)
        for lock in [each for each in self.timer.running if self._is_below(each)]:
            self._end(lock)

    def _is_below(self, lock: AcquisitionLock) -> bool:
        """True for a lock of which only records are left that the log has lost."""
        records = self.model.records.items()
        return all(at < self.real.start for at, record in records if record.lock is lock)

    def _end(self, lock: AcquisitionLock) -> None:
        """The end of a lock that holds nothing of use."""
        self.timer.stop(lock)
        write = self.real.lock_ended(lock)
        self.model.taken_back(lock, None, None)
        self._take_letters()
        self.model.advance()
        assert write is None
