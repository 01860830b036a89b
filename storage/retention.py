"""Which segments go, which stay, and why (semantics.md 4). Pure decisions over facts.

Three passes in Kafka's order: log start offset, size, time; each goes from the oldest segment to
the newest and stops at the first that does not qualify, so a log never gets a hole. Nothing above
the high watermark goes, and an empty last segment never does. Times are milliseconds by record
time; a segment without any is judged by its file's modification time.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple


class SegmentFacts(NamedTuple):
    """What retention has to know of a segment.

    `largest_timestamp` is the largest record time, or the modification time where
    `by_modification_time` says so.
    """

    base_offset: int
    size_bytes: int
    largest_timestamp: int
    by_modification_time: bool = False


class LogFacts(NamedTuple):
    """The log's offsets; `end_offset` is the next one to be written."""

    start_offset: int
    high_watermark: int
    end_offset: int


class RetentionLimits(NamedTuple):
    """`retention.ms` and `retention.bytes` (negative: no limit); False: policy without delete."""

    retention_ms: int
    retention_bytes: int
    deletes: bool = True


class Reason(StrEnum):
    """Why a segment goes, or why it stays."""

    START_OFFSET = "before the log start offset"
    SIZE = "over retention.bytes"
    TIME = "older than retention.ms"

    NOT_DUE = "not old enough for retention.ms"
    IN_THE_FUTURE = "largest timestamp lies in the future"
    NO_LIMIT = "no limit by time"
    UNCOMMITTED = "holds offsets above the high watermark"
    EMPTY = "empty last segment"
    BEHIND = "an older segment stays"


class SegmentDecision(NamedTuple):
    """What becomes of one segment. `deadline_ms`: when its age would free it, None if never."""

    base_offset: int
    size_bytes: int
    goes: bool
    reason: Reason
    deadline_ms: int | None
    detail: str


class RetentionPlan(NamedTuple):
    """A decision for every segment, oldest first.

    `rolls_first`: every segment goes, so a new one must begin at the log end before.
    """

    decisions: tuple[SegmentDecision, ...]
    rolls_first: bool
    start_offset: int

    @property
    def leaving(self) -> tuple[SegmentDecision, ...]:
        """The segments that go: a prefix of the log."""
        return tuple(decision for decision in self.decisions if decision.goes)


def plan(
    segments: Sequence[SegmentFacts], log: LogFacts, limits: RetentionLimits, now_ms: int
) -> RetentionPlan:
    """Decide on every segment of a log (all of them, oldest first) as of `now_ms`."""
    ends = (*(segment.base_offset for segment in segments[1:]), log.end_offset)
    case = _Case(segments, ends, log, limits, now_ms)
    going: list[Reason] = []
    for qualifying in (case.before_start, case.over_size, case.over_age):
        going += qualifying(len(going))
    decisions = (
        *(case.leaves(index, reason) for index, reason in enumerate(going)),
        *(case.stays(index, len(going)) for index in range(len(going), len(segments))),
    )
    start = max(log.start_offset, ends[len(going) - 1]) if going else log.start_offset
    return RetentionPlan(decisions, bool(segments) and len(going) == len(segments), start)


class _Case(NamedTuple):
    """One log at one moment. Each pass says why segments from `first` on qualify, in order."""

    segments: Sequence[SegmentFacts]
    ends: Sequence[int]  # offset after each segment
    log: LogFacts
    limits: RetentionLimits
    now_ms: int

    def before_start(self, first: int) -> list[Reason]:
        def qualifies(index: int) -> bool:
            has_next = index + 1 < len(self.segments)
            return has_next and self.ends[index] <= self.log.start_offset

        return [Reason.START_OFFSET] * self._count_from(first, qualifies)

    def over_size(self, first: int) -> list[Reason]:
        if not self.limits.deletes or self.limits.retention_bytes < 0:
            return []
        excess = sum(s.size_bytes for s in self.segments[first:]) - self.limits.retention_bytes

        def qualifies(index: int) -> bool:
            nonlocal excess
            excess -= self.segments[index].size_bytes
            return excess >= 0

        return [Reason.SIZE] * self._count_from(first, qualifies)

    def over_age(self, first: int) -> list[Reason]:
        if not self.limits.deletes or self.limits.retention_ms < 0:
            return []

        def qualifies(index: int) -> bool:
            return self.age(self.segments[index]) > self.limits.retention_ms

        return [Reason.TIME] * self._count_from(first, qualifies)

    def leaves(self, index: int, reason: Reason) -> SegmentDecision:
        return self._decision(index, reason, goes=True)

    def stays(self, index: int, first_that_stays: int) -> SegmentDecision:
        segment, end = self.segments[index], self.ends[index]
        deadline = self.deadline(segment)
        if self._is_empty_last(index):
            reason = Reason.EMPTY
        elif self.log.high_watermark < end:
            reason = Reason.UNCOMMITTED
        elif index > first_that_stays:
            reason = Reason.BEHIND
        elif deadline is None:
            reason = Reason.NO_LIMIT
        elif segment.largest_timestamp > self.now_ms:
            reason = Reason.IN_THE_FUTURE
        else:
            reason = Reason.NOT_DUE
        return self._decision(index, reason, goes=False)

    def age(self, segment: SegmentFacts) -> int:
        return self.now_ms - segment.largest_timestamp

    def deadline(self, segment: SegmentFacts) -> int | None:
        if not self.limits.deletes or self.limits.retention_ms < 0:
            return None
        return segment.largest_timestamp + self.limits.retention_ms

    def _count_from(self, first: int, qualifies: Callable[[int], bool]) -> int:
        index = first
        while index < len(self.segments) and self._may_go(index) and qualifies(index):
            index += 1
        return index - first

    def _may_go(self, index: int) -> bool:
        return not self._is_empty_last(index) and self.log.high_watermark >= self.ends[index]

    def _is_empty_last(self, index: int) -> bool:
        return index == len(self.segments) - 1 and not self.segments[index].size_bytes

    def _decision(self, index: int, reason: Reason, *, goes: bool) -> SegmentDecision:
        segment = self.segments[index]
        clock = "modification time" if segment.by_modification_time else "largest record time"
        return SegmentDecision(
            segment.base_offset,
            segment.size_bytes,
            goes,
            reason,
            self.deadline(segment),
            f"{clock} {segment.largest_timestamp}, age {self.age(segment)} ms",
        )
