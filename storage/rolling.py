"""When the active segment ends and a new one begins, and why (semantics.md 3). Pure decisions.

Time is the producers' as far as the segment's first batch has one: the wait is the newest time
that comes in minus the first batch's largest time. The wall clock counts only while the first
batch has no time. A time in the past makes the wait negative: no roll.
"""

from enum import StrEnum

from storage.env import Rng
from storage.sparse_index import MAX_RELATIVE_OFFSET

NO_TIMESTAMP = -1


class RollReason(StrEnum):
    """Why a segment ends."""

    SIZE = "size"
    TIME = "time"
    OFFSET_INDEX_FULL = "offset index full"
    TIME_INDEX_FULL = "time index full"
    OFFSET_OVERFLOW = "offset overflow"


def should_roll(
    *,
    segment_size: int,
    incoming_size: int,
    segment_bytes: int,
    waited_ms: int,
    max_wait_ms: int,
    offset_index_full: bool,
    time_index_full: bool,
    base_offset: int,
    incoming_last_offset: int,
) -> RollReason | None:
    """Why the segment must end before the incoming set is appended, or None.

    Sizes are in bytes. `waited_ms` is from `waited`, `max_wait_ms` from `max_wait` less the
    segment's jitter. An empty segment rolls neither by size nor by time.
    """
    if segment_size > segment_bytes - incoming_size and segment_size:
        return RollReason.SIZE
    if waited_ms > max_wait_ms and segment_size:
        return RollReason.TIME
    if offset_index_full:
        return RollReason.OFFSET_INDEX_FULL
    if time_index_full:
        return RollReason.TIME_INDEX_FULL
    if incoming_last_offset - base_offset > MAX_RELATIVE_OFFSET:
        return RollReason.OFFSET_OVERFLOW
    return None


def waited(
    *, incoming_max_timestamp: int, first_batch_max_timestamp: int, created_ms: int, now_ms: int
) -> int:
    """How long the segment has waited for its end, in milliseconds; may be negative.

    `first_batch_max_timestamp` is -1 (or lower) when the first batch has no time; `created_ms` is
    the wall time at which this process opened the segment, or emptied it.
    """
    if first_batch_max_timestamp >= 0:
        return incoming_max_timestamp - first_batch_max_timestamp
    return now_ms - created_ms


def max_wait(segment_ms: int, *, compacted: bool, max_compaction_lag_ms: int) -> int:
    """How long a segment may wait, in milliseconds, before its jitter is taken off.

    On a compacted topic `max.compaction.lag.ms` bounds it too, so that records become cleanable
    in time (KIP-354).
    """
    if compacted and max_compaction_lag_ms > 0:
        return min(segment_ms, max_compaction_lag_ms)
    return segment_ms


def jitter(rng: Rng, segment_jitter_ms: int, segment_ms: int) -> int:
    """Milliseconds that a segment ends earlier, drawn at its opening: not all end at once."""
    limit = min(segment_jitter_ms, segment_ms)
    return rng.below(limit) if limit > 0 else 0
