"""Proves the entries of a segment's offset and time index against its batches, one pass for both.

Fed with the batches in order. An offset index entry must be the last offset of the batch at its
position (semantics.md 2). A time index entry (T, O) has two readings (time.md 8): as shipped, O is
the last offset of the first batch that reached T, or in some versions the record's own; as KIP-33
writes it, T is the largest time before O. In both, no record before O is later than T: else a
search would miss it.

Unlike `indexed_batch`, which looks one entry up in the log, a proof has every batch at hand.
"""

from array import array
from collections.abc import Iterable

from storage.dump.rows import Damage, Dumped
from storage.verify.batch import ProvenBatch
from storage.verify.report import PartitionReport

Columns = tuple["array[int]", "array[int]"]


class OffsetProof:
    """The entries of one `.index`."""

    def __init__(self, file: str, rows: Iterable[Dumped], report: PartitionReport) -> None:
        """`rows` as a dump gives them."""
        self._file = file
        self._report = report
        self._offsets, self._positions = _columns(rows, ("offset", "position"), file, report)
        self._next = 0

    def add(self, batch: ProvenBatch) -> None:
        """The next batch."""
        positions, index = self._positions, self._next
        while index < len(positions) and positions[index] <= batch.position:
            if positions[index] < batch.position:
                self._wrong(index, "no batch begins there")
            elif self._offsets[index] != batch.last_offset:
                self._wrong(index, f"the batch there ends with offset {batch.last_offset}")
            else:
                self._report.proved.offset_entries += 1
            index += 1
        self._next = index

    def finish(self, end_position: int, *, is_open: bool) -> None:
        """Checks the end. Of an open segment the index may know more by now."""
        for index in range(self._next, len(self._positions)):
            if not is_open:
                self._wrong(index, f"the log ends at {end_position}")

    def _wrong(self, index: int, why: str) -> None:
        entry = f"offset {self._offsets[index]} position {self._positions[index]}"
        self._report.add("wrong", self._file, f"entry {index} ({entry}): {why}")


class TimeProof:
    """The entries of one `.timeindex`."""

    def __init__(self, file: str, rows: Iterable[Dumped], report: PartitionReport) -> None:
        """`rows` as a dump gives them."""
        self._file = file
        self._report = report
        self._times, self._offsets = _columns(rows, ("timestamp", "offset"), file, report)
        self._next = 0
        self._largest = -1
        self._end_offset = -1

    def add(self, batch: ProvenBatch) -> None:
        """The next batch."""
        offsets, index = self._offsets, self._next
        while index < len(offsets) and offsets[index] <= batch.last_offset:
            self._judge(index, batch)
            index += 1
        self._next = index
        self._largest = max(self._largest, batch.max_timestamp)
        self._end_offset = batch.last_offset + 1

    def finish(self, *, is_open: bool) -> None:
        """Checks the end. The index of a closed segment ends with the largest time."""
        for index in range(self._next, len(self._offsets)):
            if self._is_next(index) or self._is_migrated(index):
                self._report.proved.time_entries_next += 1
            elif not is_open:
                self._wrong(index, f"the log ends with offset {self._end_offset - 1}")
        last = self._times[-1] if self._times else -1
        if last < self._largest and not is_open:
            what = f"ends with time {last}, but the segment reaches {self._largest}"
            self._report.add("wrong", self._file, what)

    def _judge(self, index: int, batch: ProvenBatch) -> None:
        timestamp, offset = self._times[index], self._offsets[index]
        if self._largest > timestamp:
            self._wrong(index, f"hides a record of the later time {self._largest} before it")
        elif (
            offset in {batch.last_offset, batch.max_claimed_offset}
            and batch.max_timestamp == timestamp
            and self._largest < timestamp
        ):
            self._report.proved.time_entries_max += 1
        elif self._is_next(index):
            self._report.proved.time_entries_next += 1
        else:
            self._wrong(index, "no batch has this time first, there or just before")

    def _is_next(self, index: int) -> bool:
        return self._offsets[index] == self._end_offset and self._times[index] == self._largest

    def _is_migrated(self, index: int) -> bool:
        """KIP-33's entry for a segment without times: modification time, base of the next one."""
        return self._largest < 0 and not index and self._offsets[index] == self._end_offset

    def _wrong(self, index: int, why: str) -> None:
        entry = f"timestamp {self._times[index]} offset {self._offsets[index]}"
        self._report.add("wrong", self._file, f"entry {index} ({entry}): {why}")


def _columns(
    rows: Iterable[Dumped], names: tuple[str, str], file: str, report: PartitionReport
) -> Columns:
    """Two columns of numbers; what the file itself gets wrong is a finding."""
    columns = array("q"), array("q")
    for row in rows:
        if isinstance(row, Damage):
            report.add("wrong", file, f"at {row.position}: {row.why}")
        elif row.kind != "empty":
            for column, name in zip(columns, names, strict=True):
                value = row.fields[name]
                assert isinstance(value, int)
                column.append(value)
    return columns
