"""Histories of a share partition whose records come at their time: those of `share_history`, and
besides records are taken in, come due in any order, and are lost while they wait.
"""

from broker.share.acquire import Ask
from broker.share.partition import SharePartition
from broker.share.states import ARCHIVED, AcquisitionLock
from broker.share.waits.delayed import TakenIn
from broker.share.waits.wheel import Due
from tests.support.histories.share_history import MEMBERS, MOST_ROUNDS, ShareHistory
from tests.support.histories.share_model import Record, ShareModel, states_of
from tests.support.histories.share_timer import ByHand

LATEST_MS = 5000
LARGEST_BATCH = 12


class DelayHistory(ShareHistory):
    """One partition of a group with a delay."""

    def __init__(self, seed: int) -> None:
        self.due: dict[int, int] = {}
        self.now_ms = 0
        super().__init__(seed)
        self.rules = self.rules._replace(max_pending=self.dice.choice((1, 30, 1000)))
        self._begin()
        self.steps += [*[self.take_in] * 5, *[self.time_passes] * 4]

    def _begin(self) -> None:
        self.timer = ByHand()
        self.lettering = []
        self.real = SharePartition(self.disk.start, self.timer, self.rules)
        self.real.delay(self.now_ms)
        self.model = ShareModel(self.disk, self.rules, is_delayed=True)
        self.timer.now_ms = self.model.now_ms = self.now_ms
        self.real.restore(self.disk.batches())

    def _check(self) -> None:
        super()._check()
        delayed, window = self.real.delayed, self.real.window
        assert delayed is not None
        cursor = max(delayed.cursor, self.real.start)
        unknown = set(range(self.real.start, cursor)) - self.model.records.keys()
        assert delayed.waiting == len(unknown)
        assert window.known == sum(at >= self.real.start for at in self.model.records)
        assert window.known - window.finished < self.rules.max_record_locks + LARGEST_BATCH
        free = self.real.next_fetch()
        assert (free is None) == (self.model.first_free() is None), "what is free is not found"
        assert free is None or self.model.is_free(free)

    def append(self) -> None:
        before = self.log_end
        super().append()
        for offset in range(before, self.log_end):
            self.due[offset] = self.dice.choice((0, self.now_ms, self.now_ms + 3)) or (
                self.now_ms + self.dice.choice((1, 7, 40, 900, LATEST_MS))
            )

    def take_in(self) -> None:
        """Some batches of the log are read, from the cursor on."""
        delayed = self.real.delayed
        assert delayed is not None
        at = delayed.next_intake(self.rules)
        if at is None:
            return
        if at < self.log_start:
            self._log_starts()
            return
        read = [batch for batch in self.log if batch[1] >= at][: self.dice.randint(1, 4)]
        batches = [TakenIn(first, last, self._later(first, last)) for first, last in read]
        delayed.take_in(at, batches, self.rules)
        self._learn()

    def _later(self, first: int, last: int) -> list[Due]:
        later: list[Due] = []
        for at in range(first, last + 1):
            due_ms = self.due[at]
            if due_ms > self.now_ms:
                if later and later[-1][::2] == (due_ms, at - 1):
                    later[-1] = later[-1]._replace(last=at)
                else:
                    later.append(Due(due_ms, at, at))
        return later

    def _learn(self) -> None:
        """The model takes in what the window did: only what is due, or what is not in the log."""
        there = {at for first, last in self.log for at in range(first, last + 1)}
        for at, run in states_of(self.real.window).items():
            if at not in self.model.records and at >= self.model.start:
                assert run.deliveries == 0
                if run.state == ARCHIVED:
                    assert at not in there, f"{at} is given up"
                    self.model.records[at] = Record(ARCHIVED)
                else:
                    assert self.due[at] <= self.now_ms, f"{at} is early"
                    self.model.records[at] = Record()
        self.model.skipped(self.real.start, there)
        self.model.advance()

    def _pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        super()._pass_ms(ms)
        delayed = self.real.delayed
        assert delayed is not None
        delayed.come_due(self.now_ms, self.rules)
        self._learn()

    def fetch(self) -> None:
        at = self.real.next_fetch()
        if at is not None:
            ask = Ask(self.dice.choice((1, 3, 10, 500)), self.dice.choice((1, 4, 500)),
                      by_record=self.dice.random() < 0.3)  # fmt: skip
            self._fetch(at, self.dice.choice(MEMBERS), ask)

    def _log_starts(self) -> None:
        delayed = self.real.delayed
        assert delayed is not None
        end = min(self.log_start, max(delayed.cursor, self.real.start))
        waited = set(range(self.real.start, end)) - self.model.records.keys()
        lost = self.real.lost
        super()._log_starts()
        assert self.real.lost - lost == len(waited)

    def drain(self) -> None:
        """Time passes, and everybody accepts all: in the end each record is finished."""
        self.append()
        self._pass_ms(LATEST_MS)
        for _ in range(2 * MOST_ROUNDS):
            self._accept_all()
            self._pass_ms(max(self.rules.retry_backoff_ms, 1))
            self._step(self.take_in)
            at = self.real.next_fetch()
            if at is not None:
                self._fetch(at, "a", Ask(500, 500))
            if self.real.start == self.log_end and not self.timer.running and not self.waiting:
                break
        assert self.real.start == self.log_end, f"{self.real.start} of {self.log_end}"

    def _end(self, lock: AcquisitionLock) -> None:
        super()._end(lock)
        self._learn()
