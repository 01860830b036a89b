"""/api/topics/{topic}/segments: the reason why each segment is still here, and until when (time.md
5).

The decisions are those of `storage.retention.plan` and `storage.retention.rolling`, with their
reasons, as of now. Nothing changes. An answer is a page: the plan is computed for the whole log,
its segments are listed some at a time.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, Parameter, ParameterKind, count
from broker.http.port.route import HttpRoute
from broker.http.resources.clock import hold_state
from broker.http.resources.compaction import compaction_state
from broker.http.resources.retention_advice import Freeing
from broker.http.resources.segment_times import TimeSpan, TimeSpans
from broker.http.resources.topics import SEES_TOPIC, find_partitions, find_topic, settings_of
from broker.record_times.offenders import DirtyClients
from broker.runtime.probes import BrokerProbes
from broker.tasks.cleaner import Cleaner
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import instant, instant_or_none
from config.store import ConfigStore
from storage.directory.log_manager import LogManager
from storage.env import Clock
from storage.errors import StorageError
from storage.log.lifecycle import learn_times, log_limits, roll_deadline
from storage.log.segment_tiers import SegmentPlace
from storage.retention.plan import LogFacts, RetentionPlan, SegmentDecision, SegmentFacts, plan
from storage.segment.log_snapshot import LogSnapshot
from storage.segment.segment import Segment
from storage.segment.times import facts_of
from storage.segment.writer import max_wait_ms

if TYPE_CHECKING:
    from storage.log.log import Log

MAX_SEGMENTS = 1000
LEARNING_SECONDS = 2.0
LEARNED_AT_A_TIME = 16

spans = TimeSpans()
"""Values computed for any answer."""


class SegmentServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog
    config: ConfigStore
    cleaner: Cleaner
    logs: LogManager
    dirty_clients: DirtyClients
    clock: Clock
    clock_watch: ClockWatch
    probes: BrokerProbes


class JudgedSegment(NamedTuple):
    """A log at one moment, and what retention decides on it."""

    snapshot: LogSnapshot
    segments: Sequence[SegmentFacts]
    offsets: LogFacts
    plan: RetentionPlan
    freeing: Freeing
    blocker: dict[str, object] | None
    """The oldest segment that stays, for which all behind it wait."""
    places: Sequence[SegmentPlace]


def judge(services: SegmentServices, log: "Log", now_ms: int) -> JudgedSegment:
    """The decisions as of `now_ms`; ApiError 503 while times still have to be looked up."""
    learn_all_times(services.probes, log)
    snapshot = log.snapshot
    segments, offsets = facts_of(snapshot)
    limits = log_limits(log, is_held=services.clock_watch.is_held)
    decided = plan(segments, offsets, limits, now_ms)
    freeing = Freeing(log, services.dirty_clients.who, limits, now_ms)
    blocker = freeing.blocker(snapshot, decided.blocker)
    places = log.tiers.places(snapshot, is_rewritten=services.logs.is_rewritten(log))
    return JudgedSegment(snapshot, segments, offsets, decided, freeing, blocker, places)


def learn_all_times(probes: BrokerProbes, log: "Log") -> None:
    """Look up the times of segments that nobody has looked at since the start; ApiError 503."""
    monotonic = probes.monotonic
    until = monotonic() + LEARNING_SECONDS
    while not learn_times(log, LEARNED_AT_A_TIME):
        if monotonic() > until:
            raise ApiError(
                503,
                "still_reading",
                f"The times of {log.topic}-{log.partition}'s segments are still read: ask again",
                {"Retry-After": "1"},
            )


def _segments(services: SegmentServices, asked: Asked) -> object:
    topic = find_topic(services.topics, asked.path["topic"], asked.caller)
    now_ms, left = services.clock.now_ms(), asked.fields["limit"]
    begin, offset = asked.fields["after"]
    states: list[dict[str, object]] = []
    follows = None
    for partition in find_partitions(topic, asked.fields["partition"]):
        if partition.index < begin:
            continue
        after = offset if partition.index == begin else -1
        state, page, has_more = _partition(services, partition.log, now_ms, after, left)
        states.append(state)
        left -= len(page)
        last = page[-1]["base_offset"] if page else after
        if has_more or not left:
            follows = f"{partition.index}:{last}"
            break
    return {
        "topic": topic.name,
        "now": instant(now_ms),
        "hold": hold_state(services.clock, services.clock_watch),
        "settings": settings_of(services.config, topic.name, asked.caller),
        "partitions": states,
        "next": follows,
    }


def _partition(
    services: SegmentServices, log: "Log", now_ms: int, after: int, at_most: int
) -> tuple[dict[str, object], list[dict[str, object]], bool]:
    judged = judge(services, log, now_ms)
    wanted = [i for i, each in enumerate(judged.snapshot.segments) if each.base_offset > after]
    page = [_segment(log, judged, index, now_ms) for index in wanted[:at_most]]
    snapshot = judged.snapshot
    state: dict[str, object] = {
        "partition": log.partition,
        "log_start_offset": snapshot.log_start_offset,
        "high_watermark": snapshot.high_watermark,
        "log_end_offset": snapshot.log_end_offset,
        "size_bytes": snapshot.size_bytes,
        "segment_count": len(snapshot.segments),
        "leaving_count": len(judged.plan.leaving),
        "overdue_count": judged.plan.overdue(now_ms),
        "blocker": judged.blocker,
        "roll": _roll(services, log, now_ms),
        "compaction": compaction_state(services.cleaner, log),
        "segments": page,
    }
    return state, page, len(wanted) > at_most


def _segment(log: "Log", judged: JudgedSegment, index: int, now_ms: int) -> dict[str, object]:
    snapshot = judged.snapshot
    segment, limit = snapshot.segments[index], snapshot.end_of(index)
    is_active = index == len(snapshot.segments) - 1
    end = snapshot.log_end_offset if is_active else snapshot.segments[index + 1].base_offset
    return {
        "base_offset": segment.base_offset,
        "end_offset": end,
        "size_bytes": limit,
        "state": "active" if is_active else "closed",
        "place": judged.places[index].value,
        **_times(log, segment, limit, is_active=is_active),
        "retention": _decision(judged, index, end, now_ms),
    }


def _times(log: "Log", segment: Segment, limit: int, *, is_active: bool) -> dict[str, object]:
    try:
        span, fault = spans.of(log, segment, limit, is_active=is_active), None
    except StorageError as error:
        span, fault = TimeSpan(), str(error)
    largest = segment.max_timestamp
    return {
        "record_time": {
            "first": instant_or_none(span.first_record_ms),
            "last": instant_or_none(largest),
            "last_offset": segment.max_timestamp_offset if largest >= 0 else None,
            "is_append_time": span.is_append_time,
        },
        "arrival_time": {
            "first": instant_or_none(span.first_arrival_ms),
            "last": instant_or_none(span.last_arrival_ms),
            "is_estimated": span.is_estimated,
        },
        "fault": fault,
    }


def _decision(judged: JudgedSegment, index: int, end_offset: int, now_ms: int) -> dict[str, object]:
    decision: SegmentDecision = judged.plan.decisions[index]
    deadline = decision.deadline_ms
    overdue_ms = 0 if deadline is None else max(0, now_ms - deadline)
    return {
        "goes": decision.goes,
        "reason": decision.reason.name.lower(),
        "because": str(decision.reason),
        "clock": str(judged.freeing.limits.clock),
        "judged_by": str(decision.judged_by),
        "time": instant_or_none(decision.time_ms),
        "deadline": None if deadline is None else instant(deadline),
        "overdue_ms": overdue_ms,
        "blocked_by": decision.blocked_by,
        "frees": judged.freeing.ways(decision, judged.segments[index], end_offset),
    }


def _roll(services: SegmentServices, log: "Log", now_ms: int) -> dict[str, object]:
    """The time when the active segment rolls by the timer, and its size limit."""
    snapshot, config = log.snapshot, log.config
    segment = snapshot.active
    try:
        deadline, fault = roll_deadline(log, now_ms), None
    except StorageError as error:
        deadline, fault = None, str(error)
    is_empty = not snapshot.end_position
    why = "empty: it ends once it holds something" if is_empty else "segment.ms"
    if deadline is not None and services.clock_watch.is_held and deadline < now_ms:
        why = "suspended: the broker's clock is unverified"
    return {
        "base_offset": segment.base_offset,
        "deadline": None if deadline is None else instant(deadline),
        "because": why,
        "first_record_time": None if is_empty else instant_or_none(segment.first_timestamp),
        "first_arrival_time": None if is_empty else instant_or_none(segment.first_arrival_ms),
        "max_wait_ms": max_wait_ms(config) - segment.jitter_ms,
        "size_bytes": snapshot.end_position,
        "ends_at_bytes": config.segment_bytes,
        "fault": fault,
    }


def _cursor(text: str, _: int) -> tuple[int, int]:
    partition, mark, offset = text.partition(":")
    if not mark:
        raise ValueError(f"{text!r} is not PARTITION:OFFSET, as 'next' of the page before gave it")
    return int(partition), int(offset)


def _parameters() -> Iterator[Parameter]:
    yield Parameter("partition", count(0, 2**31 - 1), "This partition only")
    yield Parameter(
        "after", ParameterKind(_cursor), "Go on behind this: 'next' of the last page", (0, -1)
    )
    yield Parameter("limit", count(1, MAX_SEGMENTS), "Segments in the answer", 100)


ROUTES = (
    HttpRoute(
        SegmentServices,
        "GET",
        "/api/topics/{topic}/segments",
        "Each segment: sizes, times by both clocks, whether it goes or what keeps it, until when, "
        "what would free it, and when the active one ends.",
        needs=SEES_TOPIC,
        read=_segments,
        parameters=tuple(_parameters()),
    ),
)
