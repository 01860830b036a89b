"""A partition twice: as the storage engine has it, and as a plain list; and whether both agree.

Anything that differs is an AssertionError. Disk and clock are simulated. What both do is in
`LogHistory`; here is what a start changes, and the comparison.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any
from uuid import UUID

from broker.guards.clock_guard import ClockWatch
from config.broker import BrokerConfig
from config.topic import TopicConfig
from protocol.records.record import Record
from storage.directory.log_manager import LogManager
from storage.env import Env
from storage.files.layout import LOG, OFFSET_INDEX, TIME_INDEX, segment_name
from storage.log.lifecycle import plan_retention
from storage.log.log import Log, TimestampOffset
from storage.retention.plan import Reason, RetentionPlan
from storage.search.file_times import offsets_before
from storage.search.search_clock import SearchClock
from storage.segment.segment import Segment
from storage.validation.timestamp_policy import CLAIMED_TIMESTAMP
from storage.zones.zone_map import ARRIVAL_ESTIMATED, Zone
from tests.support.disk.simdisk import SimFileSystem
from tests.support.disk.simenv import SeededRng, SimClock
from tests.support.histories.list_log import NO_TIME, Batch, ListLog, Part
from tests.support.histories.list_producers import ListProducers
from tests.support.records.logs import NO_BOUNDS, first_from, records_of

NOW = 1_700_000_000_000
LOG_DIR = "/data"
PATH = f"{LOG_DIR}/t-0"
HOLD_SECONDS = 600
STEP_MS, FAR_AHEAD_MS = 1000, 86_400_000

_OFFSET_ENTRY, _TIME_ENTRY = Struct(">ii"), Struct(">qi")


def same(found: object, expected: object, what: str) -> None:
    """AssertionError that tells both."""
    assert found == expected, f"{what}: {found}, but the list says {expected}"


def header_number(record: Record, name: str) -> int | None:
    """The last header of that name, a number."""
    found = [content for key, content in record.headers if key == name]
    return int(found[-1] or b"") if found else None


def _place(answer: TimestampOffset | None) -> tuple[int, int] | None:
    return answer and (answer.timestamp, answer.offset)


class LogTwins:
    """Both, and the clock that they share."""

    def __init__(self, seed: int = 0, **settings: Any) -> None:
        self.clock = SimClock(NOW)
        self.fs = SimFileSystem(clock=self.clock)
        self.rng = SeededRng(seed)
        self.settings: dict[str, Any] = {**NO_BOUNDS, **settings}
        self.config = TopicConfig(**self.settings)
        self.doubted_at: float | None = None
        self.stepped_ms = 0
        self.is_over = False
        """A power cut left damage: such a log takes no writes."""
        self.count = 0
        self._rolled = False
        self._start()
        self.manager.create_log("t", 0, UUID(int=7), self.config)
        self.model = ListLog(self.config, self.clock)
        self.producers = ListProducers()
        self.checkpointed = 0
        self._new_part()

    @property
    def log(self) -> Log:
        """The real one."""
        return self.manager.logs["t", 0]

    def check(self, probes: Sequence[int]) -> None:
        """Offsets, segments, and every answer to ListOffsets."""
        model, log, snapshot = self.model, self.log, self.log.snapshot
        offsets = snapshot.log_start_offset, snapshot.log_end_offset, snapshot.high_watermark
        same(offsets, (model.start, model.end, model.high_watermark), "offsets")
        found = [(segment.base_offset, segment.size_bytes) for segment in snapshot.segments]
        same(found, [(part.base, part.size_bytes) for part in model.parts], "segments")
        for timestamp in probes:
            answer = log.search.first_at_or_after(timestamp, below=snapshot.high_watermark)
            same(_place(answer), model.first_from(timestamp), f"the first from {timestamp}")
        same(_place(log.search.first_with_largest()), model.largest(), "the largest time")

    def _check_clocks(self) -> None:
        """Search by arrival and by the earlier of both: a record came when its zone was through."""
        model = self.model
        by_arrival: list[tuple[int, int]] = []
        by_earlier: list[tuple[int, int]] = []
        for part, segment in zip(model.parts, self.log.snapshot.segments, strict=True):
            for zone, batches in self._zones(part, segment):
                for batch in batches:
                    first, last = zone.first_arrival_ms, zone.last_arrival_ms
                    for row in batch.rows:
                        came = min(max(row.at, first), last) if batch.is_stamped else last
                        assert came >= batch.arrival_ms or batch.is_estimated or batch.is_stamped
                        by_arrival.append((came, row.offset))
                        earlier = came if row.at == NO_TIME else min(came, row.at)
                        by_earlier.append((earlier, row.offset))
        for clock, times in (("arrival", by_arrival), ("earlier", by_earlier)):
            for timestamp in {at + delta for at, _ in times[::3] for delta in (0, 1) if at >= 0}:
                expected = first_from(times, timestamp, model.start)
                if expected is not None and expected[1] >= model.high_watermark:
                    expected = None
                answer = self.log.search.first_at_or_after(
                    timestamp,
                    below=model.high_watermark,
                    clock=SearchClock(clock),
                )
                same(_place(answer), expected, f"the first from {timestamp} by {clock}")

    def check_all(self) -> None:
        """As above with every time there is, all records, zones, files."""
        model = self.model
        times = {row.at + delta for row in model.rows() for delta in (-1, 0, 1)}
        self.check(sorted({0, *(at for at in times if 0 <= at < 2**63)}))
        readable = [row for row in model.rows() if row.offset < model.high_watermark]
        found = [
            (r.offset, r.timestamp, r.value, header_number(r, CLAIMED_TIMESTAMP))
            for r in records_of(self.log)
        ]
        same(found, [tuple(row) for row in readable], "records")
        self._check_zones()
        self._check_clocks()
        self._check_listing()

    def _check_zones(self) -> None:
        last = 0
        for part, segment in zip(self.model.parts, self.log.snapshot.segments, strict=True):
            zones = self._zones(part, segment)
            assert sum(len(batches) for _, batches in zones) == sum(
                bool(b.rows) for b in part.batches
            )
            for zone, batches in zones:
                timed = [at for b in batches for at in b.written if at != NO_TIME] or [NO_TIME]
                same(
                    zone.record_count,
                    sum(len(b.rows) for b in batches),
                    "count",
                )
                times = zone.min_timestamp, max(zone.max_timestamp, NO_TIME)
                same(times, (min(timed), max(*timed, NO_TIME)), "zone's times")
                arrivals = zone.first_arrival_ms, zone.last_arrival_ms
                came = batches[0].arrival_ms, batches[-1].arrival_ms
                same(arrivals, came, f"zone's arrivals, flags {zone.flags}")
                assert zone.first_arrival_ms >= last, "arrival runs backwards"
                last = zone.last_arrival_ms

    def _check_listing(self) -> None:
        """ListOffsets 0 knows the segments by their modification times (semantics.md 5.5)."""
        model, now_ms = self.model, self.clock.now_ms()
        mtimes = {entry.name: entry.mtime_ms for entry in self.fs.list_dir(PATH)}
        places = [
            (max(part.base, model.start), mtimes[segment_name(part.base, LOG)])
            for part in model.parts
        ]
        if model.parts[-1].batches:
            places.append((model.end, now_ms))
        for timestamp in (now_ms, NOW, 0, NOW + 5000):
            last = max((i for i, (_, at) in enumerate(places) if at <= timestamp), default=-1)
            expected = sorted((offset for offset, _ in places[: last + 1]), reverse=True)
            found = offsets_before(self.log.snapshot, self.log.files, timestamp, 99, now_ms)
            same(found, expected, f"segments written by {timestamp}")

    def _check_index_files(self) -> None:
        """The files of all segments, entry by entry (semantics.md 1.2, 1.3, 2)."""
        for part in self.model.parts:
            offsets, times = self._entries(part.base)
            same(offsets, part.offsets, f"offset index of {part.base}")
            same(times, part.times, f"time index of {part.base}")

    def _check_deadline(self, plan: RetentionPlan, *, is_held: bool) -> None:
        """Checks that the blocker's end frees the oldest segment that stays, and nothing sooner."""
        blocker = plan.blocker
        reasons = (Reason.NOT_DUE, Reason.IN_THE_FUTURE, Reason.MIN_STAY)
        if blocker is None or blocker.reason not in reasons or self.config.retention_bytes >= 0:
            return
        assert blocker.deadline_ms is not None
        early = plan_retention(self.log, blocker.deadline_ms - 1)
        assert blocker.base_offset not in {each.base_offset for each in early.leaving}
        late = plan_retention(self.log, blocker.deadline_ms + 1)
        assert blocker.base_offset in {each.base_offset for each in late.leaving}

    def _start(self) -> None:
        env = Env(self.clock, self.fs, self.rng)
        self._mtimes = (
            {entry.name: entry.mtime_ms for entry in self.fs.list_dir(PATH)}
            if self.fs.exists(PATH)
            else {}
        )
        self.manager = LogManager(env, LOG_DIR, lambda topic: self.config)
        self.manager.open_directory("cluster", 1)
        self.watch = ClockWatch(self.clock, BrokerConfig)
        self.stepped_ms, self.doubted_at = 0, None
        self.manager.load()
        self.watch.started(self.manager.last_write_ms)

    def _forget_from(self, end: int) -> None:
        model = self.model
        self.producers.cut_to(end)
        for part in model.parts:
            part.batches = [batch for batch in part.batches if batch.last_offset < end]
        kept = [row for row in model.rows() if row.offset < end]
        bases = {segment.base_offset for segment in self.log.snapshot.segments}
        parts = [part for part in model.parts if part.base in bases]
        model.parts = parts or [model.new_part(model.start)]
        assert model.rows() == kept, "a hole"

    def _started(self, *, scanned_from: int | None) -> None:
        """Effects of a start: memory is gone, and what was not in files is made from the log."""
        model, now_ms = self.model, self.clock.now_ms()
        model.hidden.clear()
        self.checkpointed = self.log.durability.recovery_point
        while len(model.parts) > 1 and model.parts[1].base <= model.start:
            model.parts.pop(0)
        model.start = max(model.start, model.parts[0].base)
        ends = [*(part.base for part in model.parts[1:]), model.end]
        for part, end in zip(model.parts, ends, strict=True):
            part.opened_at = self.clock.monotonic()
            part.interval_bytes = self.config.index_interval_bytes
            part.modified_ms = self._mtimes.get(segment_name(part.base, LOG), now_ms)
            is_last = part is model.parts[-1]
            part.is_scanned = scanned_from is None or end > scanned_from or is_last
            if scanned_from is not None and part.is_scanned:
                part.index_anew(end, self.config)
        model.parts[-1].unindexed_bytes = 0
        self._new_part()
        self._learn_arrivals()
        written = max((p.modified_ms for p in model.parts if p.batches), default=now_ms)
        if not -STEP_MS <= now_ms - written <= FAR_AHEAD_MS:
            self.doubted_at = self.clock.monotonic()
        self.producers.learn(dict(self.log.producers), model.start, now_ms)

    def _new_part(self) -> None:
        """The real segment drew its jitter; that much is left to chance."""
        segment, config = self.log.snapshot.active, self.config
        limit = min(config.segment_jitter_ms, config.segment_ms)
        assert 0 <= segment.jitter_ms < max(1, limit)
        self.model.parts[-1].jitter_ms = segment.jitter_ms

    def _learn_arrivals(self) -> None:
        """Estimates arrivals where the zone map was lost: by the list's own reckoning, here.

        As time.md 3 has it: the record time, not before the last arrival before it, not after the
        file's modification time.
        """
        last = 0
        for part, segment in zip(self.model.parts, self.log.snapshot.segments, strict=True):
            for zone, batches in self._zones(part, segment):
                known = batches[0].arrival_ms, batches[-1].arrival_ms
                is_lost = (zone.first_arrival_ms, zone.last_arrival_ms) != known
                for batch in batches if zone.flags & ARRIVAL_ESTIMATED else ():
                    batch.is_estimated = True
                    if is_lost:
                        at = batch.newest if batch.newest >= 0 else part.modified_ms
                        last = batch.arrival_ms = max(last, min(at, part.modified_ms))
                last = max(last, batches[-1].arrival_ms)
            came = (batch.arrival_ms for batch in part.batches if batch.rows)
            part.came_ms = next(came, part.modified_ms)
        self.model.last_arrival_ms = last

    def _learn_index(self, part: Part) -> None:
        """An index that recovery did not read may be older than the segment; it must be true."""
        if not part.is_scanned:
            part.offsets, part.times = self._entries(part.base)
            places, position = {}, 0
            for batch in part.batches:
                places[batch.last_offset] = position
                position += batch.size_bytes
            assert part.offsets == [(offset, places[offset]) for offset, _ in part.offsets]
            rows = [row for batch in part.batches for row in batch.rows]
            for at, offset in part.times:
                assert all(row.offset >= offset for row in rows if row.at > at), part.times

    def _zones(self, part: Part, segment: Segment) -> list[tuple[Zone, list[Batch]]]:
        """The rows of a segment's zone map, each with the batches that it speaks of."""
        if not any(batch.rows for batch in part.batches):
            return []
        indexes, rules = self.log.search.lookup
        zones = list(indexes.of(segment, part.size_bytes, rules).zones.zones())
        ends = [*(zone.first_offset for zone in zones[1:]), part.batches[-1].last_offset + 1]
        return [
            (zone, [b for b in part.batches if b.rows and zone.first_offset <= b.base_offset < end])
            for zone, end in zip(zones, ends, strict=True)
        ]

    def _entries(self, base: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """(offset, position) and (time, offset) of a segment's index files."""
        offsets = _OFFSET_ENTRY.iter_unpack(self._file(base, OFFSET_INDEX))
        times = _TIME_ENTRY.iter_unpack(self._file(base, TIME_INDEX))
        return [(base + each, position) for each, position in offsets], [
            (at, base + each) for at, each in times
        ]

    def _file(self, base: int, suffix: str) -> bytes:
        path = f"{PATH}/{segment_name(base, suffix)}"
        return self.fs.read_bytes(path) if self.fs.exists(path) else b""

    def _held(self) -> bool:
        """True when both have a hold on the clock."""
        if abs(self.stepped_ms) > STEP_MS:
            self.doubted_at = self.clock.monotonic()
        self.stepped_ms = 0
        doubted = self.doubted_at
        is_held = doubted is not None and self.clock.monotonic() - doubted < HOLD_SECONDS
        same(self.watch.look(), is_held, "hold")
        return is_held
