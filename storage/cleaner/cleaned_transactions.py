"""Transactional batches that compaction may drop: aborted data at once, markers when alone.

A marker stays while a batch of its transaction does, for readers of committed data need it; the
index of aborted transactions keeps those whose marker stays for that reason. Fed with all batches
in offset order. Rules: semantics.md 8.4.
"""

import struct
from collections.abc import Iterable
from struct import Struct

from protocol.errors import DecodeError
from protocol.records.batch import CONTROL, TRANSACTIONAL
from protocol.records.record import read_records
from protocol.records.scan import BatchRow
from storage.index.txn_index import AbortedTxn

_MARKER_KEY = Struct(">hh")  # version, type
_ABORT, _COMMIT = 0, 1


class CleanedTransactions:
    """The transactions that the batches read so far belong to."""

    __slots__ = ("_aborted", "_coming", "_committed", "kept")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        """`aborted`: every aborted transaction with a batch in what will be read."""
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, tuple[AbortedTxn, bool]] = {}  # by producer; has data
        self._committed: set[int] = set()
        self.kept: list[AbortedTxn] = []
        """Those whose marker stayed with data before it, for the new segment's index."""

    def may_go(self, row: BatchRow, batch: memoryview) -> bool:
        """True when the batch has no effect: aborted data, or a marker without data."""
        attributes = row[7]
        if not attributes & (TRANSACTIONAL | CONTROL):
            return False
        while self._coming and self._coming[-1].first_offset <= row[2]:
            begun = self._coming.pop()
            self._aborted.setdefault(begun.producer_id, (begun, False))
        if attributes & CONTROL:
            return self._marker_may_go(row, batch)
        found = self._aborted.get(row[8])
        if found is None:
            self._committed.add(row[8])
            return False
        self._aborted[row[8]] = (found[0], True)
        return True

    def _marker_may_go(self, row: BatchRow, batch: memoryview) -> bool:
        if not row[6]:
            return True  # an empty one was cleaned before
        kind = _kind_of(batch)
        if kind == _ABORT:
            ended = self._aborted.pop(row[8], None)
            if ended is None or not ended[1]:
                return True
            self.kept.append(ended[0])
            return False
        if kind == _COMMIT:
            had_data = row[8] in self._committed
            self._committed.discard(row[8])
            return not had_data
        return False


def _kind_of(batch: memoryview) -> int:
    try:
        kind: int = _MARKER_KEY.unpack_from(read_records(batch)[0].key or b"")[1]
    except (DecodeError, IndexError, struct.error):
        return -1  # not a marker: it stays
    return kind
