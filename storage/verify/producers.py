"""Verifies the stored state of producers and transactions by replaying the log.

Snapshots must say what the batches below their offset say; each marker that ends a transaction in
abort must have its entry in the segment's index of aborted transactions, and each entry its marker.
Where compaction has removed batches, or the log began before its first segment, unknown
facts do not count as faults. Rules: semantics.md 9.2, 10.
"""

from protocol.records.batch import CONTROL, read_header
from protocol.records.markers import ABORT, marker_of
from protocol.records.scan import BatchRow
from storage.env import FileSystem
from storage.errors import CorruptCheckpoint, CorruptIndex
from storage.files.layout import SNAPSHOT, TXN_INDEX, segment_name
from storage.index.txn_index import AbortedTxn, TxnIndex
from storage.producers import producer_snapshots
from storage.producers.producer_state import ProducerEntry, ProducerStates
from storage.producers.replay import aborted_of
from storage.verify.report import PartitionReport

_Producers = list[tuple[int, ProducerEntry]]


class ProducerProof:
    """One log played through, from its first segment on."""

    def __init__(
        self, fs: FileSystem, report: PartitionReport, first_offset: int, snapshots: list[int]
    ) -> None:
        """`snapshots`: offsets of those that exist. DiskError."""
        self._fs = fs
        self._report = report
        self._states = ProducerStates()
        self._pending = sorted(snapshots, reverse=True)
        self._is_whole = not first_offset
        self._next_offset = first_offset
        self._aborts: dict[int, AbortedTxn | None] = {}
        self._seed(first_offset)

    def add(self, row: BatchRow, data: memoryview) -> None:
        """The next batch of the log. DiskError when a snapshot cannot be read."""
        base_offset, last_offset = row[1], row[2]
        if base_offset > self._next_offset:
            self._is_whole = False  # something was compacted away, or is missing
        while self._pending and self._pending[-1] <= base_offset:
            self._prove_snapshot(self._pending.pop())
        if row[6] <= last_offset - base_offset:
            self._is_whole = False
        self._next_offset = last_offset + 1
        if row[8] < 0:
            return
        if row[7] & CONTROL:
            self._end_transaction(row, data)
        else:
            self._states.update(read_header(data, row[0]), base_offset, row[4])

    def finish_segment(self, base_offset: int, *, has_index: bool) -> None:
        """Checks the end of a segment: compares its index of aborted transactions. DiskError."""
        name = segment_name(base_offset, TXN_INDEX)
        index = TxnIndex(self._fs, f"{self._report.path}/{name}", base_offset)
        try:
            entries = index.entries if has_index else ()
        except CorruptIndex as error:
            self._report.add("wrong", name, error.message)
            entries = ()
        for entry in entries:
            self._prove_abort(name, entry)
        for offset, expected in self._aborts.items():
            if expected is not None:
                what = f"lacks the transaction that was aborted at offset {offset}"
                self._report.add("wrong", name, f"{what}: its records would be read")
        self._aborts = {}

    def finish(self, *, is_open: bool) -> None:
        """Checks the end of the log. DiskError."""
        while self._pending and self._pending[-1] <= self._next_offset:
            self._prove_snapshot(self._pending.pop())
        for offset in reversed(self._pending):
            if not is_open:
                name = segment_name(offset, SNAPSHOT)
                what = f"is of an offset behind the end of the log, {self._next_offset}"
                self._report.add("wrong", name, what)

    def _seed(self, first_offset: int) -> None:
        """Loads the state before the first segment, from the snapshot of its begin."""
        while self._pending and self._pending[-1] <= first_offset:
            offset = self._pending.pop()
            entries = self._read(offset)
            if offset == first_offset:
                for producer_id, entry in entries or ():
                    self._states.restore(producer_id, entry)

    def _end_transaction(self, row: BatchRow, data: memoryview) -> None:
        marker = marker_of(data[row[0] : row[0] + row[5]])
        if marker is None:
            return
        is_aborted = marker.kind == ABORT
        ended = self._states.end_transaction(
            row[8], row[9], marker.coordinator_epoch, row[1], row[4], is_aborted=is_aborted
        )
        if is_aborted:
            self._aborts[row[1]] = None if ended is None else aborted_of(ended)

    def _prove_abort(self, name: str, entry: AbortedTxn) -> None:
        offset = entry.last_offset
        if offset not in self._aborts:
            self._report.add("wrong", name, f"{entry}: there is no marker of an abort at {offset}")
            return
        expected = self._aborts[offset]
        self._aborts[offset] = None
        if expected is None:
            if self._is_whole:
                self._report.add("wrong", name, f"{entry}: its producer had no open transaction")
            return
        same = entry == expected or (
            not self._is_whole
            and entry.producer_id == expected.producer_id
            and entry.first_offset <= expected.first_offset
        )
        if same:
            self._report.proved.aborted_transactions += 1
        else:
            self._report.add("wrong", name, f"{entry}: the log says {expected}")

    def _prove_snapshot(self, offset: int) -> None:
        entries = self._read(offset)
        if entries is None:
            return
        wrong = [each for each in entries if not self._agrees(*each)]
        for producer_id, entry in wrong:
            what = f"producer {producer_id}: {_summary(entry)}; the log: "
            mine = self._states.get(producer_id)
            what += "nothing of it" if mine is None else _summary(mine)
            self._report.add("wrong", segment_name(offset, SNAPSHOT), what)
        if not wrong:
            self._report.proved.snapshots += 1

    def _agrees(self, producer_id: int, entry: ProducerEntry) -> bool:
        mine = self._states.get(producer_id)
        if mine is None or mine.last_offset < entry.last_offset:
            return not self._is_whole
        return _facts(mine) == _facts(entry) and self._began_alike(mine, entry)

    def _began_alike(self, mine: ProducerEntry, entry: ProducerEntry) -> bool:
        """True when both transactions began alike; the first records may have been compacted
        away.
        """
        in_log, in_snapshot = mine.txn_first_offset, entry.txn_first_offset
        return in_log == in_snapshot or (not self._is_whole and 0 <= in_snapshot <= in_log)

    def _read(self, offset: int) -> _Producers | None:
        name = segment_name(offset, SNAPSHOT)
        path = f"{self._report.path}/{name}"
        try:
            return producer_snapshots.decode(path, self._fs.read_bytes(path))
        except CorruptCheckpoint as error:
            self._report.add("wrong", name, error.message)
            return None


def _facts(entry: ProducerEntry) -> tuple[int, ...]:
    return entry.epoch, entry.last_sequence, entry.last_offset


def _summary(entry: ProducerEntry) -> str:
    return (
        f"epoch {entry.epoch}, sequence {entry.last_sequence} at offset {entry.last_offset}, "
        f"open transaction from {entry.txn_first_offset}"
    )
