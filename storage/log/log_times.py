"""Questions about time that a log answers beside Kafka's: ranges, delays, lag (time.md 3).

Each works on the snapshot of the moment, changes nothing, and may be asked from any thread. They
read files, so they belong on a lane. KafkaError as every read: KAFKA_STORAGE_ERROR (56) when the
disk refuses, CORRUPT_MESSAGE (2) when a batch that had to be read is damaged.
"""

from storage.log.log import Log
from storage.search.log_search import told
from storage.search.search_clock import SearchClock
from storage.search.time_lag import OffsetTimes, TimeLag, lag_at, times_at
from storage.search.time_range import TimeRange, range_between
from storage.search.time_skew import TimeSkew, skew_of
from storage.segment.log_snapshot import TimestampOffset

__all__ = [
    "OffsetTimes",
    "SearchClock",
    "TimeLag",
    "TimeRange",
    "TimeSkew",
    "TimestampOffset",
    "find_range",
    "find_times",
    "lag_of",
    "lookup",
    "skew",
]


def lookup(
    log: Log, timestamp_ms: int, clock: SearchClock = SearchClock.RECORD
) -> TimestampOffset | None:
    """The smallest offset that consumers see with a time of at least `timestamp_ms`, or None.

    The timestamp in the answer is the time by that clock.
    """
    watermark = log.snapshot.high_watermark
    return log.offset_for_timestamp(timestamp_ms, last_fetchable=watermark, clock=clock)


def find_range(
    log: Log,
    from_ms: int,
    to_ms: int,
    clock: SearchClock = SearchClock.RECORD,
    *,
    last_fetchable: int | None = None,
) -> TimeRange:
    """What lies in [from_ms, to_ms) below `last_fetchable`, None: below the high watermark."""
    snapshot = log.snapshot
    end = snapshot.high_watermark if last_fetchable is None else last_fetchable
    with told():
        return range_between(snapshot, log.reads.look(), from_ms, to_ms, clock, end)


def find_times(log: Log, offset: int) -> OffsetTimes | None:
    """Both times of the first record at or after `offset`; None when there is none."""
    with told():
        return times_at(log.snapshot, log.reads.look(), offset)


def lag_of(
    log: Log, offset: int, *, last_fetchable: int | None = None, may_wait: bool = True
) -> TimeLag:
    """How far behind a reader is whose next offset is `offset`: the committed one of a group.

    Counts to `last_fetchable`, None: the high watermark. With `may_wait=False` it may be asked on
    the loop; NotInMemory (`storage.search.segment_access`) says to ask again on a lane.
    """
    snapshot = log.snapshot
    end = snapshot.high_watermark if last_fetchable is None else last_fetchable
    with told():
        return lag_at(snapshot, log.reads.look(may_wait=may_wait), offset, end)


def skew(log: Log) -> TimeSkew:
    """How late the log's records came: arrival - record time."""
    with told():
        return skew_of(log.snapshot, log.reads.look())
