"""End of the active segment: time and reason (semantics.md 3). Pure decisions.

Time is the producers' as far as the segment's first batch has one: the wait is the newest time
that comes in minus the first batch's largest time. Only while the first batch has no time does
this process's own count, by the monotonic clock: a step of the wall clock ends nothing. A time in
the past makes the wait negative: no roll.

Beyond Kafka (time.md 7): a timer ends segments without appends, by the earlier of record time
and arrival, so that a time in the future cannot keep one open; and no segment ends by time sooner
than `horolog.roll.min.interval.ms` after its first batch came, however wild the times are.
"""

from enum import StrEnum

from storage.env import Rng
from storage.index.sparse_index import MAX_RELATIVE_OFFSET

SHORTEST_PART = 100


class RollReason(StrEnum):
    """Reasons why a segment ends."""

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
    age_ms: int,
    min_age_ms: int,
    offset_index_full: bool,
    time_index_full: bool,
    base_offset: int,
    incoming_last_offset: int,
) -> RollReason | None:
    """The reason why the segment must end before the incoming set is appended, or None.

    Sizes are in bytes. `waited_ms` is from `waited`, `max_wait_ms` from `max_wait` less the
    segment's jitter. `age_ms` is the time since the first batch came: under `min_age_ms` nothing
    rolls by time; one that came long after now came by a wrong clock, and its age is no matter.
    An empty segment rolls neither by size nor by time.
    """
    if segment_size > segment_bytes - incoming_size and segment_size:
        return RollReason.SIZE
    if waited_ms > max_wait_ms and abs(age_ms) >= min_age_ms and segment_size:
        return RollReason.TIME
    if offset_index_full:
        return RollReason.OFFSET_INDEX_FULL
    if time_index_full:
        return RollReason.TIME_INDEX_FULL
    if incoming_last_offset - base_offset > MAX_RELATIVE_OFFSET:
        return RollReason.OFFSET_OVERFLOW
    return None


def waited(*, incoming_max_timestamp: int, first_batch_max_timestamp: int, open_ms: int) -> int:
    """Wait of the segment for its end, in milliseconds; may be negative.

    `first_batch_max_timestamp` is -1 (or lower) when the first batch has no time; `open_ms` is for
    how long this process has had the segment.
    """
    if first_batch_max_timestamp >= 0:
        return incoming_max_timestamp - first_batch_max_timestamp
    return open_ms


def max_wait(segment_ms: int, *, compacted: bool, max_compaction_lag_ms: int) -> int:
    """Longest wait of a segment, in milliseconds, before its jitter is taken off.

    On a compacted topic `max.compaction.lag.ms` bounds it too, so that records become cleanable
    in time (KIP-354).
    """
    if compacted and max_compaction_lag_ms > 0:
        return min(segment_ms, max_compaction_lag_ms)
    return segment_ms


def least_wait(max_wait_ms: int, min_interval_ms: int) -> int:
    """Shortest time after its first batch's arrival before the timer ends a segment, in ms.

    A record time before the arrival (history that is loaded, a broken clock) shortens the wait,
    but to no less than a hundredth of it: slow streams of old records would give many segments.
    """
    return max(min_interval_ms, max_wait_ms // SHORTEST_PART)


def timer_deadline(
    *,
    first_record_ms: int,
    first_arrival_ms: int,
    max_wait_ms: int,
    min_interval_ms: int,
    now_ms: int,
) -> int:
    """Wall time when the timer ends a segment that is not empty, in ms.

    `first_record_ms` is the largest time of the first batch, negative if it has none. An arrival
    more than a whole wait after now is that of a clock that was wrong: it is over already.
    """
    if first_arrival_ms - now_ms > max_wait_ms:
        return now_ms - 1
    earlier = first_arrival_ms
    if 0 <= first_record_ms < first_arrival_ms:
        earlier = first_record_ms
    return max(earlier + max_wait_ms, first_arrival_ms + least_wait(max_wait_ms, min_interval_ms))


def jitter(rng: Rng, segment_jitter_ms: int, segment_ms: int) -> int:
    """Milliseconds that a segment ends earlier, drawn at its opening: not all end at once."""
    limit = min(segment_jitter_ms, segment_ms)
    return rng.below(limit) if limit > 0 else 0
