"""Plan of retention: segments that go, segments that stay, with reasons (semantics.md 4, time.md
4).

Three passes in Kafka's order: log start offset, size, time; each goes from the oldest segment to
the newest and stops at the first that does not qualify, so a log never gets a hole. Nothing above
the high watermark goes, and an empty last segment never does. Times are milliseconds; by which
clock a segment's age is measured is the topic's choice, and every decision says which one it was.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from storage.retention.undelivered import Undelivered, stays_until


class RetentionClock(StrEnum):
    """`horolog.retention.clock`: what a segment's age is measured from."""

    RECORD = "record"
    ARRIVAL = "arrival"
    EARLIER = "earlier"
    LATER = "later"


class JudgedBy(StrEnum):
    """The time that a decision looked at."""

    RECORD = "largest record time"
    ARRIVAL = "last arrival"
    MODIFICATION = "modification time"


# A member of an enumeration is looked up slowly, a name is not, and a log may have many segments.
_RECORD, _EARLIER, _LATER = RetentionClock.RECORD, RetentionClock.EARLIER, RetentionClock.LATER
_BY_RECORD, _BY_ARRIVAL, _BY_MODIFICATION = JudgedBy


class SegmentFacts(NamedTuple):
    """Facts about a segment for retention.

    `record_ms`: largest record time, `arrival_ms`: last arrival; -1 where there is none, and the
    file's modification time counts instead.
    """

    base_offset: int
    size_bytes: int
    record_ms: int
    arrival_ms: int
    modified_ms: int


class LogFacts(NamedTuple):
    """The log's offsets; `end_offset` is the next one to be written."""

    start_offset: int
    high_watermark: int
    end_offset: int


class RetentionLimits(NamedTuple):
    """Limits from the topic's settings. Negative: no limit; `deletes` False: policy without delete.

    `before_ms` is `horolog.retention.before.timestamp`. `is_held`: a hold of the broker's
    clock suspends removal by time.
    """

    retention_ms: int
    retention_bytes: int
    deletes: bool = True
    clock: RetentionClock = RetentionClock.EARLIER
    min_stay_ms: int = 0
    before_ms: int = -1
    is_held: bool = False
    undelivered: tuple[Undelivered, ...] = ()
    """Records that share groups keep."""


class Reason(StrEnum):
    """Reasons why a segment goes or stays."""

    START_OFFSET = "before the log start offset"
    SIZE = "over retention.bytes"
    TIME = "older than retention.ms"
    BEFORE = "older than horolog.retention.before.timestamp"

    NOT_DUE = "not old enough for retention.ms"
    IN_THE_FUTURE = "its time lies in the future"
    NO_LIMIT = "no limit by time"
    MIN_STAY = "arrived less than horolog.retention.min.stay.ms ago"
    UNDELIVERED = "undelivered: a share group keeps it (horolog.share.retention.hold)"
    HELD = "the broker's clock is in doubt: nothing goes by time"
    UNCOMMITTED = "holds offsets above the high watermark"
    EMPTY = "empty last segment"
    BEHIND = "an older segment stays"


_BEHIND, _EMPTY, _TIME = Reason.BEHIND, Reason.EMPTY, Reason.TIME


class SegmentDecision(NamedTuple):
    """Decision about one segment.

    `time_ms` is the time it was judged by, of the kind `judged_by`. `deadline_ms`: time when its
    own age frees it, None if never. `blocked_by`: base offset of the older segment that it waits
    for.
    """

    base_offset: int
    size_bytes: int
    goes: bool
    reason: Reason
    time_ms: int
    judged_by: JudgedBy
    deadline_ms: int | None
    blocked_by: int | None = None


class RetentionPlan(NamedTuple):
    """A decision for every segment, oldest first.

    `rolls_first`: every segment goes, so a new one must begin at the log end before.
    """

    decisions: tuple[SegmentDecision, ...]
    rolls_first: bool
    start_offset: int
    high_watermark: int

    @property
    def leaving(self) -> tuple[SegmentDecision, ...]:
        """The segments that go: a prefix of the log."""
        return tuple(decision for decision in self.decisions if decision.goes)

    @property
    def blocker(self) -> SegmentDecision | None:
        """The oldest segment that stays, for which all behind it wait."""
        return next((each for each in self.decisions if not each.goes), None)

    @property
    def next_deadline_ms(self) -> int | None:
        """Time when the first of those that stay is due by its own age; it may be past."""
        deadlines = (d.deadline_ms for d in self.decisions if not d.goes)
        return min((each for each in deadlines if each is not None), default=None)

    def overdue(self, now_ms: int) -> int:
        """Number of those that stay past their deadline."""
        deadlines = (d.deadline_ms for d in self.decisions if not d.goes)
        return sum(each is not None and each < now_ms for each in deadlines)


def plan(
    segments: Sequence[SegmentFacts], log: LogFacts, limits: RetentionLimits, now_ms: int
) -> RetentionPlan:
    """Decide on every segment of a log (all of them, oldest first) as of `now_ms`."""
    case = _case(segments, log, limits, now_ms)
    going = case.going()
    decisions = (
        *(case.leaves(index, reason) for index, reason in enumerate(going)),
        *(case.stays(index, len(going)) for index in range(len(going), len(segments))),
    )
    all_go = bool(segments) and len(going) == len(segments)
    return RetentionPlan(decisions, all_go, case.start_after(len(going)), log.high_watermark)


def start_after(
    segments: Sequence[SegmentFacts], log: LogFacts, limits: RetentionLimits, now_ms: int
) -> int:
    """The start offset of the plan, without a word on those that stay, which may be many."""
    case = _case(segments, log, limits, now_ms)
    return case.start_after(len(case.going()))


def _case(
    segments: Sequence[SegmentFacts], log: LogFacts, limits: RetentionLimits, now_ms: int
) -> "_Case":
    ends = (*(segment.base_offset for segment in segments[1:]), log.end_offset)
    return _Case(segments, ends, log, limits, now_ms)


def judged(segment: SegmentFacts, clock: RetentionClock) -> tuple[int, JudgedBy]:
    """The time that a segment's age is measured from, and which one that is (time.md 4)."""
    has_record = segment.record_ms >= 0
    record, arrival = segment.record_ms, arrival_of(segment)
    if clock is _RECORD:
        if has_record:
            return record, _BY_RECORD
        return segment.modified_ms, _BY_MODIFICATION
    if has_record and (
        (clock is _EARLIER and record < arrival) or (clock is _LATER and record > arrival)
    ):
        return record, _BY_RECORD
    return arrival, _BY_MODIFICATION if segment.arrival_ms < 0 else _BY_ARRIVAL


def arrival_of(segment: SegmentFacts) -> int:
    """Arrival of its last record, as far as known."""
    return segment.modified_ms if segment.arrival_ms < 0 else segment.arrival_ms


class _Case(NamedTuple):
    """One log at one moment. Each pass says why segments from `first` on qualify, in order."""

    segments: Sequence[SegmentFacts]
    ends: Sequence[int]  # offset after each segment
    log: LogFacts
    limits: RetentionLimits
    now_ms: int

    def going(self) -> list[Reason]:
        """The reason of each that goes: the first ones of the log."""
        found: list[Reason] = []
        for qualifying in (self.before_start, self.over_size, self.over_age):
            found += qualifying(len(found))
        return found

    def start_after(self, leaving: int) -> int:
        """The start offset once so many have gone."""
        start = self.log.start_offset
        return max(start, self.ends[leaving - 1]) if leaving else start

    def before_start(self, first: int) -> list[Reason]:
        def reason(index: int) -> Reason | None:
            has_next = index + 1 < len(self.segments)
            goes = has_next and self.ends[index] <= self.log.start_offset
            return Reason.START_OFFSET if goes else None

        return self._reasons_from(first, reason)

    def over_size(self, first: int) -> list[Reason]:
        if not self.limits.deletes or self.limits.retention_bytes < 0:
            return []
        excess = sum(s.size_bytes for s in self.segments[first:]) - self.limits.retention_bytes

        def reason(index: int) -> Reason | None:
            nonlocal excess
            segment = self.segments[index]
            excess -= segment.size_bytes
            is_free = self._stayed(segment) and not self._is_undelivered(index)
            return Reason.SIZE if excess >= 0 and is_free else None

        return self._reasons_from(first, reason)

    def over_age(self, first: int) -> list[Reason]:
        if not self.limits.deletes or self.limits.is_held:
            return []
        return self._reasons_from(first, self._due)

    def leaves(self, index: int, reason: Reason) -> SegmentDecision:
        segment = self.segments[index]
        time_ms, by = judged(segment, self.limits.clock)
        deadline = self._deadline(index, time_ms)
        return SegmentDecision(
            segment.base_offset, segment.size_bytes, True, reason, time_ms, by, deadline
        )

    def stays(self, index: int, first_that_stays: int) -> SegmentDecision:
        segment = self.segments[index]
        time_ms, by = judged(segment, self.limits.clock)
        deadline = self._deadline(index, time_ms)
        if index == first_that_stays and self._stays_over_size(index):
            by_size = self._stays_at_least(index)
            if by_size is not None:
                deadline = by_size if deadline is None else min(deadline, by_size)
        reason = self._why_it_stays(index, first_that_stays, time_ms, deadline)
        blocked_by = None
        if reason is _BEHIND:
            blocked_by = self.segments[first_that_stays].base_offset
        if reason is _EMPTY:
            deadline = None
        return SegmentDecision(
            segment.base_offset,
            segment.size_bytes,
            False,
            reason,
            time_ms,
            by,
            deadline,
            blocked_by,
        )

    def _why_it_stays(
        self, index: int, first_that_stays: int, time_ms: int, deadline: int | None
    ) -> Reason:
        if self._is_empty_last(index):
            return _EMPTY
        if self.log.high_watermark < self.ends[index]:
            return Reason.UNCOMMITTED
        if index > first_that_stays:
            return _BEHIND
        if deadline is None:
            return Reason.NO_LIMIT
        if not self._stayed(self.segments[index]):
            return Reason.MIN_STAY
        if self._is_undelivered(index) and self._is_due_but_for_queues(index):
            return Reason.UNDELIVERED
        if self.limits.is_held and self._due(index) is not None:
            return Reason.HELD
        return Reason.IN_THE_FUTURE if time_ms > self.now_ms else Reason.NOT_DUE

    def _due(self, index: int) -> Reason | None:
        """The reason why the segment goes by time, or None."""
        if not self._stayed(self.segments[index]) or self._is_undelivered(index):
            return None
        return self._too_old(index)

    def _is_due_but_for_queues(self, index: int) -> bool:
        too_old = not self.limits.is_held and self._too_old(index) is not None
        return too_old or self._stays_over_size(index)

    def _too_old(self, index: int) -> Reason | None:
        limits = self.limits
        time_ms, _ = judged(self.segments[index], limits.clock)
        if 0 <= limits.retention_ms < self.now_ms - time_ms:
            return _TIME
        return Reason.BEFORE if time_ms < limits.before_ms else None

    def _deadline(self, index: int, time_ms: int) -> int | None:
        limits, deadline = self.limits, None
        if not limits.deletes:
            return None
        if limits.retention_ms >= 0:
            deadline = time_ms + limits.retention_ms
        if time_ms < limits.before_ms:
            by_instant = min(limits.before_ms, self.now_ms)
            deadline = by_instant if deadline is None else min(deadline, by_instant)
        stays = None if deadline is None else self._stays_at_least(index)
        return deadline if deadline is None or stays is None else max(deadline, stays)

    def _stays_at_least(self, index: int) -> int | None:
        """The time before which the segment does not go, whatever its age and the log's size."""
        arrival = arrival_of(self.segments[index])
        until = stays_until(self.limits.undelivered, self.ends[index], arrival)
        if not self.limits.min_stay_ms:
            return until
        stays = arrival + self.limits.min_stay_ms
        return stays if until is None else max(stays, until)

    def _is_undelivered(self, index: int) -> bool:
        """True while queues keep the segment."""
        if not self.limits.undelivered:
            return False
        arrival = arrival_of(self.segments[index])
        until = stays_until(self.limits.undelivered, self.ends[index], arrival)
        return until is not None and self.now_ms < until

    def _stays_over_size(self, index: int) -> bool:
        """True when size lets the segment go, but it has not stayed for long enough."""
        limits = self.limits
        if not limits.deletes or limits.retention_bytes < 0:
            return False
        if self._stayed(self.segments[index]) and not self._is_undelivered(index):
            return False
        return sum(each.size_bytes for each in self.segments[index + 1 :]) >= limits.retention_bytes

    def _stayed(self, segment: SegmentFacts) -> bool:
        """True when it has been here for as long as the topic promises."""
        stay = self.limits.min_stay_ms
        return not stay or self.now_ms - arrival_of(segment) >= stay

    def _reasons_from(self, first: int, reason: Callable[[int], Reason | None]) -> list[Reason]:
        found: list[Reason] = []
        for index in range(first, len(self.segments)):
            why = reason(index) if self._may_go(index) else None
            if why is None:
                break
            found.append(why)
        return found

    def _may_go(self, index: int) -> bool:
        return not self._is_empty_last(index) and self.log.high_watermark >= self.ends[index]

    def _is_empty_last(self, index: int) -> bool:
        return index == len(self.segments) - 1 and not self.segments[index].size_bytes
