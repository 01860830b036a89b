"""/api/topics/{topic}/compaction: what waits for compaction, for how long, and what holds it up.

Reckoned at the moment of the question, not at the cleaner's last look. Nothing changes. What a run
would remove is known only once the keys are read, so the answer has bounds, which are exact.
"""

from typing import TYPE_CHECKING, NamedTuple

from broker.guards.clock_guard import ClockWatch
from broker.http.port.caller import Needs
from broker.http.port.messages import ApiError
from broker.http.port.parameters import Asked, Parameter, count
from broker.http.port.route import HttpRoute
from broker.http.resources.clock import hold_state
from broker.http.resources.topics import find_partitions, find_topic
from broker.runtime.probes import BrokerProbes
from broker.tasks.cleaner import Cleaner
from broker.topics.topic_catalog import TopicCatalog
from config.quantities import Instant, instant, instant_or_none
from config.store import ConfigStore
from protocol.acls import AclOperation, ResourceType
from protocol.records.batch import NO_TIMESTAMP
from storage.cleaner.cleanable_logs import facts_of, is_compacted, learn_ages
from storage.cleaner.dirty_age import DirtyAge, dirty_age, learn_dirty_age
from storage.directory.log_manager import LogManager
from storage.env import Clock
from storage.log.lifecycle import roll_deadline
from storage.retention.cleanability import CleaningFacts, CleanReason, Verdict, judge
from storage.retention.limits import cleaning_limits_of

if TYPE_CHECKING:
    from storage.log.log import Log

LEARNING_SECONDS, LEARNED_AT_A_TIME = 2.0, 16
SETTINGS = (
    "cleanup.policy",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
    "segment.ms",
    "segment.bytes",
)


class CompactionServices(NamedTuple):
    """The services that the answers are made with."""

    topics: TopicCatalog
    logs: LogManager
    config: ConfigStore
    cleaner: Cleaner
    clock: Clock
    clock_watch: ClockWatch
    probes: BrokerProbes


class Blocker(NamedTuple):
    """The obstacle to a run, as a word and a sentence, and its end if known."""

    word: str
    because: str
    until: Instant | None = None


def compaction_state(cleaner: Cleaner, log: "Log") -> dict[str, object] | None:
    """None when the topic is not compacted, or before the first look at it."""
    verdict = cleaner.verdicts.get(log)
    if verdict is None:
        return None
    aside = cleaner.set_aside.get(log)
    return {
        **_figures(verdict),
        "overdue_ms": verdict.delay_ms,
        "deadline": instant_or_none(verdict.deadline_ms),
        "set_aside_because": None if aside is None else aside.reason,
    }


def _figures(verdict: Verdict) -> dict[str, object]:
    return {
        "first_dirty_offset": verdict.first_dirty,
        "first_uncleanable_offset": verdict.first_uncleanable,
        "clean_bytes": verdict.clean_bytes,
        "cleanable_bytes": verdict.cleanable_bytes,
        "dirty_ratio": round(verdict.dirty_ratio, 6),
        "is_eligible": verdict.is_eligible,
        "because": str(verdict.because),
    }


def _compaction(services: CompactionServices, asked: Asked) -> object:
    topic = find_topic(services.topics, asked.path["topic"], asked.caller)
    now_ms = services.clock.now_ms()
    partitions = find_partitions(topic, asked.fields["partition"])
    return {
        "topic": topic.name,
        "now": instant(now_ms),
        "hold": hold_state(services.clock, services.clock_watch),
        "settings": {
            each.name: {"value": each.value, "source": each.source.name}
            for each in services.config.describe_topic(topic.name, SETTINGS)
        },
        "is_compacted": any(is_compacted(each.log.config) for each in partitions),
        "cleaner_is_on": services.config.broker_config.log_cleaner_enable,
        "partitions": [
            _partition(services, each.log, now_ms)
            for each in partitions
            if is_compacted(each.log.config)
        ],
    }


def _partition(services: CompactionServices, log: "Log", now_ms: int) -> dict[str, object]:
    _learn(services, log)
    offsets = services.logs.cleaner_offsets
    facts, age = facts_of(log, offsets), dirty_age(log, offsets)
    verdict = judge(facts, cleaning_limits_of(log.config), now_ms)
    blocker = _fault(services, log, now_ms) or _switched_off(services)
    blocker = blocker or _waiting(log, facts, verdict, now_ms)
    snapshot = log.snapshot
    return {
        "partition": log.partition,
        "log_start_offset": snapshot.log_start_offset,
        "log_end_offset": snapshot.log_end_offset,
        **_figures(verdict),
        "oldest_dirty": _oldest(age, now_ms),
        "deadline": instant_or_none(age.deadline_ms),
        "overdue_ms": age.delay_ms(now_ms),
        "blocked_by": None if blocker is None else blocker.word,
        "blocked_because": None if blocker is None else blocker.because,
        "blocked_until": None if blocker is None else blocker.until,
        "next_run": _next_run(facts, verdict, now_ms),
        "last_run": _last_run(services, log),
    }


def _learn(services: CompactionServices, log: "Log") -> None:
    """Look up the times that nobody has looked at since the start; ApiError 503."""
    monotonic, offsets = services.probes.monotonic, services.logs.cleaner_offsets
    until = monotonic() + LEARNING_SECONDS
    while not (
        learn_ages(log, LEARNED_AT_A_TIME) and learn_dirty_age(log, offsets, LEARNED_AT_A_TIME)
    ):
        if monotonic() > until:
            raise ApiError(
                503,
                "still_reading",
                f"The times of {log.topic}-{log.partition}'s segments are still read: ask again",
                {"Retry-After": "1"},
            )


def _oldest(age: DirtyAge, now_ms: int) -> dict[str, object] | None:
    """The oldest record that no run has seen; of a segment clean in part, its first record."""
    if age.oldest_ms == NO_TIMESTAMP:
        return None
    return {"time": instant(age.oldest_ms), "age_ms": max(0, now_ms - age.oldest_ms)}


def _next_run(facts: CleaningFacts, verdict: Verdict, now_ms: int) -> dict[str, object]:
    """The effect of a run that began now, in exact bounds.

    A record that no run has seen takes the place of one other at most, or goes itself, since the
    clean part holds each key once. Tombstones whose time is up come on top: their number is not
    kept, so the bound is then everything below the first uncleanable offset.
    """
    begin, end = verdict.first_dirty, verdict.first_uncleanable
    if 0 <= facts.horizon_ms <= now_ms:
        begin = facts.start_offset
    return {
        "from_offset": verdict.first_dirty,
        "to_offset": end,
        "read_bytes": verdict.clean_bytes + 2 * verdict.cleanable_bytes,
        "removes_records_at_most": end - begin,
        "tombstones_go_at": instant_or_none(facts.horizon_ms),
    }


def _last_run(services: CompactionServices, log: "Log") -> dict[str, object] | None:
    """The last run since the broker's start that ended well."""
    run = services.cleaner.last_runs.get(log)
    if run is None:
        return None
    return {
        "records_read": run.stats.records_read,
        "records_removed": run.stats.records_read - run.stats.records_kept,
        "keyless_records": run.stats.keyless_records,
        "bytes_read": run.stats.bytes_read,
        "bytes_written": run.stats.bytes_written,
        "map_utilisation": round(run.map_utilisation, 6),
    }


# --- what holds it up: the first thing that would have to change ---


def _fault(services: CompactionServices, log: "Log", now_ms: int) -> Blocker | None:
    if log.fault is not None:
        return Blocker("offline", f"the log takes no changes: {log.fault}")
    if log.compaction.is_stuck:
        why = "files that a failed run left could not be removed: only a restart can settle that"
        return Blocker("stuck", why)
    aside = services.cleaner.set_aside.get(log)
    if aside is None:
        return None
    left_ms = int((aside.until - services.clock.monotonic()) * 1000)
    return Blocker("set_aside", aside.reason, instant(now_ms + max(0, left_ms)))


def _switched_off(services: CompactionServices) -> Blocker | None:
    if not services.config.broker_config.log_cleaner_enable:
        return Blocker("cleaner_off", "log.cleaner.enable is false")
    if services.clock_watch.is_held:
        return Blocker("clock_held", "the broker's clock is unverified: horolog clock confirm")
    return None


def _waiting(log: "Log", facts: CleaningFacts, verdict: Verdict, now_ms: int) -> Blocker | None:
    """None when a round takes the log."""
    if verdict.is_eligible or log.compaction.is_running:
        return None
    word, because = verdict.because.name.lower(), str(verdict.because)
    if verdict.because is CleanReason.TOO_YOUNG:
        return Blocker(word, because, _ripe(log, facts, verdict))
    if verdict.because is not CleanReason.CLEAN:
        return Blocker(word, because)
    if verdict.first_dirty >= log.snapshot.log_end_offset:
        return Blocker(word, "nothing is dirty")
    deadline = roll_deadline(log, now_ms)
    until = None if deadline is None else instant(deadline)
    return Blocker("active_segment", "all dirty records are in the active segment", until)


def _ripe(log: "Log", facts: CleaningFacts, verdict: Verdict) -> Instant | None:
    """The time when the first segment younger than `min.compaction.lag.ms` reaches that age."""
    ends = [*(each.base_offset for each in facts.segments[1:]), facts.active_base]
    for segment, end in zip(facts.segments, ends, strict=False):
        if end > verdict.first_uncleanable:
            return instant(segment.newest_ms + cleaning_limits_of(log.config).min_lag_ms)
    return None


ROUTES = (
    HttpRoute(
        CompactionServices,
        "GET",
        "/api/topics/{topic}/compaction",
        "Each partition of a compacted topic: what is dirty, how old the oldest of it is, when it "
        "has to be compacted, what holds that up, and what the next run would do.",
        needs=Needs(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, "topic"),
        read=_compaction,
        parameters=(Parameter("partition", count(0, 2**31 - 1), "This partition only"),),
    ),
)
