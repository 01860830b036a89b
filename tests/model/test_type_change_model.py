"""`message.timestamp.type` changed on a live log: search and retention go by what readers see.

The model is a list: the times as readers see them, those of the broker where it stamped. Search is
held to "the smallest offset whose time is at least T", retention by record time to the largest
times of the segments, before and after a restart.
"""

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.compression import Codec
from storage.env import Env
from storage.log.lifecycle import learn_times, plan_retention
from storage.log.log import Log
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import append, open_log, records_of, reopened

START = 1_700_000_000_000
RETENTION = 50_000
KINDS = st.sampled_from(["CreateTime", "LogAppendTime"])
SKEWS = st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=4)
CODECS = st.sampled_from([Codec.NONE, Codec.GZIP])
STEP = st.one_of(
    st.tuples(st.just("type"), KINDS),
    st.tuples(st.just("append"), SKEWS, CODECS),
    st.tuples(st.just("advance"), st.integers(0, 30_000)),
    st.tuples(st.just("restart")),
)


class Life:
    """A log, its clock, and the list."""

    def __init__(self) -> None:
        self.clock = SimClock(START)
        self.env = Env(self.clock, SimFileSystem(clock=self.clock), SeededRng())
        self.log: Log = open_log(
            self.env,
            segment_bytes=300,
            index_interval_bytes=100,
            retention_ms=RETENTION,
            horolog_retention_clock="record",
        )
        self.seen: list[int] = []

    def do(self, verb: str, *what: Any) -> None:
        if verb == "type":
            self.log.reconfigure(replace(self.log.config, message_timestamp_type=what[0]))
        elif verb == "append":
            now = self.clock.now_ms()
            times = [now + skew for skew in what[0]]
            stamps = self.log.config.message_timestamp_type == "LogAppendTime"
            result = append(self.log, *times, codec=what[1])
            assert result.log_append_time_ms == (now if stamps else -1)
            self.seen += [now] * len(times) if stamps else times
        elif verb == "advance":
            self.clock.advance(what[0])
        else:
            self.log = reopened(self.log, self.env)

    def check(self) -> None:
        log, seen = self.log, self.seen
        assert [record.timestamp for record in records_of(log)] == seen
        for wanted in {0, *seen, *(time + 1 for time in seen)}:
            expected = next(((t, n) for n, t in enumerate(seen) if t >= wanted), None)
            found = log.search.first_at_or_after(wanted, below=len(seen))
            assert (None if found is None else (found.timestamp, found.offset)) == expected
        self._check_retention()

    def _check_retention(self) -> None:
        assert learn_times(self.log, 1000)
        segments = self.log.snapshot.segments
        ends = [*(segment.base_offset for segment in segments[1:]), len(self.seen)]
        plan = plan_retention(self.log, self.clock.now_ms())
        leaving = 0
        for segment, end in zip(segments, ends, strict=True):
            times = self.seen[segment.base_offset : end]
            if not times or self.clock.now_ms() - max(times) <= RETENTION:
                break
            leaving += 1
        assert len(plan.leaving) == leaving


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=20))
def test_search_and_retention_across_changes(steps: list[tuple[Any, ...]]) -> None:
    life = Life()
    for verb, *what in steps:
        life.do(verb, *what)
    life.check()
