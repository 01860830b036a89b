"""A log under retention against a plain list of records: what stays is exactly what should."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from config.topic import TopicConfig
from storage.log.lifecycle import learn_times, plan_retention, roll_deadline, roll_if_due
from storage.recovery.loading import LoadHints
from tests.support.disk.simenv import SimClock, sim_env
from tests.support.records.logs import (
    NO_BOUNDS,
    append,
    make_durable,
    open_log,
    records_of,
    reopened,
)

NOW = 1_700_000_000_000
SEGMENT_BYTES = 400
WAIT, FLOOR = 5000, 1000

limits = st.fixed_dictionaries({
    "retention_ms": st.sampled_from((-1, 100, 900, 3000)),
    "retention_bytes": st.sampled_from((-1, -1, -1, 300, 900)),
    "horolog_retention_clock": st.sampled_from(("record", "arrival", "earlier", "later")),
    "horolog_retention_min_stay_ms": st.sampled_from((0, 0, 1500)),
    "horolog_retention_before_timestamp": st.sampled_from((-1, -1, NOW + 1000, NOW + 4000)),
    "cleanup_policy": st.sampled_from((
        frozenset({"delete"}),) * 6 + (frozenset({"compact"}), frozenset(),
    )),
})  # fmt: skip


@dataclass
class Part:
    """A segment as the model knows it."""

    base: int
    records: list[int] = field(default_factory=list)  # times
    size: int = 0
    first_ms: int = 0
    last_ms: int = 0

    def judged(self, clock: str) -> int:
        newest = max(self.records)
        if clock == "record":
            return newest
        if clock == "arrival":
            return self.last_ms
        return min(newest, self.last_ms) if clock == "earlier" else max(newest, self.last_ms)


class RetentionMachine(RuleBasedStateMachine):
    """Appends, time, settings, restarts, deletions by clients, retention and the roll timer."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = SimClock(NOW)
        self.env = sim_env(clock=self.clock)
        self.settings: dict[str, Any] = {
            "retention_ms": -1,
            "segment_bytes": SEGMENT_BYTES,
            "segment_ms": WAIT,
            "horolog_roll_min_interval_ms": FLOOR,
        }
        self.log = open_log(self.env, **self.settings)
        self.parts = [Part(0)]
        self.start = 0

    @property
    def end(self) -> int:
        return self.parts[-1].base + len(self.parts[-1].records)

    @rule(offset=st.sampled_from((0, -9000, 50, 10**9)), size=st.sampled_from((0, 300, 300)))
    def append(self, offset: int, size: int) -> None:
        before = len(self.log.snapshot.segments)
        at = self.clock.now_ms() + offset
        append(self.log, at, key=b"k", value=bytes(size))
        make_durable(self.log)
        if len(self.log.snapshot.segments) > before:
            self.parts.append(Part(self.end))
        part = self.parts[-1]
        if not part.records:
            part.first_ms = self.clock.now_ms()
        part.records.append(at)
        part.size = self.log.snapshot.end_position
        part.last_ms = self.clock.now_ms()

    @rule(ms=st.sampled_from((1, 99, 1000, 3000)))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    @initialize(limits=limits)
    def begin(self, limits: dict[str, Any]) -> None:
        self.alter(limits)

    @precondition(lambda self: self.end > 9)
    @rule(limits=limits)
    def alter(self, limits: dict[str, Any]) -> None:
        self.settings |= limits
        self.log.reconfigure(TopicConfig(**{**NO_BOUNDS, **self.settings}))

    @precondition(lambda self: self.end > 5)
    @rule(share=st.floats(0, 1))
    def delete_records(self, share: float) -> None:
        offset = int(self.end * share)
        self.start = max(self.start, offset)
        assert self.log.delete_records(offset) == self.start

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        if clean:
            self.log = reopened(self.log, self.env, LoadHints(True, start_offset=self.start))
        else:
            self.log.close()
            known = LoadHints(False, start_offset=self.start)
            self.log = open_log(self.env, known, **self.settings)
        while len(self.parts) > 1 and self.parts[1].base <= self.start:
            self.parts.pop(0)

    @rule()
    def roll(self) -> None:
        part = self.parts[-1]
        rolled = roll_if_due(self.log, self.clock.now_ms())
        if not part.records:
            assert not rolled
            assert roll_deadline(self.log, self.clock.now_ms()) is None
            return
        waited_since = min(part.first_ms, part.records[0])
        due = max(waited_since + WAIT, part.first_ms + FLOOR)
        assert rolled == (self.clock.now_ms() > due)
        if rolled:
            self.parts.append(Part(self.end))

    @rule(ms=st.sampled_from((0, 100, 101, 901, 1500, 3001)))
    def retain(self, ms: int) -> None:
        self.clock.advance(ms)
        assert learn_times(self.log, 1000)
        plan = plan_retention(self.log, self.clock.now_ms())
        while self.log.remove_segments(plan.start_offset, all_go=plan.rolls_first).has_more:
            continue
        self._retain_parts()

    def _retain_parts(self) -> None:
        config, now, end = self.log.config, self.clock.now_ms(), self.end
        while len(self.parts) > 1 and self.parts[1].base <= self.start:
            self.parts.pop(0)
        if "delete" not in config.cleanup_policy:
            return
        excess = sum(part.size for part in self.parts) - config.retention_bytes
        by_size = config.retention_bytes >= 0
        while self.parts and self.parts[0].records:
            part = self.parts[0]
            if now - part.last_ms < config.horolog_retention_min_stay_ms:
                break
            at = part.judged(config.horolog_retention_clock)
            is_old = 0 <= config.retention_ms < now - at
            by_size = by_size and excess >= part.size
            excess -= part.size
            if not (by_size or is_old or at < config.horolog_retention_before_timestamp):
                break
            self.parts.pop(0)
        self.parts = self.parts or [Part(end)]
        self.start = max(self.start, self.parts[0].base)

    @invariant()
    def the_log_holds_what_the_model_holds(self) -> None:
        snapshot = self.log.snapshot
        assert (snapshot.log_start_offset, snapshot.log_end_offset) == (self.start, self.end)
        assert [s.base_offset for s in snapshot.segments] == [part.base for part in self.parts]

    @precondition(lambda self: self.end)
    @rule()
    def read_all(self) -> None:
        found = [(record.offset, record.timestamp) for record in records_of(self.log)]
        held = [
            (part.base + index, at) for part in self.parts for index, at in enumerate(part.records)
        ]
        assert found == [(offset, at) for offset, at in held if offset >= self.start]


TestRetention = RetentionMachine.TestCase
TestRetention.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
