"""The searches of one log: by time, for the largest time, for aborted transactions.

Each works on the snapshot it is given, on any thread, and may block. Disk faults and damage become
the errors that clients know.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from config.topic import TopicConfig
from protocol.errors import ErrorCode, KafkaError
from storage.errors import CorruptLog, StorageError
from storage.files.file_slice import FetchData
from storage.files.layout import LOG
from storage.index.txn_index import AbortedTransaction
from storage.search.search_clock import SearchClock
from storage.search.segment_access import SegmentAccess
from storage.search.time_search import first_at_or_after, first_with_largest
from storage.segment.log_snapshot import LogSnapshot, TimestampOffset
from storage.segment.segment import IndexRules, Segment
from storage.segment.segments import index_of
from storage.segment.trusted_indexes import TrustedIndexes
from storage.validation.unpacking import Work


class LogSearch:
    """What a log answers beside its bytes."""

    __slots__ = ("_indexes", "_inflate_limit", "_rules")

    def __init__(self, indexes: TrustedIndexes, config: TopicConfig) -> None:
        """Nothing is read."""
        self._indexes = indexes
        self.reconfigure(config)

    def reconfigure(self, config: TopicConfig) -> None:
        """Follow the topic's settings."""
        self._rules = IndexRules.of(config)
        self._inflate_limit = config.max_decompressed_message_bytes

    @property
    def lookup(self) -> tuple[TrustedIndexes, IndexRules]:
        """How the indexes of the log's segments are reached."""
        return self._indexes, self._rules

    def look(self, *, may_wait: bool = True, work: Work | None = None) -> SegmentAccess:
        """A way to the segments for one search."""
        return SegmentAccess(
            self._indexes, self._rules, self._inflate_limit, may_wait=may_wait, work=work
        )

    def forget(self, segment: Segment) -> None:
        """The segment is gone."""
        self._indexes.forget(segment)

    def offset_for_timestamp(
        self,
        snapshot: LogSnapshot,
        timestamp_ms: int,
        *,
        last_fetchable: int,
        clock: SearchClock,
        may_wait: bool,
        work: Work | None = None,
    ) -> TimestampOffset | None:
        """The smallest offset with a time of at least `timestamp_ms`, if below `last_fetchable`.

        The timestamp in the answer is the time by that clock. KafkaError KAFKA_STORAGE_ERROR (56)
        when the disk refuses, CORRUPT_MESSAGE (2) when the batch that would answer is damaged;
        NotInMemory when it may not wait and would have to; TooMuchWork when it has to unpack more
        than `work` allows for.
        """
        look = self.look(may_wait=may_wait, work=work)
        try:
            return first_at_or_after(
                snapshot, look, timestamp_ms, last_fetchable=last_fetchable, clock=clock
            )
        except StorageError as error:
            raise as_told(error) from error

    def max_timestamp_offset(
        self, snapshot: LogSnapshot, *, may_wait: bool, work: Work | None = None
    ) -> TimestampOffset | None:
        """The first record with the log's largest record time (KIP-734). Errors as above."""
        with told():
            return first_with_largest(snapshot, self.look(may_wait=may_wait, work=work))

    def aborted_transactions(
        self, snapshot: LogSnapshot, offset: int, up_to: int
    ) -> list[AbortedTransaction]:
        """What a READ_COMMITTED fetch of [offset, up_to) must leave out.

        An abort is noted where its marker lies, which may be far behind `up_to`.
        """
        found: list[AbortedTransaction] = []
        segments = snapshot.segments
        for segment in segments[index_of(segments, offset) :]:
            search = segment.aborted.search(offset, up_to)
            found += search.transactions
            if search.is_complete:
                break
        return found

    def end_of(self, snapshot: LogSnapshot, offset: int, data: FetchData, up_to: int) -> int:
        """An offset at or behind the end of what a fetch from `offset` gives, at most `up_to`.

        By the offset index, as Kafka bounds its list of aborted transactions.
        """
        piece = data.slices[0]
        segments = snapshot.segments
        for number in range(index_of(segments, offset), len(segments)):
            segment = segments[number]
            if segment.path_of(LOG) != piece.file.path:
                continue
            limit = snapshot.end_of(number)
            with told():
                indexes = self._indexes.of(segment, limit, self._rules)
            behind = indexes.offsets.first_at_position(piece.position + piece.size)
            if behind is not None:
                return min(behind.offset, up_to)
            if number + 1 < len(segments):
                return min(segments[number + 1].base_offset, up_to)
            break
        return up_to


@contextmanager
def told() -> Iterator[None]:
    """Faults of disk and log as a client is told of them."""
    try:
        yield
    except StorageError as error:
        raise as_told(error) from error


def as_told(error: StorageError) -> KafkaError:
    """The same, of one fault."""
    is_damage = isinstance(error, CorruptLog)
    code = ErrorCode.CORRUPT_MESSAGE if is_damage else ErrorCode.KAFKA_STORAGE_ERROR
    return KafkaError(code, str(error))
