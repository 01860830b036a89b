"""Writes the segment that compaction makes of some old ones: log, indexes, zones, in one pass.

Its files end with `.cleaned` and are durable, names too, when `finish` returns; before that they
count for nothing and the next start removes them. The last batch of the old segments always stays,
empty if need be, so that the segment ends where they ended and no gap is left before the next one.
"""

from collections.abc import Sequence
from contextlib import suppress

from protocol.checksum import crc32c
from protocol.records.batch import LOG_APPEND_TIME
from protocol.records.scan import BatchRow
from storage.cleaner.batch_cleaner import CleanedBatch, empty_batch
from storage.cleaner.cleaned_zones import CleanedZones
from storage.env import Buffer, File
from storage.errors import FileMissing
from storage.files.layout import CLEANED, LOG, SEGMENT_SUFFIXES, SWAP, TXN_INDEX, ZONES
from storage.files.partition_files import PartitionFiles
from storage.index.txn_index import AbortedTxn, TxnIndex
from storage.segment.index_rebuild import IndexRebuild
from storage.segment.segment import IndexRules, Segment
from storage.zones.zone_map import Zone


class CleanedSegment:
    """One new segment while it is written."""

    def __init__(self, old: Sequence[Segment], rules: IndexRules, files: PartitionFiles) -> None:
        """Begin the segment that will replace these neighbours, in this directory. DiskError."""
        first, last = old[0], old[-1]
        self.segment = Segment(files, first.base_offset, 0, last.mtime_ms)
        self.segment.swap_suffix = CLEANED
        self.segment.generation = first.generation + 1
        self.segment.arrival_floor_ms = first.arrival_floor_ms
        self.bytes_written = 0
        self._is_compared = len(old) == 1 and first.away is not None
        self._old_crc = self._new_crc = self._old_bytes = 0
        self._rules = rules
        self._file = self._new_file()
        self._indexes = IndexRebuild(self.segment, rules)
        self._zones = CleanedZones(
            first.base_offset, zone_bytes=rules.zone_bytes, zone_ms=rules.zone_ms
        )
        self._parts: list[Buffer] = []
        self._rows: list[BatchRow] = []
        self._position = 0  # where the next batch goes
        self._flushed = 0
        self._run: tuple[memoryview, int, int] | None = None  # batches that stay as stored
        self._gone: BatchRow | None = None
        self._end_offset = first.base_offset

    def begin_source(self, zones: Sequence[Zone], mtime_ms: int) -> None:
        """The batches that follow are of the next old segment, which has these zones."""
        self._zones.begin_source(zones, mtime_ms)

    def take(
        self, data: memoryview, begin: int, row: BatchRow, cleaned: CleanedBatch | None
    ) -> None:
        """Writes the remains of the batch at `row` in `data`, a piece of the old `.log` from
        `begin` on.
        """
        if cleaned is None:
            self._gone = row
            return
        if cleaned.data is None:
            self._extend_run(data, row)
            size = row[5]
        else:
            self._end_run()
            self._parts.append(cleaned.data)
            size = len(cleaned.data)
        self._put(row, begin + row[0], size, cleaned)

    def compare(self, data: Buffer) -> None:
        """The next bytes of the old `.log`, for `is_as_before`."""
        if self._is_compared:
            self._old_crc = crc32c(data, self._old_crc)
            self._old_bytes += len(data)

    @property
    def is_as_before(self) -> bool:
        """True, once it is finished, when it is the one segment of a store that it replaces."""
        old, new = (self._old_bytes, self._old_crc), (self._position, self._new_crc)
        return self._is_compared and old == new

    def flush(self) -> None:
        """Write what was taken; the pieces of old logs are not needed any more. DiskError."""
        self._end_run()
        if self._is_compared:
            for part in self._parts:
                self._new_crc = crc32c(part, self._new_crc)
        if self._parts:
            self._file.write_parts_at(self._flushed, self._parts)
            self._parts.clear()
        self.bytes_written += self._position - self._flushed
        self._flushed = self._position
        self._indexes.add(self._rows, 0)
        self._rows.clear()

    def finish(self, aborted: Sequence[AbortedTxn]) -> Segment:
        """All batches were taken: make the files durable. DiskError."""
        if self._gone is not None and self._gone[2] >= self._end_offset:
            self.take(memoryview(b""), 0, self._gone, empty_batch(self._gone))
        self.flush()
        segment = self.segment
        segment.size_bytes = self._position
        self._file.sync()
        indexes = self._indexes.finish(self._position, self._end_offset, closed=True)
        self._write_zones()
        indexes.zones.check()
        for index in indexes[:2]:
            index.sync()
        self._write_aborted(aborted)
        segment.files.fs.set_mtime(segment.path_of(LOG), segment.mtime_ms)
        segment.files.fs.sync_dir(segment.files.path)
        segment.indexes, segment.verified = indexes, True
        zones = list(indexes.zones.zones())
        if zones:
            segment.first_arrival_ms = zones[0].first_arrival_ms
            segment.last_arrival_ms = segment.arrival_by(indexes.zones)
        segment.pinned = self._file
        return segment

    def discard(self) -> None:
        """Remove the files, under either of their names. DiskError: the next start does.

        A set of `.swap` files counts while no `.cleaned` is beside it, so that is what its `.log`
        is called again first, and what goes last; each step durably, before the next one.
        """
        self._file.close()
        fs, files = self.segment.files.fs, self.segment.files
        log = files.name_of(self.segment.base_offset, LOG)
        with suppress(FileMissing):
            fs.rename(log + SWAP, log + CLEANED)
            fs.sync_dir(files.path)
        for ending in (SWAP, CLEANED):
            for suffix in SEGMENT_SUFFIXES:
                try:
                    fs.remove(files.name_of(self.segment.base_offset, suffix + ending))
                except FileMissing:
                    continue
            fs.sync_dir(files.path)

    def _new_file(self) -> File:
        fs = self.segment.files.fs
        for suffix in SEGMENT_SUFFIXES:
            try:
                fs.remove(self.segment.path_of(suffix))
            except FileMissing:
                continue
        return fs.open(self.segment.path_of(LOG), create=True)

    def _extend_run(self, data: memoryview, row: BatchRow) -> None:
        """Neighbours that stay whole are written in one piece."""
        run, begin, end = self._run or (data, row[0], row[0])
        if run is not data or end != row[0]:
            self._end_run()
            begin = row[0]
        self._run = (data, begin, row[0] + row[5])

    def _end_run(self) -> None:
        if self._run is not None:
            data, begin, end = self._run
            self._parts.append(data[begin:end])
            self._run = None

    def _put(self, row: BatchRow, old_position: int, size: int, cleaned: CleanedBatch) -> None:
        position, kept = self._position, cleaned.kept
        placed = position, row[1], row[2], cleaned.base_timestamp, cleaned.max_timestamp, size
        self._rows.append((*placed, kept.count, cleaned.attributes, *row[8:]))
        self._zones.add(
            old_position,
            row[1],
            position,
            size,
            kept.count,
            kept.min_timestamp,
            kept.max_timestamp,
            is_untimed=kept.untimed > 0,
            is_stamped=bool(cleaned.attributes & LOG_APPEND_TIME),
        )
        self._position = position + size
        self._end_offset = row[2] + 1

    def _write_zones(self) -> None:
        self._write(ZONES, self._zones.finish())

    def _write_aborted(self, aborted: Sequence[AbortedTxn]) -> None:
        if not aborted:
            return
        path, base = self.segment.path_of(TXN_INDEX), self.segment.base_offset
        index = TxnIndex(self.segment.files.fs, path, base)
        for each in aborted:
            index.append(each)
        index.sync()
        assert self.segment.aborted.entries == index.entries  # in memory while names change

    def _write(self, suffix: str, data: bytes) -> None:
        file = self.segment.files.fs.open(self.segment.path_of(suffix), create=True)
        try:
            file.truncate(0)
            file.write_at(0, data)
            file.sync()
        finally:
            file.close()
