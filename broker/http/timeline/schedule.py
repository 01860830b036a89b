"""Events that time brings to a partition: removal, roll, compaction.

Each event carries its reason. `at` None: unknown, or it waits for something else.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.tasks.runner import TaskRunner
from config.quantities import instant, instant_or_none
from storage.cleaner.cleanable_logs import CleanerOffsets
from storage.cleaner.dirty_age import dirty_age, has_bound
from storage.log.lifecycle import knows_roll_deadline, roll_deadline
from storage.retention.plan import RetentionPlan

if TYPE_CHECKING:
    from storage.log.log import Log

REMOVAL, ROLL, COMPACTION = "removal", "roll", "compaction"
RETENTION_TASK = "retention"
Event = dict[str, object]


def upcoming(
    tasks: TaskRunner, offsets: CleanerOffsets, log: "Log", plan: RetentionPlan, now_ms: int
) -> list[Event]:
    """Known future events, soonest first. Reads files only to find the segment's begin."""
    events = [*_removals(tasks, plan, now_ms), *_roll(log, now_ms), *_compaction(offsets, log)]
    return sorted(events, key=_when)


def retention_round_ms(tasks: TaskRunner, now_ms: int) -> int | None:
    """The time of the next round of retention, in ms; None before the broker has started."""
    seconds = tasks.due_in(RETENTION_TASK)
    return None if seconds is None else now_ms + max(0, round(seconds * 1000))


def _when(event: Event) -> tuple[bool, int]:
    at = event["at"]
    return (False, at["ms"]) if isinstance(at, dict) else (True, 0)


def _removals(tasks: TaskRunner, plan: RetentionPlan, now_ms: int) -> Iterator[Event]:
    """Those that go at the next round, and the oldest of those that stay."""
    leaving = plan.leaving
    if leaving:
        yield {
            "what": REMOVAL,
            "at": instant_or_none(retention_round_ms(tasks, now_ms)),
            "because": str(leaving[0].reason),
            "base_offset": leaving[0].base_offset,
            "segments": len(leaving),
            "size_bytes": sum(each.size_bytes for each in leaving),
        }
    blocker = plan.blocker
    if blocker is not None and blocker.size_bytes and blocker.deadline_ms is not None:
        yield {
            "what": REMOVAL,
            "at": instant(blocker.deadline_ms),
            "because": f"until then: {blocker.reason}",
            "base_offset": blocker.base_offset,
            "segments": 1,
            "size_bytes": blocker.size_bytes,
        }


def _roll(log: "Log", now_ms: int) -> Iterator[Event]:
    snapshot = log.snapshot
    if not knows_roll_deadline(log):
        return
    deadline = roll_deadline(log, now_ms)
    if deadline is not None:
        yield {
            "what": ROLL,
            "at": instant(deadline),
            "because": "its active segment is as old as it may get (segment.ms)",
            "base_offset": snapshot.active.base_offset,
            "segments": 1,
            "size_bytes": snapshot.end_position,
        }


def _compaction(offsets: CleanerOffsets, log: "Log") -> Iterator[Event]:
    if not has_bound(log):
        return
    deadline = dirty_age(log, offsets).deadline_ms
    if deadline >= 0:
        yield {
            "what": COMPACTION,
            "at": instant(deadline),
            "because": "its oldest dirty record is as old as it may get (max.compaction.lag.ms)",
            "base_offset": None,
            "segments": None,
            "size_bytes": None,
        }
