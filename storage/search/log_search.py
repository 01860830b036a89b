"""The searches of one log: by time, for the largest time, for aborted transactions."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from config.topic import TopicConfig
from storage.errors import StorageError
from storage.files.file_slice import FetchData, FileSlice
from storage.files.partition_files import PartitionFiles
from storage.index.offset_index import OffsetPosition
from storage.index.txn_index import AbortedTxn
from storage.search.arrivals import ArrivalSpan, arrivals_between
from storage.search.file_times import offsets_before
from storage.search.oldest_time import Looks, OldestTime, UnfinishedOffsets, oldest_time
from storage.search.search_clock import CLOCKS, SearchClock
from storage.search.segment_access import NotInMemory, SegmentAccess
from storage.search.time_lag import OffsetTimes, TimeLag, lag_at, times_at
from storage.search.time_range import TimeRange, range_between
from storage.search.time_search import first_at_or_after, first_with_largest
from storage.search.time_skew import TimeSkew, skew_of
from storage.segment.log_snapshot import LogSnapshot, TimestampOffset
from storage.segment.segment import IndexRules, Segment
from storage.segment.segments import index_of
from storage.segment.trusted_indexes import TrustedIndexes
from storage.validation.unpacking import Work

T = TypeVar("T")


class SearchedLog(Protocol):
    """A log as its searches see it."""

    snapshot: LogSnapshot
    config: TopicConfig
    files: PartitionFiles


class LogSearch:
    """Every question of time that a log answers, and its aborted transactions.

    Each call works on the log's snapshot of that moment, changes nothing, may come from any thread
    and may block, unless `may_wait` is False: NotInMemory then says to ask again on a lane. Without
    `may_ask` it says so of what only the tier's store has. `below` is the first offset that is not
    looked at; None is the high watermark. `clock` None is the topic's (`horolog.search.clock`).
    Raises StorageError: CorruptLog for a damaged batch that had to be read; TooMuchWork when more
    has to be unpacked than `work` allows for.
    """

    __slots__ = ("_indexes", "_inflate_limit", "_log", "_rules")

    def __init__(self, indexes: TrustedIndexes, log: SearchedLog) -> None:
        """Nothing is read."""
        self._indexes = indexes
        self._log = log
        self.reconfigure(log.config)

    def on_snapshot(self, ask: Callable[[LogSnapshot], T]) -> T:
        """The answer on the snapshot of this moment.

        Once more, on the one that is then, when segments of this one have left the directory or
        the tier's store meanwhile: others have taken their place.
        """
        while True:
            snapshot = self._log.snapshot
            try:
                return ask(snapshot)
            except StorageError:
                if self._log.snapshot is snapshot or not _has_left(snapshot):
                    raise

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow the topic's settings."""
        self._rules = IndexRules.of(config)
        self._inflate_limit = config.max_decompressed_message_bytes

    @property
    def lookup(self) -> tuple[TrustedIndexes, IndexRules]:
        """Access to the indexes of the log's segments."""
        return self._indexes, self._rules

    def look(
        self, *, may_wait: bool = True, may_ask: bool = True, work: Work | None = None
    ) -> SegmentAccess:
        """Segment access of one search, blocking or not."""
        return SegmentAccess(
            self._indexes,
            self._rules,
            self._inflate_limit,
            may_wait=may_wait,
            may_ask=may_ask,
            work=work,
        )

    def forget(self, segment: Segment) -> None:
        """The segment is gone."""
        self._indexes.forget(segment)

    # --- by time ---

    def first_at_or_after(
        self,
        timestamp_ms: int,
        *,
        below: int | None = None,
        clock: SearchClock | None = None,
        may_wait: bool = True,
        may_ask: bool = True,
        work: Work | None = None,
    ) -> TimestampOffset | None:
        """The smallest offset with a time of at least `timestamp_ms`, and its time by the clock."""
        return self.on_snapshot(
            lambda snapshot: first_at_or_after(
                snapshot,
                self.look(may_wait=may_wait, may_ask=may_ask, work=work),
                timestamp_ms,
                last_fetchable=snapshot.high_watermark if below is None else below,
                clock=clock or self._clock,
            )
        )

    def first_with_largest(
        self, *, may_wait: bool = True, may_ask: bool = True, work: Work | None = None
    ) -> TimestampOffset | None:
        """The first record with the log's largest record time (KIP-734)."""

        def ask(snapshot: LogSnapshot) -> TimestampOffset | None:
            look = self.look(may_wait=may_wait, may_ask=may_ask, work=work)
            return first_with_largest(snapshot, look)

        return self.on_snapshot(ask)

    def range_between(
        self,
        from_ms: int,
        to_ms: int,
        *,
        below: int | None = None,
        clock: SearchClock | None = None,
    ) -> TimeRange:
        """The records with times in [from_ms, to_ms)."""

        def ask(snapshot: LogSnapshot) -> TimeRange:
            end = snapshot.high_watermark if below is None else below
            return range_between(snapshot, self.look(), from_ms, to_ms, clock or self._clock, end)

        return self.on_snapshot(ask)

    def times_at(
        self, offset: int, *, may_wait: bool = True, may_ask: bool = True
    ) -> OffsetTimes | None:
        """Both times of the first record at or after `offset`; None when there is none."""

        def ask(snapshot: LogSnapshot) -> OffsetTimes | None:
            return times_at(snapshot, self.look(may_wait=may_wait, may_ask=may_ask), offset)

        return self.on_snapshot(ask)

    def oldest_time(
        self, wanted: UnfinishedOffsets, most_zones: int, *, may_wait: bool = True
    ) -> OldestTime:
        """The least record time of what a queue has not finished; `most_zones` are read."""
        looks = Looks(self.look(may_wait=may_wait), self.look(may_wait=False))
        return self.on_snapshot(lambda snapshot: oldest_time(snapshot, looks, wanted, most_zones))

    def arrivals_between(self, first: int, end: int, *, may_wait: bool = True) -> list[ArrivalSpan]:
        """Arrivals of the offsets from `first` to below `end`, zone by zone."""
        return self.on_snapshot(
            lambda snapshot: arrivals_between(snapshot, self.look(may_wait=may_wait), first, end)
        )

    def lag_at(self, offset: int, *, below: int | None = None, may_wait: bool = True) -> TimeLag:
        """Lag of a reader whose next offset is `offset`: a group's committed one."""

        def ask(snapshot: LogSnapshot) -> TimeLag:
            end = snapshot.high_watermark if below is None else below
            return lag_at(snapshot, self.look(may_wait=may_wait), offset, end)

        return self.on_snapshot(ask)

    def skew(self) -> TimeSkew:
        """Delays of the log's records: arrival - record time."""
        return self.on_snapshot(lambda snapshot: skew_of(snapshot, self.look()))

    def segment_starts(self, timestamp_ms: int, at_most: int, now_ms: int) -> list[int]:
        """Starts of segments by the times of their files, the latest first (semantics.md 5.5)."""
        log = self._log
        return offsets_before(log.snapshot, log.files, timestamp_ms, at_most, now_ms)

    @property
    def _clock(self) -> SearchClock:
        return CLOCKS[self._log.config.horolog_search_clock]

    # --- aborted transactions ---

    def aborted(self, offset: int, up_to: int) -> list[AbortedTxn]:
        """Aborted transactions that a READ_COMMITTED fetch of [offset, up_to) must leave out.

        An abort is noted at its marker, which may be far behind `up_to`.
        """
        return self.on_snapshot(lambda snapshot: _aborted(snapshot, offset, up_to))

    def aborted_in(self, offset: int, data: FetchData) -> list[AbortedTxn]:
        """Aborted transactions to leave out of the data of a READ_COMMITTED fetch from `offset`.

        Perhaps some more, which readers allow for. The tier's store is not asked: NotInMemory when
        it alone has a list of them. The data's segments have left the directory since, and what
        is read of them by then comes with these lists.
        """
        return self.on_snapshot(
            lambda snapshot: _aborted(
                snapshot, offset, self._end_of(snapshot, offset, data), may_ask=False
            )
        )

    def _end_of(self, snapshot: LogSnapshot, offset: int, data: FetchData) -> int:
        """An offset at or behind the end of what a fetch from `offset` gives.

        By the offset index, as Kafka bounds its list of aborted transactions: that of the very
        segment, since compaction may have put another one in its place, with other positions.
        """
        up_to, segments = snapshot.last_stable_offset, snapshot.segments
        for number in range(index_of(segments, offset), len(segments)):
            segment = segments[number]
            if segment is not data.segment:
                continue
            behind = self._behind(segment, snapshot.end_of(number), data.slices[0])
            if behind is not None:
                return min(behind.offset, up_to)
            if number + 1 < len(segments):
                return min(segments[number + 1].base_offset, up_to)
            break
        return up_to

    def _behind(self, segment: Segment, limit: int, piece: FileSlice) -> OffsetPosition | None:
        """The first entry of the offset index behind a piece; None without one, and where the
        tier's store would have to be asked for the index.
        """
        indexes = segment.indexes
        if segment.away is None:
            indexes = self._indexes.of(segment, limit, self._rules)
        if indexes is None or not indexes.offsets.is_loaded:
            return None
        return indexes.offsets.first_at_position(piece.position + piece.size)


def _has_left(snapshot: LogSnapshot) -> bool:
    """True when a segment of it is no longer where it was: in the directory, or in the store."""
    return any(each.is_removed for each in snapshot.segments)


def _aborted(
    snapshot: LogSnapshot, offset: int, up_to: int, *, may_ask: bool = True
) -> list[AbortedTxn]:
    found: list[AbortedTxn] = []
    segments = snapshot.segments
    for segment in segments[index_of(segments, offset) :]:
        if not (may_ask or segment.away is None or segment.knows_aborted):
            raise NotInMemory
        search = segment.aborted.search(offset, up_to)
        found += search.transactions
        if search.is_complete:
            break
    return found
