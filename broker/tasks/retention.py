"""Retention: removes old segments by start offset, size and time, with the reason (time.md 4, 5).

A round looks at every log: times that are not known are looked up on a lane, some at a time;
decisions are made there too, on snapshots; segments leave in steps that take their turn among the
partition's writes. Overdue segments that stay are counted, and the log of events says once what
they wait for.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from broker.runtime.callbacks import failed
from broker.runtime.event_log import event
from broker.runtime.gathering import wait_for
from protocol.errors import KafkaError
from storage.errors import StorageError
from storage.log.lifecycle import learn_times, plan_retention
from storage.retention.plan import Reason, RetentionPlan, SegmentDecision
from storage.segment.removal import RemovalStep

if TYPE_CHECKING:
    from broker.guards.clock_guard import ClockWatch
    from broker.partitions.partition import Partition
    from broker.runtime.lanes import DiskLane
    from broker.topics.topic_catalog import TopicCatalog
    from storage.directory.log_manager import LogManager
    from storage.env import Clock
    from storage.log.log import Log

LOGS_AT_A_TIME = 64
SEGMENTS_LOOKED_UP = 4  # of each log, in one visit to the lane
COMMIT_SECONDS = 60.0  # for which records may be on their way to the disk and block nothing


class RetentionStatus(NamedTuple):
    """Findings of the last round about a log's segments that stay."""

    overdue_segments: int
    """Those past their own deadline: something in front of them holds them."""
    next_deadline_ms: int | None
    """Time when the first of those that stay is due by its own age; it may be past."""
    because: Reason | None
    """Reason why the oldest of them stays."""
    oldest_ms: int | None
    """The time that the oldest of them is judged by; None when nothing is left."""
    in_commit: "InCommit | None" = None
    """Set when the oldest of them holds offsets above the high watermark."""


class InCommit(NamedTuple):
    """A high watermark that offsets stand above, and since when it was seen there (monotonic)."""

    high_watermark: int
    since_seconds: float


class Retention:
    """The rounds, and what they found. Used from the event loop."""

    def __init__(
        self,
        topics: "TopicCatalog",
        logs: "LogManager",
        clock: "Clock",
        clock_watch: "ClockWatch",
        lane: "DiskLane",
    ) -> None:
        """Nothing was looked at. Times are looked up and plans made on `lane`."""
        self._topics = topics
        self._logs = logs
        self._clock = clock
        self._clock_watch = clock_watch
        self._lane = lane
        self.verdicts: dict[Log, RetentionStatus] = {}
        """Read by the scrape, from its own thread: changed by single assignments."""
        self.removed_segments = 0
        self.removed_bytes = 0

    async def run(self) -> None:
        """One round over all logs."""
        partitions = list(self._topics.image.led_here())
        for begin in range(0, len(partitions), LOGS_AT_A_TIME):
            for partition, plan in await self._plans(partitions[begin : begin + LOGS_AT_A_TIME]):
                try:
                    await self._apply(partition, plan)
                except Exception as error:  # noqa: BLE001 - the other logs are looked at
                    _went_wrong(partition, error)
        logs = {partition.log for partition in partitions}
        self.verdicts = {log: found for log, found in self.verdicts.items() if log in logs}

    async def look_at(self, partition: "Partition") -> RetentionPlan | None:
        """A round over one log; the plan that was carried out."""
        plans = await self._plans([partition])
        for each, plan in plans:
            await self._apply(each, plan)
        return plans[0][1] if plans else None

    async def _plans(
        self, partitions: Sequence["Partition"]
    ) -> "list[tuple[Partition, RetentionPlan]]":
        known = await self._with_known_times(partitions)
        is_held, now_ms = self._clock_watch.look(), self._clock.now_ms()
        plans = await self._lane.run(
            lambda: [_planned(each, now_ms, is_held=is_held) for each in known],
        )
        found: list[tuple[Partition, RetentionPlan]] = []
        for partition, plan in zip(known, plans, strict=True):
            if isinstance(plan, Exception):
                _went_wrong(partition, plan)
                continue
            try:
                self._judge(partition, plan, now_ms)
            except Exception as error:  # noqa: BLE001 - the other logs are looked at
                _went_wrong(partition, error)
            else:
                found.append((partition, plan))
        return found

    async def _with_known_times(self, partitions: "Sequence[Partition]") -> "list[Partition]":
        """Those in service, once the times of all their segments are known."""
        known: list[Partition] = []
        left = [partition for partition in partitions if partition.log.takes_changes]
        while left:
            outcomes = await self._lane.run(_learn, left)
            answered = list(zip(left, outcomes, strict=True))
            known += [partition for partition, outcome in answered if outcome is True]
            left = [partition for partition, outcome in answered if outcome is False]
            for partition, outcome in answered:
                if isinstance(outcome, Exception):
                    _went_wrong(partition, outcome)
        return known

    def _judge(self, partition: "Partition", plan: RetentionPlan, now_ms: int) -> None:
        blocker, before = plan.blocker, self.verdicts.get(partition.log)
        now = self._clock.monotonic()
        in_commit = _in_commit(plan, before, now)
        passes = in_commit is not None and now - in_commit.since_seconds < COMMIT_SECONDS
        verdict = RetentionStatus(
            0 if passes else plan.overdue(now_ms),
            None if passes else plan.next_deadline_ms,
            blocker.reason if blocker is not None else None,
            None if blocker is None or blocker.reason is Reason.EMPTY else blocker.time_ms,
            in_commit,
        )
        self.verdicts[partition.log] = verdict
        was_blocked = before is not None and before.overdue_segments > 0
        if verdict.overdue_segments and not was_blocked and blocker is not None:
            _tell_blocked(partition, verdict, blocker)

    async def _apply(self, partition: "Partition", plan: RetentionPlan) -> None:
        leaving = plan.leaving
        if not leaving:
            return
        log = partition.log
        remove = partial(
            self._logs.remove_segments, log, plan.start_offset, all_go=plan.rolls_first
        )
        gone: set[int] = set()
        try:
            step = RemovalStep((), 0, has_more=True)
            while step.has_more:
                step = await wait_for(partition.writer.in_turn(remove))
                gone.update(segment.base_offset for segment in step.segments)
        except KafkaError as error:
            event("retention_failed", "warning", log=partition, error=error)
        self._report(partition, [each for each in leaving if each.base_offset in gone])

    def _report(self, partition: "Partition", gone: Sequence[SegmentDecision]) -> None:
        start_offset = partition.log.snapshot.log_start_offset
        for alike in _alike(gone):
            size = sum(each.size_bytes for each in alike)
            self.removed_segments += len(alike)
            self.removed_bytes += size
            event(
                "segments_removed",
                log=partition,
                because=alike[0].reason,
                segments=len(alike),
                bytes=size,
                first_offset=alike[0].base_offset,
                log_start_offset=start_offset,
                judged_by=alike[-1].judged_by,
                time_ms=alike[-1].time_ms,
                deadline_ms=alike[-1].deadline_ms,
            )


def _in_commit(plan: RetentionPlan, before: RetentionStatus | None, now: float) -> InCommit | None:
    """Since when the log has been between a write and its commit, which is a matter of moments.

    A high watermark that stands still for longer is a block like any other.
    """
    if plan.blocker is None or plan.blocker.reason is not Reason.UNCOMMITTED:
        return None
    earlier = None if before is None else before.in_commit
    if earlier is not None and earlier.high_watermark == plan.high_watermark:
        return earlier
    return InCommit(plan.high_watermark, now)


def _tell_blocked(
    partition: "Partition", verdict: RetentionStatus, blocker: SegmentDecision
) -> None:
    event(
        "retention_blocked",
        "warning",
        log=partition,
        overdue_segments=verdict.overdue_segments,
        blocked_by=blocker.base_offset,
        because=blocker.reason,
        judged_by=blocker.judged_by,
        time_ms=blocker.time_ms,
        until_ms=blocker.deadline_ms,
    )


def _went_wrong(partition: "Partition", error: Exception) -> None:
    """One log is left out of this round; what nobody expected is counted, too."""
    event("retention_failed", "warning", log=partition, error=error)
    if not isinstance(error, KafkaError | StorageError):
        failed("task", error)


def _learn(partitions: "Sequence[Partition]") -> list[bool | Exception]:
    """On a lane: for each, whether all times are known now, or what went wrong."""
    outcomes: list[bool | Exception] = []
    for partition in partitions:
        try:
            outcomes.append(learn_times(partition.log, SEGMENTS_LOOKED_UP))
        except Exception as error:  # noqa: BLE001 - handed to the loop
            outcomes.append(error)
    return outcomes


def _planned(partition: "Partition", now_ms: int, *, is_held: bool) -> RetentionPlan | Exception:
    """On a lane: the plan, or what went wrong."""
    try:
        return plan_retention(partition.log, now_ms, is_held=is_held)
    except Exception as error:  # noqa: BLE001 - handed to the loop
        return error


def _alike(decisions: Sequence[SegmentDecision]) -> Iterator[list[SegmentDecision]]:
    """Neighbours that went for the same reason."""
    for _, alike in groupby(decisions, lambda each: each.reason):
        yield list(alike)
