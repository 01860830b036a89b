"""Facts of a log's segments as time passes, and decisions on them.

Decisions read no file and change nothing; `learn_times` and a cold `roll_deadline` look into files,
so they run on a lane. `Log.remove_segments` and `Log.roll` carry them out.
"""

from config.topic import TopicConfig
from storage.log.log import Log
from storage.retention.limits import limits_of
from storage.retention.plan import RetentionLimits, RetentionPlan, plan
from storage.retention.rolling import timer_deadline
from storage.segment.segment import UNKNOWN
from storage.segment.times import facts_of, knows_times, learn_first_times
from storage.segment.times import learn_times as learn_times_of
from storage.segment.writer import least_age_ms, max_wait_ms

__all__ = [
    "knows_roll_deadline",
    "learn_times",
    "limits_of",
    "log_limits",
    "plan_retention",
    "roll_deadline",
    "roll_if_due",
]


def learn_times(log: Log, at_most: int) -> bool:
    """Look up the times of so many segments that are not known; whether all are known now.

    DiskError, CorruptLog.
    """
    snapshot = log.snapshot
    indexes, rules = log.search.lookup
    for index, segment in enumerate(snapshot.segments):
        limit = snapshot.end_of(index)
        if not limit or knows_times(segment):
            continue
        if not at_most:
            return False
        at_most -= 1
        learn_times_of(segment, limit, indexes, rules)
    return True


def plan_retention(log: Log, now_ms: int, *, is_held: bool = False) -> RetentionPlan:
    """Segments that go and segments that stay, with reasons, as of `now_ms`; after `learn_times`.

    `is_held`: a hold of the broker's clock suspends removal by time.
    """
    segments, offsets = facts_of(log.snapshot)
    return plan(segments, offsets, log_limits(log, is_held=is_held), now_ms)


def log_limits(
    log: Log, config: TopicConfig | None = None, *, is_held: bool = False
) -> RetentionLimits:
    """Limits of retention of a log: of its settings, or of assumed ones, and of what queues keep.

    The one place where they come together: rounds, previews and what is shown all decide by it.
    """
    limits = limits_of(log.config if config is None else config, is_held=is_held)
    return limits._replace(undelivered=tuple(log.undelivered()))


def knows_roll_deadline(log: Log) -> bool:
    """True when `roll_deadline` reads no file."""
    active = log.snapshot.active
    known = UNKNOWN not in {active.first_timestamp, active.first_arrival_ms}
    return known or not log.snapshot.end_position


def roll_deadline(log: Log, now_ms: int) -> int | None:
    """Wall time in ms when the timer ends the active segment; None while it is empty.

    DiskError, CorruptLog.
    """
    snapshot = log.snapshot
    segment = snapshot.active
    if not snapshot.end_position:
        return None
    learn_first_times(segment, snapshot.end_position, *log.search.lookup)
    return timer_deadline(
        first_record_ms=segment.first_timestamp,
        first_arrival_ms=segment.first_arrival_ms,
        max_wait_ms=max_wait_ms(log.config) - segment.jitter_ms,
        min_interval_ms=least_age_ms(log.config),
        now_ms=now_ms,
    )


def roll_if_due(log: Log, now_ms: int) -> bool:
    """End the active segment if the timer says so; whether it did. As `Log.roll`."""
    if not log.takes_changes:
        return False
    deadline = roll_deadline(log, now_ms)
    return deadline is not None and now_ms > deadline and log.roll()
