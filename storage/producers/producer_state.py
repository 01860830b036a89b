"""State of a partition's producers: epochs, sequences, open transactions.

Rules (semantics.md 10). Five batches a producer are remembered, and a resend of one of them is a
duplicate that gets its old offset. Else the sequence must follow the last one (2^31-1 wraps to
0), a new epoch starts at 0, an old epoch is fenced, and a producer that is unknown here may start
anywhere. Batches that the broker writes for a producer (markers, offsets in a transaction) have no
sequence, and only their epoch is judged. A producer of which a marker alone is left, in a log that
begins behind its batches, may go on with any sequence, as one that is unknown. Judging and
remembering are two steps: `check` changes nothing, `update` is called once the batch is written.

Pure memory; `producer_snapshots` keeps it in files. One owner: the log's writer.
"""

from collections.abc import Iterator
from typing import NamedTuple

from protocol.errors import ErrorCode, KafkaError
from protocol.records.batch import BatchHeader

REMEMBERED_BATCHES = 5
MAX_PRODUCERS = 20_000
"""Of a partition; 400 bytes each. A producer that was dropped goes on as one that is unknown."""
PRODUCER_BYTES = 400
DROPPED_AT_ONCE = 16
"""For each new producer, when fewer may be remembered than are."""
NO_EPOCH = -1
NO_SEQUENCE = -1
NO_OFFSET = -1
NO_ARRIVAL = -1
MAX_SEQUENCE = 2**31 - 1


class RememberedBatch(NamedTuple):
    """A batch that was appended. `timestamp` is its largest, in milliseconds."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record, counted back over the wrap."""
        return (self.last_sequence - self.offset_delta) & MAX_SEQUENCE


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has ended.

    `last_stable_offset` is the one that holds once the marker is below the high watermark.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    is_aborted: bool


class ProducerEntry:
    """One producer: its epoch, its last batches (oldest first), its open transaction."""

    __slots__ = (
        "batches", "coordinator_epoch", "epoch", "is_marker_alone", "last_arrival_ms",
        "last_timestamp", "txn_first_offset",
    )  # fmt: skip

    def __init__(
        self,
        epoch: int = NO_EPOCH,
        *,
        batches: tuple[RememberedBatch, ...] = (),
        last_timestamp: int = -1,
        coordinator_epoch: int = -1,
        txn_first_offset: int = NO_OFFSET,
        is_marker_alone: bool = False,
    ) -> None:
        """An entry as a snapshot holds it, or empty."""
        self.epoch = epoch
        self.batches = batches
        self.last_timestamp = last_timestamp
        self.last_arrival_ms = NO_ARRIVAL
        """Wall time when its last batch was appended; NO_ARRIVAL: before the log was opened."""
        self.coordinator_epoch = coordinator_epoch
        self.txn_first_offset = txn_first_offset
        self.is_marker_alone = is_marker_alone
        """True when its batches may be gone: nobody knows with which sequence it goes on."""

    @property
    def has_unknown_sequence(self) -> bool:
        """True of one that may go on with any sequence: see `is_marker_alone`."""
        return self.is_marker_alone and not self.batches

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record, -1 if no batch is remembered."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        """Offset of the last record, -1 if no batch is remembered."""
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    @property
    def has_open_transaction(self) -> bool:
        """True when records wait for a marker."""
        return self.txn_first_offset != NO_OFFSET


class ProducerStates:
    """All producers of one partition, and the offset up to which they are known.

    `end_offset` moves with `update`; the log moves it itself past batches without a producer.
    """

    __slots__ = (
        "_completed", "_open", "_producers", "end_offset", "log_start_offset", "most",
        "restored_below", "written_ms",
    )  # fmt: skip

    def __init__(self) -> None:
        """No producers, from offset 0."""
        self.end_offset = 0
        self.most = MAX_PRODUCERS
        """Maximum number of producers; set from any thread."""
        self.log_start_offset = 0
        """Start of the log: batches of before may have been of producers that are not known."""
        self.restored_below = 0
        """Offset of the snapshot that they were restored from; 0 if they were not."""
        self.written_ms = NO_ARRIVAL
        """Wall time of the last write to the log before it was opened, if that is known."""
        self._producers: dict[int, ProducerEntry] = {}
        self._open: dict[int, int] = {}  # first offset -> producer id, in the order of offsets
        self._completed: dict[int, int] = {}  # first offset -> offset of the marker, not yet stable

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[tuple[int, ProducerEntry]]:
        """Producer ids and what is known of them."""
        return iter(self._producers.items())

    def ids(self) -> list[int]:
        """All producer ids; from any thread."""
        return list(self._producers)

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The producer, or None if this partition does not know it."""
        return self._producers.get(producer_id)

    def check(self, header: BatchHeader) -> RememberedBatch | None:
        """Judge a batch that a client sent with a producer id. Changes nothing.

        None: it may be appended. A batch: this one is a duplicate of it. KafkaError otherwise:
        INVALID_PRODUCER_EPOCH (47), OUT_OF_ORDER_SEQUENCE_NUMBER (45), INVALID_TXN_STATE (48).
        """
        entry = self._producers.get(header.producer_id)
        if entry is None or entry.epoch == NO_EPOCH:
            return None
        epoch, first = header.producer_epoch, header.base_sequence
        if first == NO_SEQUENCE:
            _check_not_older(header, entry)
            return None
        if epoch != entry.epoch:
            _check_new_epoch(header, entry)
        else:
            last = entry.last_sequence
            follows = first == last + 1 or (first == 0 and last == MAX_SEQUENCE)
            if not follows and not entry.has_unknown_sequence:
                return _duplicate_of(header, entry)
        if entry.txn_first_offset != NO_OFFSET and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"producer {header.producer_id} has an open transaction: "
                "a batch outside of it is refused",
            )
        return None

    def update(
        self,
        header: BatchHeader,
        base_offset: int,
        max_timestamp: int,
        arrival_ms: int = NO_ARRIVAL,
    ) -> None:
        """Remember a batch that is stored in the log at `base_offset`; not for control batches.

        `max_timestamp` is the one that was written. Also the way to replay a log.
        """
        entry = self._latest(header.producer_id)
        delta = header.last_offset_delta
        last_offset = base_offset + delta
        batch = RememberedBatch(header.last_sequence, last_offset, delta, max_timestamp)
        if entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches = (batch,)
        else:
            entry.batches = (*entry.batches[1 - REMEMBERED_BATCHES :], batch)
        entry.last_timestamp = max_timestamp
        entry.last_arrival_ms = arrival_ms
        if header.is_transactional and entry.txn_first_offset == NO_OFFSET:
            entry.txn_first_offset = base_offset
            self._open[base_offset] = header.producer_id
        self.end_offset = last_offset + 1

    def end_transaction(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        marker_offset: int,
        timestamp: int,
        *,
        is_aborted: bool,
    ) -> CompletedTransaction | None:
        """Take in a stored transaction marker; None if no transaction was open."""
        entry = self._latest(producer_id)
        if entry.epoch == NO_EPOCH:
            entry.is_marker_alone = self.log_start_offset > 0
        elif entry.batches:
            entry.is_marker_alone = False
        if entry.epoch != epoch:
            entry.epoch = epoch
            entry.batches = ()
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp
        self.end_offset = marker_offset + 1
        first_offset, entry.txn_first_offset = entry.txn_first_offset, NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        self._open.pop(first_offset, None)
        self._completed[first_offset] = marker_offset
        first_open = self.first_open_offset
        stable = marker_offset + 1 if first_open is None else first_open
        return CompletedTransaction(producer_id, first_offset, marker_offset, stable, is_aborted)

    @property
    def first_unstable_offset(self) -> int | None:
        """First offset of the earliest transaction that is open, or ended but not yet stable."""
        open_first = self.first_open_offset
        completed_first = min(self._completed, default=None)
        if open_first is None or completed_first is None:
            return completed_first if open_first is None else open_first
        return min(open_first, completed_first)

    @property
    def first_open_offset(self) -> int | None:
        """First offset of the earliest transaction without a marker."""
        return next(iter(self._open), None)

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Makes transactions whose marker is below the high watermark stable."""
        if self._completed:
            self._completed = {
                first: marker
                for first, marker in self._completed.items()
                if marker >= high_watermark
            }

    def expire(self, now_ms: int, expiration_ms: int) -> list[int]:
        """Forget producers whose last batch is that old, and came that long ago; says which.

        Message time alone, as Kafka has it, would forget a producer of old CreateTime data at once,
        and what it sends again would be there twice. One whose time is ahead counts from now on,
        or wild times would keep it for ever. Never with an open transaction.
        """
        self.written_ms = min(self.written_ms, now_ms)
        for entry in self._producers.values():
            entry.last_timestamp = min(entry.last_timestamp, now_ms)
            entry.last_arrival_ms = min(entry.last_arrival_ms, now_ms)
        expired = [
            producer_id
            for producer_id, entry in self._producers.items()
            if self._is_expired(entry, now_ms, expiration_ms)
        ]
        for producer_id in expired:
            del self._producers[producer_id]
        return expired

    def expire_restored(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers from a snapshot that wrote nothing after it and are expired.

        When Kafka does, which is as it reads a snapshot; here it waits until the clock of a start
        is judged.
        """
        for producer_id, entry in tuple(self._producers.items()):
            is_silent = entry.last_offset < self.restored_below
            if is_silent and self._is_expired(entry, now_ms, expiration_ms):
                del self._producers[producer_id]

    def _is_expired(self, entry: ProducerEntry, now_ms: int, expiration_ms: int) -> bool:
        """True when a producer may be forgotten. No file says when one that was read has written:
        it counts from the last write to the log.
        """
        if entry.has_open_transaction:
            return False
        arrival_ms = entry.last_arrival_ms
        came_ms = self.written_ms if arrival_ms == NO_ARRIVAL else arrival_ms
        return now_ms - max(entry.last_timestamp, came_ms) >= expiration_ms

    def restore(self, producer_id: int, entry: ProducerEntry) -> None:
        """Put an entry of a snapshot back."""
        self._producers[producer_id] = entry
        if entry.has_open_transaction:
            first = entry.txn_first_offset
            is_next = first > next(reversed(self._open), NO_OFFSET)
            self._open[first] = producer_id
            if not is_next:
                self._open = dict(sorted(self._open.items()))

    def _latest(self, producer_id: int) -> ProducerEntry:
        """The producer's entry, a new one if need be, behind all others: they are idle for longer.

        The one idle for longest goes when there are too many, none with an open transaction.
        """
        producers = self._producers
        entry = producers.pop(producer_id, None)
        if entry is None:
            entry = ProducerEntry()
            for _ in range(min(DROPPED_AT_ONCE, len(producers) + 1 - self.most)):
                self._drop_one()
        producers[producer_id] = entry
        return entry

    def _drop_one(self) -> None:
        for _ in range(len(self._open) + 1):
            producer_id = next(iter(self._producers))
            entry = self._producers.pop(producer_id)
            if not entry.has_open_transaction:
                return
            self._producers[producer_id] = entry

    def clear(self, end_offset: int) -> None:
        """Forget everything, to be rebuilt from `end_offset` on."""
        self._producers.clear()
        self._open.clear()
        self._completed.clear()
        self.end_offset = end_offset
        self.restored_below = 0


def _check_not_older(header: BatchHeader, entry: ProducerEntry) -> None:
    if header.producer_epoch < entry.epoch:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"epoch {header.producer_epoch} of producer {header.producer_id} is older "
            f"than the last one seen, {entry.epoch}",
        )


def _check_new_epoch(header: BatchHeader, entry: ProducerEntry) -> None:
    _check_not_older(header, entry)
    if header.base_sequence != 0:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} begins epoch {header.producer_epoch} "
            f"with sequence {header.base_sequence}, not 0",
        )


def _duplicate_of(header: BatchHeader, entry: ProducerEntry) -> RememberedBatch:
    first, last = header.base_sequence, header.last_sequence
    for batch in entry.batches:
        if batch.last_sequence == last and batch.base_sequence == first:
            return batch
    raise KafkaError(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"producer {header.producer_id} sent sequences {first} to {last} "
        f"after {entry.last_sequence}",
    )
