"""Segments past retention that stay because an older one stays. Pure decisions.

Retention goes from the oldest segment to the newest and stops at the first that stays (semantics.md
4), so one record of the far future retains its segment and all behind it. The input is
`storage.retention.plan`'s plan of a log: once by the topic's own clock, once by arrival, which no
client can move.
"""

from collections.abc import Sequence
from typing import NamedTuple

from storage.retention.plan import (
    LogFacts,
    Reason,
    RetentionClock,
    RetentionLimits,
    RetentionPlan,
    SegmentFacts,
    arrival_of,
    plan,
)

_BY_RECORD = frozenset({RetentionClock.RECORD, RetentionClock.EARLIER})
_BY_CHOICE = frozenset({Reason.NO_LIMIT, Reason.MIN_STAY, Reason.HELD, Reason.UNCOMMITTED})


class Pinned(NamedTuple):
    """One partition at one moment. Times in ms; None where there is nothing to say."""

    segments: int
    size_bytes: int
    held_segments: int
    """Past their own deadline, and waiting for an older one."""
    held_bytes: int
    overdue_ms: int
    """For how long the one that waits longest has been past its deadline."""
    blocker_base: int | None
    """The segment that they wait for; the last to go, where several stand in the way."""
    blocker_time_ms: int | None
    """The time that it is judged by."""
    until_ms: int | None
    """Time when the first pinned one goes at last (ms); None: never by time."""
    arrival_segments: int
    """Number of segments that would go if the topic's age were measured from arrival."""
    arrival_bytes: int

    @property
    def is_pinned(self) -> bool:
        """True when a segment is pinned."""
        return self.held_segments > 0


def judge_pinned(
    segments: Sequence[SegmentFacts], log: LogFacts, limits: RetentionLimits, now_ms: int
) -> Pinned:
    """Pinned segments of a log at `now_ms`, the blocker, and its end."""
    decided = plan(segments, log, limits, now_ms)
    by_arrival = plan(segments, log, limits._replace(clock=RetentionClock.ARRIVAL), now_ms).leaving
    held = _held(segments, decided, limits, now_ms)
    blocker, until = _blocker(decided, held[0]) if held else (None, None)
    due = [_due_ms(segments[at], limits) for at in held]
    return Pinned(
        len(segments),
        sum(segment.size_bytes for segment in segments),
        len(held),
        sum(segments[at].size_bytes for at in held),
        max((now_ms - ms for ms in due), default=0),
        None if blocker is None else decided.decisions[blocker].base_offset,
        None if blocker is None else decided.decisions[blocker].time_ms,
        until,
        len(by_arrival),
        sum(each.size_bytes for each in by_arrival),
    )


def _held(
    segments: Sequence[SegmentFacts], decided: RetentionPlan, limits: RetentionLimits, now_ms: int
) -> list[int]:
    """The segments whose own deadline, or whose arrival's, has passed, and that are kept back.

    The one in the way counts too, once what it holds came longer ago than the topic keeps things.
    """
    first = next((each for each in decided.decisions if not each.goes), None)
    if first is None or first.reason in _BY_CHOICE or limits.retention_ms < 0:
        return []
    return [
        at
        for at, decision in enumerate(decided.decisions)
        if not decision.goes
        and decision.reason in {Reason.BEHIND, Reason.IN_THE_FUTURE}
        and _due_ms(segments[at], limits) < now_ms
    ]


def _due_ms(segment: SegmentFacts, limits: RetentionLimits) -> int:
    """Time when the segment would go if it stood alone and no time were ahead of its arrival."""
    arrival = arrival_of(segment)
    since = arrival
    if segment.record_ms >= 0 and limits.clock in _BY_RECORD:
        since = min(segment.record_ms, arrival)
    return max(since + limits.retention_ms, arrival + limits.min_stay_ms)


def _blocker(decided: RetentionPlan, first_held: int) -> tuple[int, int | None]:
    """Of the segments up to the first pinned one, the last that goes by its own age, and when."""
    candidates = [
        at for at, each in enumerate(decided.decisions[: first_held + 1]) if not each.goes
    ]
    never = [at for at in candidates if decided.decisions[at].deadline_ms is None]
    if never:
        return never[0], None
    last = max(candidates, key=lambda at: decided.decisions[at].deadline_ms or 0)
    return last, decided.decisions[last].deadline_ms
