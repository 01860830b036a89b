"""The life of a partition again, with hypothesis as its author: what fails comes back small."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.runtime.event_log import journal
from protocol.records.compression import Codec
from tests.support.histories.log_author import AT_BIRTH, CHOICES, CLOCK_STEPS, INT64_MAX, YEAR_MS
from tests.support.histories.log_history import Identity, LogHistory
from tests.support.histories.log_twins import NOW

births = st.fixed_dictionaries(
    {name: st.sampled_from(values) for name, values in (CHOICES | AT_BIRTH).items()}
)
changes = st.sampled_from(list(CHOICES)).flatmap(
    lambda name: st.fixed_dictionaries({name: st.sampled_from(CHOICES[name])})
)
offsets = st.sampled_from((0, 0, -1, 1, -5000, 5000, 30 * YEAR_MS, -30 * YEAR_MS))
literal = st.sampled_from((-1, -1, 0, 5, NOW // 1000, NOW * 1000, INT64_MAX, -2))


class LogMachine(RuleBasedStateMachine):
    """Every rule is one thing that happens to a partition; the comparison follows each."""

    history: LogHistory

    @initialize(settings=births)
    def begin(self, settings: dict[str, Any]) -> None:
        self.history = LogHistory(**settings)
        self.next = {1: 0, 2: 2**31 - 2}

    @property
    def is_alive(self) -> bool:
        return not self.history.is_over

    @precondition(lambda self: self.is_alive)
    @rule(
        times=st.lists(st.tuples(offsets, st.none() | literal), min_size=1, max_size=4),
        codec=st.sampled_from(list(Codec)),
        size=st.sampled_from((0, 10, 200)),
        keyless=st.booleans(),
        acks_all=st.booleans(),
        producer=st.sampled_from((None, None, 1, 2)),
        gap=st.sampled_from((0, 0, 0, 0, 1, -1)),
    )
    def append(  # noqa: PLR0917 - hypothesis gives them by name
        self,
        times: list[tuple[int, int | None]],
        codec: Codec,
        size: int,
        keyless: bool,
        acks_all: bool,
        producer: int | None,
        gap: int,
    ) -> None:
        now_ms = self.history.clock.now_ms()
        wanted = [now_ms + ahead if at is None else at for ahead, at in times]
        row = [at if abs(at - wanted[0]) < INT64_MAX else wanted[0] for at in wanted]
        identity: Identity | None = None
        if producer is not None:
            first = (self.next[producer] + gap) % 2**31
            identity = producer, 0, first
            self.next[producer] = (first + len(row)) % 2**31
        self.history.append(
            row,
            codec=codec,
            size=size,
            keyless=(0,) if keyless else (),
            identity=identity,
            acks_all=acks_all,
        )

    @precondition(lambda self: self.is_alive)
    @rule(change=changes)
    def alter(self, change: dict[str, Any]) -> None:
        self.history.alter(**change)

    @precondition(lambda self: self.is_alive)
    @rule(ms=st.sampled_from((1, 99, 1500, 20_000, 3_600_000)))
    def wait(self, ms: int) -> None:
        self.history.wait(ms)

    @precondition(lambda self: self.is_alive)
    @rule(ms=st.sampled_from((*CLOCK_STEPS, *(-each for each in CLOCK_STEPS), -900)))
    def step_clock(self, ms: int) -> None:
        self.history.step_clock(ms)

    @precondition(lambda self: self.is_alive)
    @rule(share=st.floats(-0.1, 1.1))
    def delete_records(self, share: float) -> None:
        self.history.delete_records(int(self.history.model.end * share))

    @precondition(lambda self: self.is_alive)
    @rule(what=st.sampled_from(("sync", "retain", "tick", "checkpoint", "restart", "kill")))
    def do(self, what: str) -> None:
        getattr(self.history, what)()

    @precondition(lambda self: self.is_alive)
    @rule(seed=st.integers(0, 10**6))
    def cut_power(self, seed: int) -> None:
        self.history.cut_power(seed)

    @precondition(lambda self: self.is_alive)
    @rule()
    def look_at_everything(self) -> None:
        self.history.check_all()

    @invariant()
    def both_say_the_same(self) -> None:
        if hasattr(self, "history") and self.is_alive:
            self.history.check((0, NOW, self.history.clock.now_ms()))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """A step of the clock is an event; here there are thousands."""
    threshold, journal.threshold = journal.threshold, 100
    yield
    journal.threshold = threshold


TestLog = LogMachine.TestCase
TestLog.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
