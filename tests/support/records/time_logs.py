"""Seeded logs for the search by time: disorder, duplicates, dirty and missing times, many rolls.

Each seed gives one log on a simulated disk and the list of (time, offset) that a full scan finds.
"""

import random
from dataclasses import dataclass
from typing import Any

from protocol.records.builder import build_batch
from protocol.records.compression import Codec
from storage.env import Env
from storage.log.log import Log
from storage.search.search_clock import SearchClock, time_of
from storage.zones.rows import Zone
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.records.logs import UNCLEAN, append_bytes, make_durable, open_log, reopened

NOW = 1_700_000_000_000
FAR_FUTURE = NOW + 10**12


@dataclass(slots=True)
class TimeLog:
    """A log and what is in it."""

    log: Log
    env: Env
    records: list[tuple[int, int]]
    """(time as readers see it, offset), in order of offset."""
    arrivals: list[int]
    """Arrival of each of them; like the log's own notes, it never runs backwards."""
    is_stamped: bool
    start_offset: int

    def wanted_times(self, dice: random.Random, count: int) -> list[int]:
        """Times worth asking for: at, just before and just after what is there; far off, too."""
        times = sorted({at for at, _ in self.records}) or [NOW]
        found = [dice.choice(times) + dice.choice((-1, 0, 0, 1)) for _ in range(count)]
        return [max(0, at) for at in (*found, 0, times[-1], times[-1] + 1, FAR_FUTURE * 2)]

    def zones(self) -> list[Zone]:
        """For each record the row of the zone that holds it, read without any search."""
        indexes, rules = self.log.search.lookup
        snapshot = self.log.snapshot
        found: list[Zone] = []
        for index, segment in enumerate(snapshot.segments):
            limit = snapshot.end_of(index)
            rows = list(indexes.of(segment, limit, rules).zones.zones()) if limit else []
            ends = [row.first_offset for row in rows[1:]]
            if rows:
                following = snapshot.segments[index + 1 :]
                ends.append(following[0].base_offset if following else snapshot.log_end_offset)
            for row, end in zip(rows, ends, strict=True):
                found += [row] * (end - row.first_offset)
        return found

    def by_clock(self, clock: SearchClock) -> list[tuple[int, int]]:
        """(time by that clock, offset) of every record at or after the log start."""
        return [
            (time_of(clock, at, zone, is_stamped=self.is_stamped), offset)
            for (at, offset), zone in zip(self.records, self.zones(), strict=True)
            if offset >= self.start_offset
        ]

    def fs_of_log(self) -> SimFileSystem:
        """The disk of the log after its restarts."""
        fs = self.log.files.fs
        assert isinstance(fs, SimFileSystem)
        return fs

    def expected(self, timestamp: int) -> tuple[int, int] | None:
        """The smallest offset, at or after the log start, whose time is at least `timestamp`."""
        for at, offset in self.records:
            if at >= timestamp and offset >= self.start_offset:
                return at, offset
        return None


def make_time_log(seed: int, *, batches: int = 60) -> TimeLog:
    """A log of up to so many batches."""
    dice = random.Random(seed)
    clock = SimClock(NOW)
    fs = SimFileSystem(clock=clock)
    env = Env(clock, fs, SeededRng(seed))
    settings: dict[str, Any] = {
        "segment_bytes": dice.choice((1700, 2500, 1 << 20, 1 << 20)),
        "index_interval_bytes": dice.choice((0, 1, 100, 400, 4096)),
        "segment_index_bytes": dice.choice((36, 120, 10_485_760)),
        "horolog_zone_bytes": dice.choice((4096, 4096, 65536)),
        "horolog_time_index_entry": dice.choice(("max", "max", "next")),
        "message_timestamp_type": dice.choice(("CreateTime",) * 4 + ("LogAppendTime",)),
    }
    log = open_log(env, **settings)
    is_small = log.config.segment_bytes < 1 << 20
    times = _times(dice)
    records: list[tuple[int, int]] = []
    arrivals: list[int] = []
    for _ in range(dice.randint(1, batches)):
        row = [next(times) for _ in range(dice.choice((1, 1, 2, 5)))]
        codec = dice.choice((Codec.NONE,) * 5 + (Codec.GZIP, Codec.LZ4))
        value = bytes(dice.choice((0, 10, 300) if is_small else (0, 10, 300, 1800)))
        arrivals += [max([clock.now_ms(), *arrivals[-1:]])] * len(row)
        result = append_bytes(log, build_batch([(at, None, value) for at in row], codec=codec))
        stamp = result.log_append_time_ms
        records += [
            (at if stamp < 0 else stamp, result.base_offset + index) for index, at in enumerate(row)
        ]
        clock.advance(dice.choice((0, 0, 1, 700)))
        if dice.random() < 0.02:
            clock.step(-5000)
    log = _life_goes_on(log, env, fs, dice)
    start = 0
    if dice.random() < 0.3:
        make_durable(log)
        start = log.delete_records(dice.randint(0, len(records)))
    is_stamped = settings["message_timestamp_type"] == "LogAppendTime"
    return TimeLog(log, env, records, arrivals, is_stamped, start)


def _life_goes_on(log: Log, env: Env, fs: SimFileSystem, dice: random.Random) -> Log:
    """Stays open, is restarted cleanly, or is killed and recovered."""
    match dice.randrange(4):
        case 0:
            return reopened(log, env)
        case 1:
            killed = Env(env.clock, fs.after_kill(), env.rng)
            settings = {name: getattr(log.config, name) for name in log.config.__slots__}
            return open_log(killed, UNCLEAN, log.files.path, **settings)
        case _:
            return log


def _times(dice: random.Random):  # type: ignore[no-untyped-def]
    """An endless run of record times of one character."""
    character = dice.choice(("rising", "shuffled", "few", "dirty", "untimed", "falling", "mixed"))
    now = NOW
    while True:
        now += dice.choice((0, 1, 1, 10, 1000))
        match character:
            case "rising":
                at = now
            case "shuffled":
                at = now + dice.randint(-5000, 5000)
            case "few":
                at = NOW + dice.randint(0, 3)
            case "dirty":
                at = dice.choice((now, now, now, now, now, FAR_FUTURE, now // 1000, 0, now * 1000))
            case "untimed":
                at = dice.choice((-1, -1, -1, now))
            case "falling":
                at = 2 * NOW - now
            case _:
                at = dice.choice((-1, now, now + dice.randint(-3000, 3000), FAR_FUTURE, 5))
        yield at
