"""Intake of a log by a share group with a delay: when each record is due, ahead of the fetches.

A little of it is read at once, when a fetch looks and the bytes are in memory; the rest on a lane,
piece after piece, until the log's end, or until no more may wait. So a restart that finds a million
records waiting delivers those that are due while it reads on.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

from broker.fetching.damage import DamageMet, Unreadable
from broker.partitions.partition import Partition, last_fetchable
from broker.runtime.wire_error import wire_error
from broker.share.partition import SharePartition
from broker.share.waits.delayed import DelayedRecords
from broker.share.waits.due_times import DelayTerms, DueReader, DueTimes
from protocol.errors import DecodeError, ErrorCode, KafkaError
from storage.errors import StorageError
from storage.files.file_slice import FetchData, Unverified
from storage.search.segment_access import NotInMemory
from storage.validation.unpacking import TooMuchWork, Work

QUICK_BYTES = 128 * 1024
PIECE_BYTES = 1024 * 1024


class _Piece(NamedTuple):
    """Data of the log from the cursor on."""

    delayed: DelayedRecords
    at: int
    data: FetchData


class IntakeParts(NamedTuple):
    """The services that it works with."""

    now_ms: Callable[[], int]
    """Time by which records are due."""
    damage: DamageMet
    may_grow: Callable[[], bool]
    """False while the memory for what waits is full."""


class ShareIntake:
    """Intake of one share partition. Used from the event loop only."""

    def __init__(
        self, partition: Partition, parts: IntakeParts, took: Callable[[DueTimes | None], None]
    ) -> None:
        """`took` is called with each piece that was taken in, and with None when it stops."""
        self._partition = partition
        self._parts = parts
        self._took = took
        self._is_busy = False
        self._has_left = False
        self._fault: KafkaError | StorageError | None = None
        self._terms = DelayTerms()
        self._committed = False

    def run(self, records: SharePartition, terms: DelayTerms, *, committed: bool) -> None:
        """Takes in what the log has more. Raises what went wrong before, once: KafkaError,
        StorageError.
        """
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
        self._terms, self._committed = terms, committed
        if self._is_busy:
            return
        piece = self._next(records, QUICK_BYTES)
        if piece is None:
            return
        if piece.data.unverified is None and self._take(records, piece, None):
            piece = self._next(records, PIECE_BYTES)
        if piece is not None:
            self._is_busy = True
            self._read_on(records, piece)

    def leave(self) -> None:
        """Nobody reads here any more."""
        self._has_left = True

    def _next(self, records: SharePartition, max_bytes: int) -> _Piece | None:
        """The piece to take in; None when there is none, or no more may wait."""
        delayed = records.delayed
        at = None if delayed is None else delayed.next_intake(records.rules)
        snapshot = self._partition.log.snapshot
        if delayed is None or at is None or not self._parts.may_grow():
            return None
        if at < snapshot.log_start_offset:
            records.log_starts_at(snapshot.log_start_offset)
            return self._next(records, max_bytes)
        if at >= last_fetchable(snapshot, committed=self._committed):
            return None
        data = self._partition.read(at, max_bytes, committed=self._committed, whole_first=True)
        if data is None or (data.unverified is None and not data.slices):
            return None
        return _Piece(delayed, at, data)

    def _take(self, records: SharePartition, piece: _Piece, work: Work | None) -> bool:
        """Takes in a piece that is in memory; False when it needs a lane, or is damaged."""
        try:
            found = self._read(piece, self._terms, work)
        except NotInMemory:
            return False
        except (StorageError, DecodeError) as fault:
            raise self._refusal(piece, fault) from None
        self._came(records, piece, found)
        return True

    def _read(self, piece: _Piece, terms: DelayTerms, work: Work | None) -> DueTimes:
        reader = DueReader(self._partition.log.search, piece.data.slices[0], work)
        return reader.read(terms, self._parts.now_ms())

    def _came(self, records: SharePartition, piece: _Piece, found: DueTimes) -> None:
        if records.delayed is piece.delayed and found.terms == self._terms:
            piece.delayed.take_in(piece.at, found.batches, records.rules)
            self._took(found)

    # --- on a lane ---

    def _read_on(self, records: SharePartition, piece: _Piece) -> None:
        if piece.data.unverified is not None:
            done = partial(self._verified, records)
            self._parts.damage.settle([piece.data.unverified], done)
            return
        read = self._partition.on_unpacking_lane(
            partial(self._read, piece, self._terms), at=piece.at
        )
        read.listen(partial(self._came_from_lane, records, piece))

    def _verified(
        self,
        records: SharePartition,
        unreadable: Collection[Unreadable],
        late: Collection[Unverified],
    ) -> None:
        if self._has_left:
            return
        if unreadable:
            (failed,) = unreadable
            self._stop(failed.error)
        elif late:
            self._stop(None)
        else:
            self._read_next(records)  # again: what the tier's store gave has a slice only now

    def _came_from_lane(
        self,
        records: SharePartition,
        piece: _Piece,
        found: DueTimes | None,
        error: BaseException | None,
    ) -> None:
        if self._has_left:
            return
        if found is None:
            self._stop(self._refusal(piece, error))
            return
        self._read_next(records, piece, found)

    def _read_next(
        self, records: SharePartition, before: _Piece | None = None, found: DueTimes | None = None
    ) -> None:
        """Takes in what was found in a piece, and goes on from the cursor if that moved."""
        try:
            if before is not None and found is not None:
                self._came(records, before, found)
            following = self._next(records, PIECE_BYTES)
        except (KafkaError, StorageError) as fault:
            self._stop(fault)
            return
        if following is None or (before is not None and following[:2] == before[:2]):
            self._stop(None)
        else:
            self._read_on(records, following)

    def _stop(self, fault: KafkaError | StorageError | None) -> None:
        """The next fetch that looks goes on; or it is refused, and the one after it goes on."""
        self._is_busy = False
        self._fault = fault
        self._took(None)

    def _refusal(self, piece: _Piece, error: BaseException | None) -> KafkaError:
        if isinstance(error, KafkaError):
            return error
        if isinstance(error, StorageError):
            return wire_error(error)
        if isinstance(error, DecodeError):
            return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"from offset {piece.at} on: {error}")
        if isinstance(error, TooMuchWork):
            text = f"The batch at offset {piece.at} unpacks to more than is allowed"
            return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, text)
        return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
