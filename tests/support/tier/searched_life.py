"""Lives of a log in both tiers, in which searches by every clock are compared with a full scan.

Between the questions are appends, starts, copies, segments that leave, deletions, steps of the
clock, and zone maps and side objects that are lost. The record's arrival is read from the rows,
after the first questions: those find nothing in memory that they have not brought there.
"""

import random
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from protocol.records.batch import LOG_APPEND_TIME
from protocol.records.record import read_records
from protocol.records.scan import scan_batches
from storage.errors import FileMissing
from storage.files.layout import ZONES
from storage.search.search_clock import EARLIER, SearchClock, time_of
from storage.search.segment_access import NotInMemory
from storage.segment.log_snapshot import TimestampOffset
from storage.segment.segments import index_of
from storage.tier.names import SIDE
from storage.zones.rows import Zone
from tests.support.disk.simenv import SimClock
from tests.support.records.logs import append, first_from, make_durable
from tests.support.tier.tier_world import KEYS, TierWorld

CLOCKS = (*SearchClock, EARLIER)
FAR_FUTURE_MS = 10**12

Found = tuple[int, int] | None
"""Time and offset."""


class Row(NamedTuple):
    """A record as readers see it."""

    offset: int
    time_ms: int
    is_stamped: bool


def _pair(answer: TimestampOffset | None) -> Found:
    return None if answer is None else (answer.timestamp, answer.offset)


class SearchedLife:
    """One life; `story` tells its steps, and `answers` counts what was compared."""

    def __init__(self, seed: int) -> None:
        self.dice = dice = random.Random(f"search {seed}")
        self.world = TierWorld(
            segment_bytes=dice.choice((7000, 7500, 20_000)),
            horolog_zone_bytes=dice.choice((4096, 65_536)),
            horolog_zone_ms=dice.choice((0, 1000)),
            index_interval_bytes=dice.choice((0, 100, 400)),
            message_timestamp_type=dice.choice(("CreateTime",) * 4 + ("LogAppendTime",)),
        )
        assert isinstance(self.world.env.clock, SimClock)
        self.clock: SimClock = self.world.env.clock
        self.story: list[str] = []
        self.answers = 0
        self._came_ms = self.clock.now_ms()
        self._has_times = True
        self._character = dice.choice(("late",) * 4 + ("untimed", "dirty", "negative", "shuffled"))

    def live(self) -> None:
        """Some steps, each followed by a question or by none."""
        steps: tuple[Callable[[], None], ...] = (
            self.append, self.ask, self.reopen, self.go_on_asked, self.roll, self.copy, self.drop,
            self.leave, self.delete, self.wait, self.step_back, self.lose_zones, self.lose_side,
        )  # fmt: skip
        # Where the clock goes back, the time of a file bounds no estimate.
        rare = self.dice.choice(((2, 0, 0), (0, 6, 6)))
        weights = (30, 25, 8, 10, 10, 4, 4, 5, 1, 2, *rare)
        for step in self.dice.choices(steps, weights, k=self.dice.randint(10, 30)):
            self.story.append(step.__name__)
            step()
        self.ask()

    # --- steps ---

    def append(self) -> None:
        self._has_times = self.dice.random() < 0.8
        for _ in range(self.dice.randint(1, 3)):
            times = [self._time() for _ in range(self.dice.randint(1, 4))]
            self._came_ms = self.clock.now_ms()
            append(self.world.log, *times, value=bytes(self.dice.choice((5, 5, 50, 600))))
            self.clock.advance(self.dice.choice((0, 1, 300, 2000)))

    def roll(self) -> None:
        self.world.log.roll()

    def reopen(self) -> None:
        make_durable(self.world.log)
        self.world.reopen()

    def go_on_asked(self) -> None:
        """A start, a question before all else, and appends."""
        clock = self.dice.choice(CLOCKS)
        self.reopen()
        self.ask(clock)
        self.append()
        self.ask(clock)

    def leave(self) -> None:
        """All that is there goes to the store."""
        for step in (self.roll, self.copy, self.drop):
            step()

    def copy(self) -> None:
        self.world.copy_all()

    def drop(self) -> None:
        make_durable(self.world.log)
        self.world.drop_all()

    def delete(self) -> None:
        """DeleteRecords, and what it lets go from the store."""
        make_durable(self.world.log)
        snapshot = self.world.log.snapshot
        start = snapshot.log_start_offset
        self.world.log.delete_records(min(start + self.dice.randint(0, 3), snapshot.high_watermark))
        self.world.tiered.expire()
        self.world.tiered.show()

    def wait(self) -> None:
        self.clock.advance(self.dice.choice((10, 5000, 100_000)))

    def step_back(self) -> None:
        self.clock.step(-20_000)

    def lose_zones(self) -> None:
        """The zone map of a closed segment in the directory."""
        self.reopen()
        closed = self.world.log.snapshot.local_segments[:-1]
        if closed:
            with suppress(FileMissing):  # they were lost before
                self.world.env.fs.remove(self.dice.choice(closed).path_of(ZONES))

    def lose_side(self) -> None:
        """The object beside a segment in the store."""
        rows = self.world.tiered.manifest.segments
        if rows:
            row = self.dice.choice(rows)
            self.world.store.delete([KEYS.segment(row.base_offset, row.unique, SIDE)])
        self.reopen()

    def _time(self) -> int:
        now = self.clock.now_ms()
        match self._character:
            case "late":
                return now - 4000 if self._has_times else -1
            case "untimed":
                return self.dice.choice((-1, -1, now - 3000))
            case "negative":
                return self.dice.choice((-5, now, now - 100, 0))
            case "dirty":
                return self.dice.choice((now, now, now + FAR_FUTURE_MS, now // 1000, 0))
            case _:
                return now + self.dice.randint(-5000, 5000)

    # --- questions ---

    def ask(self, clock: SearchClock | None = None) -> None:
        """Look-ups by one clock, the largest time, and a range."""
        make_durable(self.world.log)
        clock, came = clock or self.dice.choice(CLOCKS), self._came_ms
        asked = self.dice.sample((came, came - 2500, came - 100_000, 1, came + FAR_FUTURE_MS), 2)
        answers = {at: self._first(at, clock) for at in asked}
        largest = _pair(self.world.log.search.first_with_largest())
        rows = self._rows()
        times = self._by_clock(rows, clock)
        for near, _ in (*times[-3:], *times[:2]):
            at = near + self.dice.choice((0, 0, 1))
            answers[at] = self._first(at, clock)
        for at, answer in answers.items():
            self._compare(f"{clock} from {at}", answer, first_from(times, max(at, 0)))
        self._compare("largest", largest, self._largest(rows))
        if times:
            self._ask_range(times, clock)

    def _first(self, at: int, clock: SearchClock) -> Found:
        """The answer; one that needs no waiting is the same."""
        search = self.world.log.search
        answer = _pair(search.first_at_or_after(at, clock=clock))
        try:
            quick = _pair(search.first_at_or_after(at, clock=clock, may_wait=False))
        except NotInMemory:
            return answer
        self._compare(f"{clock} from {at}, at once", quick, answer)
        return answer

    def _ask_range(self, times: list[tuple[int, int]], clock: SearchClock) -> None:
        low, high = sorted(self.dice.choice(times)[0] + self.dice.choice((0, 1)) for _ in "ab")
        found = self.world.log.search.range_between(low, high, clock=clock)
        inside = [offset for at, offset in times if max(low, 0) <= at < high]
        ends = (inside[0], inside[-1]) if inside else (None, None)
        self._compare(
            f"{clock} from {low} to {high}",
            (found.first_offset, found.last_offset, found.records),
            (*ends, len(inside)),
        )

    def _compare(self, question: str, answer: object, expected: object) -> None:
        self.answers += 1
        assert answer == expected, f"{question}: {answer}, and a scan finds {expected}"

    # --- the full scan ---

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        at = self.world.log.snapshot.log_start_offset
        while at < self.world.log.snapshot.high_watermark:
            data = self.world.read_from(at)
            for row in (batches := scan_batches(data).batches):
                is_stamped = bool(row[7] & LOG_APPEND_TIME)
                rows += [
                    Row(each.offset, row[4] if is_stamped else each.timestamp, is_stamped)
                    for each in read_records(memoryview(data)[row[0] : row[0] + row[5]])
                    if each.offset >= at
                ]
            at = batches[-1][2] + 1
        return rows

    def _by_clock(self, rows: list[Row], clock: SearchClock) -> list[tuple[int, int]]:
        """Time by the clock and offset of each row. Arrivals never fall along the log."""
        zones = [self._zone_of(row.offset) for row in rows]
        arrivals = [zone.last_arrival_ms for zone in zones]
        self._compare("arrivals in order", arrivals, sorted(arrivals))
        return [
            (time_of(clock, row.time_ms, zone, is_stamped=row.is_stamped), row.offset)
            for row, zone in zip(rows, zones, strict=True)
        ]

    def _zone_of(self, offset: int) -> Zone:
        snapshot = self.world.log.snapshot
        number = index_of(snapshot.segments, offset)
        look = self.world.log.search.look()
        view = look.at(snapshot.segments[number], snapshot.end_of(number), EARLIER).zones
        return view.zone(view.holding_offset(offset))

    def _largest(self, rows: list[Row]) -> Found:
        largest = max((row.time_ms for row in rows), default=-1)
        found = (row for row in rows if row.time_ms == largest >= 0)
        return next(((row.time_ms, row.offset) for row in found), None)
