"""/api/timeline: every partition with what its time does; what the time page and `top` show.

One answer holds partitions in the order of topic and number, from a cursor on, with what comes next
for each, how far readers are behind, who sent bad times, and its segments as bars, no more of all
these than an answer may hold. Nothing is decided here, and nothing changes.
"""

from collections.abc import Mapping
from time import sleep
from typing import TYPE_CHECKING, NamedTuple

from broker.groups.coordinator import GroupCoordinator
from broker.groups.lag import Standing
from broker.guards.clock_guard import ClockWatch
from broker.http.port.parameters import Asked, Parameter, count
from broker.http.port.route import HttpRoute
from broker.http.resources.clock import hold_state
from broker.http.resources.partition_pages import CHOICE, cursor_behind, logs_of, page_of
from broker.http.resources.segments import spans
from broker.http.resources.topics import SEES_TOPICS
from broker.http.timeline.bars import COLUMNS, PLACES, STATES, Bar, bars_of
from broker.http.timeline.clients import Place, dirty_by_partition, furthest_behind, lag_in_time
from broker.http.timeline.schedule import retention_round_ms, upcoming
from broker.record_times.offenders import DirtyClients
from broker.runtime.probes import BrokerProbes
from broker.tasks.runner import TaskRunner
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from storage.cleaner.cleanable_logs import CleanerOffsets, is_compacted
from storage.cleaner.dirty_age import dirty_age
from storage.directory.log_manager import LogManager
from storage.env import Clock
from storage.errors import StorageError
from storage.log.lifecycle import learn_times, log_limits
from storage.retention.plan import RetentionLimits, RetentionPlan, plan
from storage.segment.times import facts_of

if TYPE_CHECKING:
    from storage.log.log import Log
    from storage.segment.log_snapshot import LogSnapshot

MAX_BARS, MAX_BARS_OF_ONE = 5000, 1000
LEARNING_SECONDS, LEARNED_AT_A_TIME = 0.3, 16
TURN_SECONDS = 0.001


class TimelineServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog
    logs: LogManager
    groups: GroupCoordinator
    tasks: TaskRunner
    dirty_clients: DirtyClients
    clock: Clock
    clock_watch: ClockWatch
    probes: BrokerProbes


class _View(NamedTuple):
    """One question, and what is looked up once for all partitions of its answer."""

    services: TimelineServices
    now_ms: int
    bars: int
    until: float
    behind: Mapping[Place, Standing]
    dirty: Mapping[Place, list[dict[str, object]]]


def _timeline(services: TimelineServices, asked: Asked) -> object:
    now_ms = services.clock.now_ms()
    view = _View(
        services,
        now_ms,
        asked.fields["bars"],
        services.probes.monotonic() + LEARNING_SECONDS,
        furthest_behind(services.groups, services.topics, asked.caller),
        dirty_by_partition(services.dirty_clients),
    )
    logs = logs_of(services.topics, asked)
    page: list[dict[str, object]] = []
    left = MAX_BARS
    for log in page_of(logs, asked):
        if left <= 0:
            break
        state = _partition(view, log)
        sleep(TURN_SECONDS)  # a millisecond of work or two: now it is the event loop's turn
        page.append(state)
        left -= max(1, len(state["bars"])) if isinstance(state["bars"], list) else 1
    return {
        "now": instant(now_ms),
        "hold": hold_state(services.clock, services.clock_watch),
        "retention_round": instant_or_none(retention_round_ms(services.tasks, now_ms)),
        "columns": list(COLUMNS),
        "states": list(STATES),
        "places": list(PLACES),
        "partitions": page,
        "partitions_in_all": len(logs),
        "next": cursor_behind(page, logs),
    }


def _partition(view: _View, log: "Log") -> dict[str, object]:
    snapshot = log.snapshot
    fault = log.fault
    state: dict[str, object] = {
        "topic": log.topic,
        "partition": log.partition,
        "log_start_offset": snapshot.log_start_offset,
        "high_watermark": snapshot.high_watermark,
        "log_end_offset": snapshot.log_end_offset,
        "size_bytes": snapshot.size_bytes,
        "segments": len(snapshot.segments),
        "segment_bytes": log.config.segment_bytes,
        "store": _store(log, snapshot),
        "lag": lag_in_time(
            view.behind.get((log.topic, log.partition)),
            may_wait=view.services.probes.monotonic() < view.until,
        ),
        "dirty": view.dirty.get((log.topic, log.partition), []),
    }
    try:
        times = _times(view, log)
    except StorageError as error:
        fault, times = fault or error, None
    return {
        **state,
        **(times or _NO_TIMES),
        "is_still_reading": times is None and fault is None,
        "fault": None if fault is None else str(fault),
    }


def _store(log: "Log", snapshot: "LogSnapshot") -> dict[str, object] | None:
    """The part of the log that the tier's store has; None when it has nothing."""
    if not log.tiers.uploaded:
        return None
    return {
        "end_offset": log.tiers.uploaded_end,
        "size_bytes": log.tiers.uploaded_bytes,
        "alone_segments": snapshot.first_local,
        "alone_bytes": log.tiers.away_bytes,
        "local_start_offset": snapshot.local_start_offset,
    }


_NO_TIMES: Mapping[str, object] = {
    "oldest_record": None,
    "newest_record": None,
    "last_arrival": None,
    "retention": None,
    "compaction": None,
    "upcoming": [],
    "bars": [],
}


def _times(view: _View, log: "Log") -> dict[str, object] | None:
    """Facts that depend on the segments' times; None until all have been looked up."""
    if not _knows_times(view, log):
        return None
    services, snapshot, now_ms = view.services, log.snapshot, view.now_ms
    cleaner_offsets = services.logs.cleaner_offsets
    segments, offsets = facts_of(snapshot)
    limits = log_limits(log, is_held=services.clock_watch.is_held)
    decided = plan(segments, offsets, limits, now_ms)
    newest = max((each.record_ms for each in segments), default=-1)
    return {
        "oldest_record": instant_or_none(_oldest_ms(log, snapshot)),
        "newest_record": instant_or_none(newest),
        "last_arrival": instant_or_none(max((each.arrival_ms for each in segments), default=-1)),
        "retention": _retention(limits, decided, now_ms),
        "compaction": _compaction(cleaner_offsets, log, now_ms),
        "upcoming": upcoming(services.tasks, cleaner_offsets, log, decided, now_ms),
        "bars": _bars(view, log, snapshot, decided) if view.bars else [],
    }


def _knows_times(view: _View, log: "Log") -> bool:
    """True when all times are known, or could be looked up in the time limit of an answer."""
    monotonic = view.services.probes.monotonic
    is_late = monotonic() > view.until
    while not learn_times(log, 0 if is_late else LEARNED_AT_A_TIME):
        if is_late:
            return False
        is_late = monotonic() > view.until
    return True


def _oldest_ms(log: "Log", snapshot: "LogSnapshot") -> int:
    """The smallest record time in the oldest segment that has records; -1 if there is none."""
    last = len(snapshot.segments) - 1
    for index, segment in enumerate(snapshot.segments):
        limit = snapshot.end_of(index)
        if limit:
            return spans.of(log, segment, limit, is_active=index == last).first_record_ms
    return -1


def _bars(view: _View, log: "Log", snapshot: "LogSnapshot", decided: RetentionPlan) -> list[Bar]:
    place = log.topic, log.partition
    logs = view.services.logs
    offsets = logs.cleaner_offsets
    return bars_of(
        log,
        snapshot,
        decided.decisions,
        log.tiers.places(snapshot, is_rewritten=logs.is_rewritten(log)),
        spans,
        at_most=view.bars,
        first_dirty=offsets.first_dirty.get(place, -1) if is_compacted(log.config) else -1,
        now_ms=view.now_ms,
    )


def _retention(limits: RetentionLimits, decided: RetentionPlan, now_ms: int) -> dict[str, object]:
    horizon = -1
    if limits.deletes and limits.retention_ms >= 0:
        horizon = now_ms - limits.retention_ms
    if limits.deletes:
        horizon = max(horizon, limits.before_ms)
    blocker, due = decided.blocker, decided.next_deadline_ms
    return {
        "clock": str(limits.clock),
        "horizon": instant_or_none(horizon),
        "leaving_segments": len(decided.leaving),
        "overdue_segments": decided.overdue(now_ms),
        "overdue_ms": 0 if due is None else max(0, now_ms - due),
        "stays": None if blocker is None else blocker.base_offset,
        "stays_because": None if blocker is None else str(blocker.reason),
        "stays_until": (
            None if blocker is None or blocker.deadline_ms is None else instant(blocker.deadline_ms)
        ),
    }


def _compaction(offsets: CleanerOffsets, log: "Log", now_ms: int) -> dict[str, object] | None:
    """None for a topic that is not compacted."""
    if not is_compacted(log.config):
        return None
    age = dirty_age(log, offsets)
    return {
        "oldest_dirty": instant_or_none(age.oldest_ms),
        "deadline": instant_or_none(age.deadline_ms),
        "overdue_ms": age.delay_ms(now_ms),
    }


ROUTES = (
    HttpRoute(
        TimelineServices,
        "GET",
        "/api/timeline",
        "Every partition: its segments as bars on a time axis, the retention horizon, what goes "
        "next and when, bad times, and the group that is furthest behind.",
        needs=SEES_TOPICS,
        read=_timeline,
        parameters=(
            *CHOICE,
            Parameter(
                "bars",
                count(0, MAX_BARS_OF_ONE),
                f"Bars a partition; an answer ends with the partition that has bar {MAX_BARS}",
                0,
            ),
        ),
    ),
)
