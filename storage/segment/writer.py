"""Appends to the active segment: one positional write, then index entries and the zone.

Rules: nothing of a batch is known anywhere before its write succeeded, and a write that failed
leaves no trace: the file is cut back to its logical end before the next one. Index entries are made
in memory; the files are written when the segment is synced (`storage.log.durability`), or closed.
Semantics 1.3, 1.4 and 3.
"""

from collections.abc import Callable

from config.topic import TopicConfig
from protocol.records.batch import NO_TIMESTAMP
from storage.errors import DiskError
from storage.files.layout import LOG
from storage.index.sparse_index import MAX_RELATIVE_OFFSET
from storage.retention.rolling import RollReason, max_wait, should_roll, waited
from storage.segment.index_rebuild import add_last_time
from storage.segment.segment import IndexRules, Segment
from storage.validation.checked_batch import CheckedBatch

FOREVER = 1 << 62
RESERVE_FROM = 4 * 1024 * 1024  # smaller segments reserve nothing: there may be thousands
MAX_RESERVE_BYTES = 32 * 1024 * 1024


class SegmentWriter:
    """The write side of one segment while it is active."""

    __slots__ = (
        "_config",
        "_file",
        "_full",
        "_indexes",
        "_interval",
        "_max_wait_ms",
        "_monotonic",
        "_reserved_to",
        "_roll_after",
        "_roll_bytes",
        "_times_next",
        "_torn",
        "_was_torn",
        "segment",
    )

    def __init__(
        self, segment: Segment, config: TopicConfig, monotonic: Callable[[], float]
    ) -> None:
        """Opens the segment's `.log` and its indexes; DiskError or CorruptIndex if that fails."""
        self.segment = segment
        self._monotonic = monotonic
        self._indexes = segment.indexes or segment.make_indexes(IndexRules.of(config))
        segment.indexes = self._indexes
        if segment.max_timestamp == NO_TIMESTAMP and self._indexes.times.entries:
            self._indexes.times.truncate_to(segment.base_offset)  # what KIP-33 gives closed ones
        self._file = segment.held or segment.files.fs.open(segment.path_of(LOG), create=True)
        segment.held = self._file
        self._torn = self._was_torn = False
        self._reserved_to = 0
        self._interval = config.index_interval_bytes
        self._update_full()
        self.reconfigure(config)

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow the topic's settings; capacity and interval of the index, and jitter, stay."""
        self._config = config
        self._roll_bytes = config.segment_bytes
        self._max_wait_ms = max_wait_ms(config) - self.segment.jitter_ms
        self._times_next = config.horolog_time_index_entry == "next"
        self._set_roll_after()

    def roll_reason(
        self, size: int, max_timestamp: int, last_offset: int, now_ms: int
    ) -> RollReason | None:
        """The reason why a new segment must begin before this batch, or None (semantics.md 3)."""
        segment = self.segment
        if not (
            segment.size_bytes > self._roll_bytes - size
            or max_timestamp > self._roll_after
            or self._full
            or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET
            or segment.first_timestamp < 0
        ):
            return None
        if not segment.size_bytes:
            return None
        offsets, times, _ = self._indexes
        return should_roll(
            segment_size=segment.size_bytes,
            incoming_size=size,
            segment_bytes=self._roll_bytes,
            waited_ms=waited(
                incoming_max_timestamp=max_timestamp,
                first_batch_max_timestamp=segment.first_timestamp,
                open_ms=round((self._monotonic() - segment.opened_at) * 1000),
            ),
            max_wait_ms=self._max_wait_ms,
            age_ms=now_ms - segment.first_arrival_ms,
            min_age_ms=least_age_ms(self._config),
            offset_index_full=offsets.is_full,
            time_index_full=times.is_full,
            base_offset=segment.base_offset,
            incoming_last_offset=last_offset,
        )

    def append(
        self, batch: CheckedBatch, base_offset: int, last_offset: int, flags: int, now_ms: int
    ) -> None:
        """Write one batch at the end. DiskError when it failed: the segment is as before.

        Indexes take the time as readers see it, the zone the claimed ones and `flags`.
        """
        data = batch.records
        segment = self.segment
        position = segment.size_bytes
        size = len(data)
        if self._torn:
            self._cut_back()
        if position >= RESERVE_FROM and position + size > self._reserved_to:
            self._reserve(position)
        try:
            self._file.write_at(position, data)
        except DiskError:
            self._torn = self._was_torn = True
            self._cut_back_if_possible()
            raise
        max_timestamp, facts = batch.max_timestamp, batch.facts
        if max_timestamp > segment.max_timestamp:
            segment.max_timestamp = max_timestamp
            segment.max_timestamp_offset = last_offset
        if segment.since_indexed > self._interval:
            self._index(last_offset, position)
        segment.since_indexed += size
        if facts.count:
            self._indexes.zones.add(
                base_offset,
                position,
                size,
                facts.count,
                facts.min_timestamp,
                facts.max_timestamp,
                now_ms,
                flags,
            )
        if not position:
            segment.first_timestamp = max_timestamp
            segment.first_arrival_ms = now_ms
            self._set_roll_after()
        segment.mtime_ms = now_ms
        segment.size_bytes = position + size

    def close_out(self, end_offset: int) -> None:
        """The segment takes no more: last entry of the time index, last zone. In memory only."""
        _, times, zones = self._indexes
        segment = self.segment
        if segment.size_bytes:
            add_last_time(
                times,
                segment.max_timestamp,
                segment.max_timestamp_offset,
                end_offset,
                segment.mtime_ms,
                times_next=self._times_next,
            )
        zones.close_zone()

    def trim(self) -> bool:
        """Take left-overs of a failed write off the file, and what was reserved behind its end.

        Whether there ever were left-overs, so that the length is to be synced as well; DiskError
        if they cannot be taken off.
        """
        if self._torn:
            self._cut_back()
        elif self._reserved_to:
            self._cut_back_if_possible()
        return self._was_torn

    def _index(self, last_offset: int, position: int) -> None:
        if not self._full:
            self._indexes.offsets.append(last_offset, position)
            self._offer_time(last_offset + 1)
            self._update_full()
        self.segment.since_indexed = 0

    def _offer_time(self, end_offset: int) -> None:
        segment, times = self.segment, self._indexes.times
        if segment.max_timestamp <= times.last_entry.timestamp:
            return  # whatever its offset says: the meaning of entries may have changed since
        offset = end_offset if self._times_next else segment.max_timestamp_offset
        times.maybe_append(segment.max_timestamp, offset)

    def _update_full(self) -> None:
        offsets, times, _ = self._indexes
        self._full = offsets.is_full or times.is_full

    def _set_roll_after(self) -> None:
        first = self.segment.first_timestamp
        self._roll_after = first + self._max_wait_ms if first >= 0 else FOREVER

    def _reserve(self, position: int) -> None:
        """Room for about as much as there is already: writing into it costs a sixth less CPU."""
        self._reserved_to = position + min(position, MAX_RESERVE_BYTES)
        self._file.reserve(position, min(self._reserved_to, self._roll_bytes) - position)

    def _cut_back(self) -> None:
        self._file.truncate(self.segment.size_bytes)
        self._torn = False
        self._reserved_to = 0

    def _cut_back_if_possible(self) -> None:
        try:
            self._cut_back()
        except DiskError:
            return  # tried again before the next write


def max_wait_ms(config: TopicConfig) -> int:
    """Longest wait of a segment of the topic for its end, jitter aside, in ms."""
    return max_wait(
        config.segment_ms,
        compacted="compact" in config.cleanup_policy,
        max_compaction_lag_ms=config.max_compaction_lag_ms,
    )


def least_age_ms(config: TopicConfig) -> int:
    """Shortest time in ms after its first batch's arrival before a segment of the topic rolls by
    time.

    The bound that a compacted topic has on its lag is kept all the same.
    """
    least = config.horolog_roll_min_interval_ms
    if "compact" in config.cleanup_policy:
        return min(least, config.max_compaction_lag_ms)
    return least
