"""Proves one segment: its `.log` is read whole, once, and everything beside it compared with it.

Every batch with its CRC and its place among the others, every record with its time; then offset
index, time index and zones. They are read before the log, so that what a broker at work adds
meanwhile is in the log and not yet in them. Reads only.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from protocol.errors import DecodeError
from protocol.records.batch import LOG_APPEND_TIME
from protocol.records.compression import InflateLimit
from storage.dump.indexes import dump_offset_index, dump_time_index
from storage.dump.rows import Dumped, Row
from storage.env import File, FileSystem
from storage.files.layout import LOG, OFFSET_INDEX, SPAN, TIME_INDEX, TXN_INDEX, ZONES, segment_name
from storage.producers.leader_epochs import LeaderEpochs
from storage.scan.log_scan import CHUNK_BYTES, NO_LIMIT, LogScan, Scannable, ScannedChunk
from storage.scan.log_window import LogWindow
from storage.verify.batch import ProvenBatch, proven
from storage.verify.indexes import OffsetProof, TimeProof
from storage.verify.producers import ProducerProof
from storage.verify.report import PartitionReport, Severity
from storage.verify.zones import ZoneProof

_MAGIC_POSITION = 16


@dataclass(slots=True)
class WholeLog:
    """Shared state of a log's segments while they are verified one after the other."""

    fs: FileSystem
    report: PartitionReport
    producers: ProducerProof | None
    """None where segments are proved one by one: producers are known from the log's begin only."""
    epochs: LeaderEpochs
    progress: Callable[[int], object]
    """Called with the number of bytes read since the last call."""
    last_arrival_ms: int = 0
    chunk_bytes: int = CHUNK_BYTES
    """Bytes read at one time."""
    passing: Callable[[File], Scannable] = lambda file: file
    """Wrapper through which the `.log` is read."""


class SegmentProof:
    """One segment of a log, from its files to findings."""

    def __init__(
        self,
        log: WholeLog,
        base_offset: int,
        beside: Collection[str],
        *,
        following: int | None,
        is_open: bool,
    ) -> None:
        """Reads the files beside the log: the suffixes `beside`. DiskError.

        `following`: base offset of the next segment. `is_open`: a broker may be writing this one.
        """
        self._log = log
        self._report = log.report
        self._base_offset = base_offset
        self._beside = beside
        self._following = following
        self._is_open = is_open
        self.end_offset = base_offset
        self._offsets = OffsetProof(
            self._name(OFFSET_INDEX), self._rows(OFFSET_INDEX, dump_offset_index), self._report
        )
        self._times = TimeProof(
            self._name(TIME_INDEX), self._rows(TIME_INDEX, dump_time_index), self._report
        )
        zones = log.fs.read_bytes(self._path(ZONES)) if ZONES in beside else b""
        self._zones = ZoneProof(
            self._name(ZONES), base_offset, zones, self._report, log.last_arrival_ms
        )

    def run(self) -> int:
        """Read the log; the offset after its last sound batch. FileMissing if it went; DiskError"""
        for _ in self.steps():
            continue
        return self.end_offset

    def steps(self) -> Iterator[int]:
        """The same a piece at a time, each with its bytes; `end_offset` is known at the end."""
        file = self._log.fs.open(self._path(LOG), write=False)
        try:
            scan = LogScan(
                self._log.passing(file),
                limit=file.size(),
                next_offset=self._base_offset,
                below=min(self._base_offset + SPAN, self._following or NO_LIMIT),
                chunk_bytes=self._log.chunk_bytes,
            )
            for chunk in scan.chunks():
                self._add(chunk)
                yield len(chunk.data)
            if scan.fault:
                self._tell(*_fault(scan, file, is_open=self._is_open))
            if not scan.fault or self._is_open:
                self._finish(scan.end_position)
        finally:
            file.close()
        self._report.proved.segments += 1
        self._report.proved.size_bytes += scan.end_position
        self.end_offset = scan.next_offset

    def _add(self, chunk: ScannedChunk) -> None:
        for row in chunk.rows:
            gap = self._zones.gap_at(chunk.position + row[0])
            batch, error = proven(row, chunk.data, chunk.position, gap)
            self._check_records(batch, error)
            self._check_epoch(batch)
            self._offsets.add(batch)
            self._times.add(batch)
            self._zones.add(batch)
            if self._log.producers is not None:
                self._log.producers.add(row, chunk.data)
            self._report.proved.records += batch.record_count
        self._report.proved.batches += len(chunk.rows)
        self._log.progress(sum(row[5] for row in chunk.rows))

    def _check_records(self, batch: ProvenBatch, error: DecodeError | None) -> None:
        where = f"the batch at {batch.position}, offset {batch.base_offset}"
        if isinstance(error, InflateLimit):
            self._tell("note", f"{where}: {error.message}: its records were not looked at")
        elif error is not None:
            self._tell("damage", f"{where}: its records cannot be read: {error.message}")
        elif (
            not batch.attributes & LOG_APPEND_TIME
            and batch.record_count
            and batch.max_timestamp != batch.max_claimed
        ):
            stated = f"its header states the largest time {batch.max_timestamp}"
            self._tell("wrong", f"{where}: {stated}, its records have {batch.max_claimed}")

    def _check_epoch(self, batch: ProvenBatch) -> None:
        epochs, epoch = self._log.epochs, batch.leader_epoch
        expected = epochs.epoch_at(batch.base_offset)
        if epoch < 0 or expected is None or expected == epoch:
            return
        name = epochs.path.rpartition("/")[2]
        at = f"at offset {batch.base_offset}"
        what = f"epoch {expected} {at}, but the batch there has {epoch}"
        self._report.add("wrong", name, what)

    def _finish(self, end_position: int) -> None:
        is_open = self._is_open
        self._offsets.finish(end_position, is_open=is_open)
        self._times.finish(is_open=is_open or TIME_INDEX not in self._beside)
        self._zones.finish(is_open=is_open or ZONES not in self._beside)
        self._log.last_arrival_ms = self._zones.last_arrival_ms
        if self._log.producers is not None:
            has_index = TXN_INDEX in self._beside
            self._log.producers.finish_segment(self._base_offset, has_index=has_index)
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            if suffix not in self._beside and not is_open:
                self._report.add("note", self._name(suffix), "is missing: rebuilt when needed")

    def _rows(
        self, suffix: str, dump: Callable[[LogWindow, int], Iterator[Dumped]]
    ) -> Iterator[Dumped]:
        if suffix not in self._beside:
            return
        file = self._log.fs.open(self._path(suffix), write=False)
        try:
            for row in dump(LogWindow(file, file.size()), self._base_offset):
                if self._is_open and isinstance(row, Row) and self._is_reserved(row):
                    return
                yield row
        finally:
            file.close()

    def _is_reserved(self, row: Row) -> bool:
        """True when an entry is zeros: a Kafka at work has its index files at their full length."""
        return set(row.fields.values()) == {0, self._base_offset}

    def _name(self, suffix: str) -> str:
        return segment_name(self._base_offset, suffix)

    def _path(self, suffix: str) -> str:
        return f"{self._report.path}/{self._name(suffix)}"

    def _tell(self, severity: Severity, what: str) -> None:
        self._report.add(severity, self._name(LOG), what)


def _fault(scan: LogScan, file: File, *, is_open: bool) -> tuple[Severity, str]:
    """The end of the sound part, in words; a tail that is being written is no fault."""
    place = f"at {scan.end_position}, offset {scan.next_offset}"
    rest = scan.limit - scan.end_position
    head = file.read_at(scan.end_position, _MAGIC_POSITION + 1)
    if not scan.end_position and len(head) > _MAGIC_POSITION and head[_MAGIC_POSITION] in {0, 1}:
        upgrade = "not proved: a broker that opens it rewrites it in format 2"
        return "note", f"message format {head[_MAGIC_POSITION]}, {upgrade}"
    behind = scan.good_batch_behind()
    if behind is None and is_open:
        return "note", f"{place}: {rest} bytes are no whole batch: under way, or torn by a crash"
    follows = "nothing sound follows" if behind is None else f"sound ones follow at {behind}"
    unproved = f"{rest} bytes of the segment were not proved"
    return "damage", f"the batch {place} is damaged ({scan.fault}), {follows}; {unproved}"
