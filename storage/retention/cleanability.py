"""Selects the log to compact, with the reason (semantics.md 8.1, 8.2). Pure decisions.

What is clean ends at the first dirty offset, what may be cleaned at the first uncleanable one: the
base of a segment, at most the active one, that holds nothing above the last stable offset, nothing
the disk does not have, and nothing younger than `min.compaction.lag.ms`.

A log is eligible when its dirty share is large enough, or when it is overdue: a record in a closed
segment has waited longer than `max.compaction.lag.ms` (KIP-354), or, on topics with such a bound, a
tombstone's delete horizon has passed. Overdue logs go first, the one that is latest before others.

Beyond Kafka: a record's time is its own or its arrival, whichever is earlier. A time in the future
can so neither postpone a compaction nor hold one off; in Kafka it does both.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from protocol.records.batch import NO_TIMESTAMP
from storage.retention.plan import SegmentFacts, arrival_of

UNLIMITED_MS = 2**63 - 1


class SegmentAge(NamedTuple):
    """A closed segment. Times in wall ms, the earlier of record time and arrival; -1: unknown."""

    base_offset: int
    size_bytes: int
    oldest_ms: int
    """Of its first batch."""
    newest_ms: int
    """Of its largest record time and last arrival."""


def began_ms(first_timestamp: int, first_arrival_ms: int) -> int:
    """The time of a segment's first batch, or its arrival, whichever is earlier; in ms."""
    return min(first_timestamp, first_arrival_ms) if first_timestamp > 0 else first_arrival_ms


def age_of(facts: SegmentFacts, oldest_ms: int) -> SegmentAge:
    """The age of a closed segment that began at `oldest_ms`; an empty one has none."""
    if not facts.size_bytes:
        return SegmentAge(facts.base_offset, 0, NO_TIMESTAMP, NO_TIMESTAMP)
    newest = arrival_of(facts)
    if facts.record_ms >= 0:
        newest = min(newest, facts.record_ms)
    return SegmentAge(facts.base_offset, facts.size_bytes, oldest_ms, newest)


class CleaningFacts(NamedTuple):
    """Facts about a log for the choice of the next one."""

    start_offset: int
    end_offset: int
    checkpoint: int
    """The first dirty offset as the last run left it; -1 if there was none."""
    bound: int
    """Nothing at or above may be touched: last stable offset, and what the disk does not have."""
    segments: Sequence[SegmentAge]
    """The closed ones, in order."""
    active_base: int
    horizon_ms: int = NO_TIMESTAMP
    """Time when the first tombstone that the last run left may go (ms); -1 if it left none."""


class CleaningLimits(NamedTuple):
    """Limits from a topic's settings."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int


class CleanReason(StrEnum):
    """Reasons why a log is eligible, or is not."""

    RATIO = "dirty beyond min.cleanable.dirty.ratio"
    OVERDUE = "a record has waited longer than max.compaction.lag.ms"
    HORIZON = "a tombstone has stayed for delete.retention.ms"

    CLEAN = "nothing is dirty but the active segment"
    TOO_YOUNG = "what is dirty has not waited for min.compaction.lag.ms"
    UNSETTLED = (
        "an open transaction, or bytes that are not on the disk, or in the tier's store, come first"
    )
    RATIO_SMALL = "not dirty enough"


ELIGIBLE = frozenset({CleanReason.RATIO, CleanReason.OVERDUE, CleanReason.HORIZON})


class Verdict(NamedTuple):
    """Cleanability of a log."""

    first_dirty: int
    first_uncleanable: int
    clean_bytes: int
    cleanable_bytes: int
    delay_ms: int
    """For how long a record in a closed segment has been overdue; 0 if none is (KIP-354)."""
    because: CleanReason
    deadline_ms: int
    """Time when a record in a closed dirty segment is overdue; -1 without a bound or such a
    record.
    """

    @property
    def is_eligible(self) -> bool:
        """True when a run would begin now."""
        return self.because in ELIGIBLE

    @property
    def dirty_ratio(self) -> float:
        """Cleanable bytes over those and the clean ones."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def urgency(self) -> tuple[int, float]:
        """Greater goes first."""
        return self.delay_ms, self.dirty_ratio


def judge(facts: CleaningFacts, limits: CleaningLimits, now_ms: int) -> Verdict:
    """Judges what of a log could be cleaned at `now_ms`, and whether it should be."""
    first_dirty = first_dirty_offset(facts.checkpoint, facts.start_offset, facts.end_offset)
    segments = facts.segments
    first = _holding(facts, first_dirty)
    clean_bytes = sum(segment.size_bytes for segment in segments[:first])
    uncleanable, cleanable_bytes, blocker = _reach(facts, limits, first, now_ms)
    deadline = _deadline(segments[first:], limits.max_lag_ms)
    delay = max(0, now_ms - deadline) if deadline != NO_TIMESTAMP else 0
    uncleanable = max(uncleanable, first_dirty)
    because = blocker
    if cleanable_bytes:
        because = _because(facts, limits, clean_bytes, cleanable_bytes, delay, now_ms)
    elif _horizon_is_due(facts, limits, now_ms) and clean_bytes:
        because = CleanReason.HORIZON
    return Verdict(first_dirty, uncleanable, clean_bytes, cleanable_bytes, delay, because, deadline)


def first_dirty_offset(checkpoint: int, start_offset: int, end_offset: int) -> int:
    """Begin of the dirty part. A checkpoint outside the log is ignored: all of the log is dirty."""
    return checkpoint if start_offset <= checkpoint <= end_offset else start_offset


def first_of(verdicts: Iterable[tuple[int, Verdict]]) -> int | None:
    """The number of the eligible log that goes first, of (number, verdict) pairs."""
    eligible = ((verdict.urgency, -number) for number, verdict in verdicts if verdict.is_eligible)
    best = max(eligible, default=None)
    return None if best is None else -best[1]


def _reach(
    facts: CleaningFacts, limits: CleaningLimits, first: int, now_ms: int
) -> tuple[int, int, CleanReason]:
    """The first uncleanable offset, the bytes before it that are cleanable, what blocks more."""
    young_from = now_ms - limits.min_lag_ms if limits.min_lag_ms > 0 else UNLIMITED_MS
    segments, cleanable_bytes = facts.segments, 0
    for index in range(first, len(segments)):
        segment = segments[index]
        following = segments[index + 1].base_offset if index + 1 < len(segments) else None
        end = facts.active_base if following is None else following
        if end > facts.bound:
            return segment.base_offset, cleanable_bytes, CleanReason.UNSETTLED
        if segment.newest_ms > young_from:
            return segment.base_offset, cleanable_bytes, CleanReason.TOO_YOUNG
        cleanable_bytes += segment.size_bytes
    return facts.active_base, cleanable_bytes, CleanReason.CLEAN


def _because(  # noqa: PLR0917 - private, called by position
    facts: CleaningFacts,
    limits: CleaningLimits,
    clean_bytes: int,
    cleanable_bytes: int,
    delay_ms: int,
    now_ms: int,
) -> CleanReason:
    if delay_ms > 0:
        return CleanReason.OVERDUE
    if cleanable_bytes > limits.min_dirty_ratio * (clean_bytes + cleanable_bytes):
        return CleanReason.RATIO
    if _horizon_is_due(facts, limits, now_ms):
        return CleanReason.HORIZON
    return CleanReason.RATIO_SMALL


def _horizon_is_due(facts: CleaningFacts, limits: CleaningLimits, now_ms: int) -> bool:
    return limits.max_lag_ms != UNLIMITED_MS and 0 <= facts.horizon_ms <= now_ms


def _deadline(dirty: Sequence[SegmentAge], max_lag_ms: int) -> int:
    if max_lag_ms == UNLIMITED_MS:
        return NO_TIMESTAMP
    oldest = min((each.oldest_ms for each in dirty if each.oldest_ms > 0), default=NO_TIMESTAMP)
    return oldest + max_lag_ms if oldest != NO_TIMESTAMP else NO_TIMESTAMP


def _holding(facts: CleaningFacts, offset: int) -> int:
    """The number of the closed segment that holds `offset`; their count if none does.

    Those before it are clean.
    """
    segments = facts.segments
    if offset >= facts.active_base:
        return len(segments)
    return max(bisect_right(segments, offset, key=lambda each: each.base_offset) - 1, 0)
