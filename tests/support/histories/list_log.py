"""A log as a list: a model that has no index, no file and no cleverness.

Records are in batches, batches in parts (segments). Every rule is list code written from
semantics.md 1.3, 3, 4, 5, 6 and time.md 2 to 7, not from the storage engine; a question is answered
by a look at every record. Times are milliseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from config.topic import TopicConfig
from storage.retention.plan import Reason
from tests.support.disk.simenv import SimClock

NO_TIME = -1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Row(NamedTuple):
    """One record: its time as readers see it, and the one it came with if that was changed."""

    offset: int
    at: int
    value: bytes
    claimed: int | None = None


@dataclass(slots=True)
class Batch:
    """One batch: `written` are the times in its bytes, `arrival_ms` is when it came.

    Its offsets go on to `last_offset` even where records were quarantined.
    """

    base_offset: int
    last_offset: int
    rows: list[Row]
    written: list[int]
    arrival_ms: int
    is_stamped: bool
    """Its records carry the broker's time."""
    stored_ms: int
    """Time of the clock then, even if it had been set back."""
    size_bytes: int = 0
    is_estimated: bool = False
    """Its arrival was lost, and is an estimate."""

    @property
    def newest(self) -> int:
        """Its largest time, none if all are before 1970; of a batch without records its arrival."""
        if not self.rows:
            return self.stored_ms
        return max((row.at for row in self.rows if row.at >= 0), default=NO_TIME)


@dataclass(slots=True)
class Part:
    """A segment: the batches, when it was opened and written, what its two indexes hold."""

    base: int
    opened_at: float
    """Time when this process came to have it, in monotonic seconds."""
    modified_ms: int
    interval_bytes: int
    """Between two index entries: as the settings had it when the segment was opened."""
    jitter_ms: int = 0
    batches: list[Batch] = field(default_factory=list)
    came_ms: int = 0
    offsets: list[tuple[int, int]] = field(default_factory=list)
    times: list[tuple[int, int]] = field(default_factory=list)
    unindexed_bytes: int = 0
    is_scanned: bool = True
    """The last start read it, or a clean stop wrote its files."""
    newest: int = NO_TIME
    newest_offset: int = -1

    @property
    def size_bytes(self) -> int:
        """Of the `.log`."""
        return sum(batch.size_bytes for batch in self.batches)

    def add(self, batch: Batch, config: TopicConfig) -> None:
        """One more batch, and its index entry if one is due (semantics.md 1.3)."""
        if self.newest == NO_TIME:
            self.times.clear()
        if batch.newest > self.newest:
            self.newest, self.newest_offset = batch.newest, batch.last_offset
        if self.unindexed_bytes > self.interval_bytes:
            if not self.is_full(config):
                self.offsets.append((batch.last_offset, self.size_bytes))
                self.offer_time(batch.last_offset + 1, config)
            self.unindexed_bytes = 0
        self.unindexed_bytes += batch.size_bytes
        self.batches.append(batch)

    def offer_time(self, end: int, config: TopicConfig) -> None:
        """The running maximum becomes an entry of the time index if it grew."""
        if self.newest > (self.times[-1][0] if self.times else NO_TIME):
            is_next = config.horolog_time_index_entry == "next"
            self.times.append((self.newest, end if is_next else self.newest_offset))

    def offer_last_time(self, end: int, config: TopicConfig) -> None:
        """The entry of a part that ends; KIP-33 has one even when no record has a time."""
        if self.newest == NO_TIME and config.horolog_time_index_entry == "next" and self.batches:
            if not self.times:
                self.times.append((self.modified_ms, end))
            return
        self.offer_time(end, config)

    def is_full(self, config: TopicConfig) -> bool:
        """True when one of the indexes takes no more entries before the roll."""
        size = config.segment_index_bytes
        return len(self.offsets) >= size // 8 or len(self.times) >= size // 12 - 1

    def index_anew(self, end: int, config: TopicConfig) -> None:
        """As recovery makes the indexes, by the settings of the moment."""
        batches, self.batches = self.batches, []
        self.offsets, self.times = [], []
        self.unindexed_bytes, self.newest, self.newest_offset = 0, NO_TIME, -1
        self.interval_bytes = config.index_interval_bytes
        for batch in batches:
            self.add(batch, config)
        self.offer_last_time(end, config)

    @property
    def last_arrival_ms(self) -> int:
        """Arrival of its last batch; the last write, where that is unknown."""
        last = next((batch for batch in reversed(self.batches) if batch.rows), None)
        if last is None:
            return self.modified_ms
        return max(last.arrival_ms, self.modified_ms if last.is_estimated else 0)

    def judged(self, clock: str) -> int:
        """The time that retention measures its age from (time.md 4)."""
        arrival = self.last_arrival_ms
        if self.newest < 0:
            return self.modified_ms if clock == "record" else arrival
        choice = {"record": self.newest, "arrival": arrival}
        both = self.newest, arrival
        return {**choice, "earlier": min(both), "later": max(both)}[clock]


@dataclass(slots=True)
class Fate:
    """Decision of retention about a part."""

    base: int
    goes: bool
    reason: Reason


class ListLog:
    """The whole log."""

    def __init__(self, config: TopicConfig, clock: SimClock) -> None:
        self.config = config
        self.clock = clock
        self.parts = [self.new_part(0)]
        self.start = 0
        self.hidden: list[int] = []
        """First offsets of batches that nobody may read before they are on the disk."""
        self.last_arrival_ms = 0
        """The latest arrival: none after it is earlier."""

    @property
    def end(self) -> int:
        """The next offset."""
        last = self.parts[-1]
        return last.batches[-1].last_offset + 1 if last.batches else last.base

    @property
    def high_watermark(self) -> int:
        """Readers see the records below."""
        return min(self.hidden, default=self.end)

    def batches(self) -> Iterator[Batch]:
        """All that are stored, deleted or not."""
        for part in self.parts:
            yield from part.batches

    def rows(self) -> list[Row]:
        """All records that are not deleted."""
        return [r for batch in self.batches() for r in batch.rows if r.offset >= self.start]

    # --- appends ---

    @property
    def is_stamped(self) -> bool:
        """True when records get the time of their arrival."""
        return self.config.message_timestamp_type == "LogAppendTime"

    @property
    def has_remedy(self) -> bool:
        """True when the policy changes records whose time is bad."""
        return self.config.horolog_timestamp_policy in {"clamp", "restamp", "quarantine"}

    def out_of_bounds(self, times: list[int], now_ms: int) -> set[int]:
        """The records with a bad time (semantics.md 6.2)."""
        if self.is_stamped:
            return set()
        low, high = self._bounds(now_ms)
        return {i for i, at in enumerate(times) if at != NO_TIME and not low <= at <= high}

    def refused(self, times: list[int], keyless: set[int], now_ms: int) -> tuple[int, list[int]]:
        """The error code, 0 for none, and the records that it names (semantics.md 6.2, 6.3)."""
        without_key = keyless if "compact" in self.config.cleanup_policy else set()
        mistimed: set[int] = set()
        if self.config.horolog_timestamp_policy == "reject":
            mistimed = self.out_of_bounds(times, now_ms) - without_key
        code = 32 if mistimed else 87 if without_key else 0
        return code, sorted(mistimed | without_key)

    def batch_of(self, times: list[int], values: list[bytes], now_ms: int) -> Batch:
        """The batch as stored now, by the topic's policy (time.md 2)."""
        low, high = self._bounds(now_ms)
        policy = self.config.horolog_timestamp_policy
        bad = self.out_of_bounds(times, now_ms) if self.has_remedy else set()
        base = self.end
        rows: list[Row] = []
        written: list[int] = []
        for index, (at, value) in enumerate(zip(times, values, strict=True)):
            if index in bad and policy == "quarantine":
                continue
            nearest = max(low, 0) if at < low else high
            mended = nearest if policy == "clamp" else now_ms
            written.append(mended if index in bad else at)
            seen = now_ms if self.is_stamped else written[-1]
            rows.append(Row(base + index, seen, value, at if index in bad else None))
        last_offset = base + len(times) - 1
        arrival_ms = max(now_ms, self.last_arrival_ms)
        return Batch(base, last_offset, rows, written, arrival_ms, self.is_stamped, now_ms)

    def _bounds(self, now_ms: int) -> tuple[int, int]:
        before, after = (
            self.config.message_timestamp_before_max_ms,
            self.config.message_timestamp_after_max_ms,
        )
        low = INT64_MIN if before == INT64_MAX else now_ms - before
        return low, min(now_ms + after, INT64_MAX)

    def append(self, batch: Batch, now_ms: int) -> None:
        """Store it in the last part."""
        part = self.parts[-1]
        if not part.batches:
            part.came_ms = now_ms
        part.add(batch, self.config)
        part.modified_ms = now_ms
        if batch.rows:
            self.last_arrival_ms = batch.arrival_ms

    def must_roll(self, batch: Batch, now_ms: int) -> bool:
        """True when a part ends before this batch (semantics.md 3)."""
        part, config = self.parts[-1], self.config
        if not part.batches:
            return False
        first = part.batches[0].newest
        waited = (
            batch.newest - first
            if first >= 0
            else round((self.clock.monotonic() - part.opened_at) * 1000)
        )
        may_roll = abs(now_ms - part.came_ms) >= config.horolog_roll_min_interval_ms
        return (
            part.size_bytes + batch.size_bytes > config.segment_bytes
            or (waited > config.segment_ms - part.jitter_ms and may_roll)
            or part.is_full(config)
        )

    def new_part(self, base: int) -> Part:
        """An empty part that begins now."""
        clock, interval_bytes = self.clock, self.config.index_interval_bytes
        return Part(base, clock.monotonic(), clock.now_ms(), interval_bytes)

    def roll(self) -> None:
        """A new part begins."""
        last = self.parts[-1]
        if last.newest == NO_TIME:
            last.times.clear()
        last.offer_last_time(self.end, self.config)
        self.parts.append(self.new_part(self.end))

    def timer_is_due(self, now_ms: int) -> bool:
        """True when an idle part ends now (time.md 7); one that a wrong clock began does."""
        part, config = self.parts[-1], self.config
        if not part.batches:
            return False
        came, first = part.came_ms, part.batches[0].newest
        wait = config.segment_ms - part.jitter_ms
        since = min(came, first) if first >= 0 else came
        floor = max(config.horolog_roll_min_interval_ms, wait // 100)
        return now_ms > max(since + wait, came + floor) or came - now_ms > wait

    # --- questions ---

    def first_from(self, timestamp: int) -> tuple[int, int] | None:
        """(time, offset) of the first record that is that late, if it may be read."""
        for row in self.rows():
            if row.at >= timestamp:
                return (row.at, row.offset) if row.offset < self.high_watermark else None
        return None

    def largest(self) -> tuple[int, int] | None:
        """(time, offset) of the first record with the largest time."""
        timed = [row for row in self.rows() if row.at >= 0]
        newest = max((row.at for row in timed), default=NO_TIME)
        return next(((row.at, row.offset) for row in timed if row.at == newest), None)

    # --- what goes ---

    def delete_records(self, before: int) -> int | None:
        """The new start; None when that is refused."""
        before = self.high_watermark if before == -1 else before
        if not 0 <= before <= self.high_watermark:
            return None
        self.start = max(self.start, before)
        return self.start

    def fates(self, now_ms: int, *, is_held: bool) -> list[Fate]:
        """Decisions of retention about each part, oldest first (semantics.md 4, time.md 4)."""
        reasons: list[Reason] = []
        rules = [self._by_start]
        if "delete" in self.config.cleanup_policy:
            rules += [self._by_size, *([] if is_held else [self._by_time])]
        for rule in rules:
            for index in range(len(reasons), len(self.parts)):
                reason = rule(index, now_ms) if self._may_go(index) else None
                if reason is None:
                    break
                reasons.append(reason)
        gone = len(reasons)
        return [
            Fate(part.base, True, reasons[index])
            if index < gone
            else Fate(part.base, False, self._why_it_stays(index, gone, now_ms, is_held=is_held))
            for index, part in enumerate(self.parts)
        ]

    def drop_old(self, now_ms: int, *, is_held: bool) -> list[Fate]:
        """Retention runs; what it said."""
        fates = self.fates(now_ms, is_held=is_held)
        gone = sum(fate.goes for fate in fates)
        if gone == len(self.parts):
            self.roll()
        if gone:
            self.parts = self.parts[gone:]
            self.start = max(self.start, self.parts[0].base)
        return fates

    def _end_of(self, index: int) -> int:
        return self.parts[index + 1].base if index + 1 < len(self.parts) else self.end

    def _may_go(self, index: int) -> bool:
        is_last = index == len(self.parts) - 1
        is_empty_last = is_last and not self.parts[index].batches
        return not is_empty_last and self._end_of(index) <= self.high_watermark

    def _by_start(self, index: int, now_ms: int) -> Reason | None:
        has_next = index + 1 < len(self.parts)
        return Reason.START_OFFSET if has_next and self._end_of(index) <= self.start else None

    def _by_size(self, index: int, now_ms: int) -> Reason | None:
        limit = self.config.retention_bytes
        left = sum(part.size_bytes for part in self.parts[index + 1 :])
        is_over = 0 <= limit <= left
        return Reason.SIZE if is_over and self._has_stayed(index, now_ms) else None

    def _by_time(self, index: int, now_ms: int) -> Reason | None:
        if not self._has_stayed(index, now_ms):
            return None
        config = self.config
        at = self.parts[index].judged(config.horolog_retention_clock)
        if 0 <= config.retention_ms < now_ms - at:
            return Reason.TIME
        return Reason.BEFORE if at < config.horolog_retention_before_timestamp else None

    def _has_stayed(self, index: int, now_ms: int) -> bool:
        stay = self.config.horolog_retention_min_stay_ms
        part = self.parts[index]
        return not stay or (bool(part.batches) and now_ms - part.last_arrival_ms >= stay)

    def _why_it_stays(self, index: int, gone: int, now_ms: int, *, is_held: bool) -> Reason:
        config, part = self.config, self.parts[index]
        if not part.batches:
            return Reason.EMPTY
        if self.high_watermark < self._end_of(index):
            return Reason.UNCOMMITTED
        if index > gone:
            return Reason.BEHIND
        at = part.judged(config.horolog_retention_clock)
        has_limit = config.retention_ms >= 0 or at < config.horolog_retention_before_timestamp
        left = sum(each.size_bytes for each in self.parts[index + 1 :])
        has_limit = has_limit or 0 <= config.retention_bytes <= left
        if "delete" not in config.cleanup_policy or not has_limit:
            return Reason.NO_LIMIT
        if not self._has_stayed(index, now_ms):
            return Reason.MIN_STAY
        if is_held and self._by_time(index, now_ms) is not None:
            return Reason.HELD
        return Reason.IN_THE_FUTURE if at > now_ms else Reason.NOT_DUE
