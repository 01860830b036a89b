"""One look at the partitions of a share session: which may be acquired, and what their logs have.

Nothing is changed. The request's bytes are shared out evenly among the partitions that have
records; the first that is read gives a whole batch whatever its size. Once there are as many
records as may be acquired, the other partitions are left to the next fetch.
"""

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from broker.fetching.damage import DamageMet, Unreadable, is_among, readable_part
from broker.partitions.partition import Partition, last_fetchable
from broker.runtime.wire_error import wire_error
from broker.share.acquire import Acquired, Ask, Fetched
from broker.share.partition import SharePartition
from broker.share.reading import ShareReading
from broker.share.served_partition import ServedPartition
from broker.share.served_partitions import ServedPartitions
from broker.share.sessions import SharedPlace, ShareSession
from broker.share.state.key import ShareKey
from broker.topics.metadata_image import MetadataImage
from config.resources.group import READ_COMMITTED
from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import CorruptBatch
from storage.errors import StorageError
from storage.files.file_slice import FileSlice, Unverified
from storage.scan.batch_bounds import BatchBounds
from storage.search.segment_access import NotInMemory


class FetchTerms(NamedTuple):
    """Limits that a member sets; time in ms, sizes in bytes."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    ask: Ask


class SharedAnswer(NamedTuple):
    """Result of one partition: an error, or records that the member holds now."""

    place: SharedPlace
    error: KafkaError | None = None
    topic: str = ""
    records: FileSlice | bytes = b""
    acquired: tuple[Acquired, ...] = ()


class _Candidate(NamedTuple):
    served: ServedPartition
    records: SharePartition
    at: int
    committed: bool


class Passed(NamedTuple):
    """Ranges that a look passes over: their bytes cannot be read, or do not come in time."""

    unreadable: Collection[Unreadable] = ()
    late: Collection[Unverified] = ()


class Acquirable(NamedTuple):
    """Data that may be acquired, the bounds of its batches, and what an acquisition takes."""

    reading: ShareReading
    bounds: list[BatchBounds]
    fetched: Fetched


class FetchLook:
    """Findings of one look."""

    def __init__(
        self,
        session: ShareSession,
        partitions: ServedPartitions,
        may_read: Callable[[str], bool],
        damage: DamageMet,
    ) -> None:
        """Nothing was looked at; `may_read` judges names of topics."""
        self.refused: list[SharedAnswer] = []
        self.readings: list[Acquirable] = []
        self.unverified: list[Unverified] = []
        """Ranges to verify before any of this is served."""
        self.watched: list[object] = []
        """Keys by which a fetch that waits is woken."""
        self.size_bytes = 0
        self._session = session
        self._partitions = partitions
        self._may_read = may_read
        self._damage = damage
        self._new_records = 0
        """Number of offsets of the readings that nobody has acquired yet."""

    def run(
        self,
        image: MetadataImage,
        terms: FetchTerms,
        passed: Passed,
        *,
        may_wait: bool,
    ) -> None:
        """Looks at all partitions, and reads until that is enough; faults become errors of their
        partition. NotCached, unless it `may_wait` for the disk.
        """
        found = [self._candidate(place, image) for place in self._session.in_turn()]
        candidates = [each for each in found if each is not None]
        for each in candidates:
            if self._is_enough(terms):
                return
            most = max(terms.max_bytes // len(candidates), 1)
            try:
                self._take(each, most, passed, terms, may_wait=may_wait)
            except CorruptBatch as fault:
                error = KafkaError(ErrorCode.CORRUPT_MESSAGE, str(fault))
                self.refuse(each.served, each.at, error)
            except (KafkaError, StorageError) as fault:
                self._failed(each, fault)

    def _is_enough(self, terms: FetchTerms) -> bool:
        return self.size_bytes >= terms.min_bytes and self._new_records >= terms.ask.max_records

    def _candidate(self, place: SharedPlace, image: MetadataImage) -> _Candidate | None:
        try:
            partition = image.require_by_id(*place)
            if not self._may_read(partition.topic):
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)  # noqa: TRY301 - answered
            partition.check_surely_leads()
            served = self._partitions.serve(ShareKey(self._session.group, *place), partition)
            records = served.records
        except KafkaError as error:
            self.refused.append(SharedAnswer(place, error))
            return None
        self.watched.append(served)
        if records is None or not self._is_taken_in(served, records, partition):
            return None
        at = records.next_fetch()
        if at is None:
            return None
        if records.delayed is None:
            self.watched.append(partition)
        committed = served.settings.share_isolation_level == READ_COMMITTED
        if at >= last_fetchable(partition.log.snapshot, committed=committed):
            return None
        return _Candidate(served, records, at, committed)

    def _is_taken_in(
        self, served: ServedPartition, records: SharePartition, partition: Partition
    ) -> bool:
        """Has a group with a delay take in what the log has more; False when that is refused."""
        if records.delayed is None:
            return True
        try:
            served.take_in()
        except (KafkaError, StorageError) as fault:
            self.refuse(served, records.delayed.cursor, wire_error(fault))
            return False
        if records.delayed.next_intake(records.rules) is not None:
            self.watched.append(partition)
        return True

    def _read(self, candidate: _Candidate, max_bytes: int, passed: Passed) -> ShareReading | None:
        served, records, at, committed = candidate
        read, whole_first = served.partition.read, not self.size_bytes
        data = read(at, max_bytes, committed=committed, whole_first=whole_first)
        if data is not None and data.unverified is not None:
            read_first = partial(read, at, 1, committed=committed, whole_first=True)
            most_bytes = None if whole_first else max_bytes
            data = readable_part(data, passed.unreadable, read_first, most_bytes)
        if data is None:
            return None
        if data.unverified is not None:
            if not is_among(data.unverified, passed.late):
                self.unverified.append(data.unverified)
            return None
        return ShareReading(served, records, at, data, committed) if data.slices else None

    def _take(
        self,
        candidate: _Candidate,
        max_bytes: int,
        passed: Passed,
        terms: FetchTerms,
        *,
        may_wait: bool,
    ) -> None:
        """Reads one; once more when segments have left the directory before all was looked at."""
        for _ in range(2):
            reading = self._read(candidate, max_bytes, passed)
            if reading is None:
                return
            with suppress(NotInMemory):
                self._add(reading, terms.ask.max_records, may_wait=may_wait)
                return

    def _add(self, reading: ShareReading, max_records: int, *, may_wait: bool) -> None:
        bounds = reading.bounds(max_records, may_wait=may_wait)
        self.readings.append(Acquirable(reading, bounds, reading.fetched(bounds)))
        self.size_bytes += reading.data.size_bytes
        self._new_records += _new_in(bounds, reading.records)

    def _failed(self, candidate: _Candidate, fault: KafkaError | StorageError) -> None:
        error = fault if isinstance(fault, KafkaError) else wire_error(fault)
        if error.code != ErrorCode.OFFSET_OUT_OF_RANGE:  # the log moved, or was cut: nothing there
            self.refuse(candidate.served, candidate.at, error)

    def refuse(self, served: ServedPartition, at: int, error: KafkaError) -> None:
        """A partition cannot be read from an offset on."""
        if error.code == ErrorCode.CORRUPT_MESSAGE:
            self._damage.met(served.partition, at, error.message)
        self.refused.append(SharedAnswer(place_of(served), error))


def _new_in(bounds: list[BatchBounds], records: SharePartition) -> int:
    """Number of offsets that may be acquired for the first time; 0 where they have to be due."""
    if not bounds or records.delayed is not None:
        return 0
    window = records.window
    new = bounds[-1].last + 1 - max(window.next_new, bounds[0].first)
    return max(min(new, records.rules.max_record_locks - window.in_flight), 0)


def place_of(served: ServedPartition) -> SharedPlace:
    """The place of a share partition in a session."""
    return served.key.topic_id, served.key.partition
