"""Ends of logs in directories: the last whole batch, and the first one of an open transaction.

Reads only, and repairs nothing. `files` say where the directory's files are.
"""

from collections.abc import Iterator

from pipeline.decode.batch_columns import LAST_OFFSET
from pipeline.decode.columns import BatchOrigin
from pipeline.directories.log_files import FILES, Files
from pipeline.errors import DamagedLog
from pipeline.sources.batch_tables import read_tables
from protocol.records.batch import CONTROL, MAX_INT64, TRANSACTIONAL
from protocol.records.scan import BatchRow
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.layout import LOG, OFFSET_INDEX, SNAPSHOT, segment_name
from storage.files.partition_listing import PartitionListing, look_at
from storage.index.offset_search import OffsetSearch
from storage.producers.producer_snapshots import decode as decode_snapshot
from storage.scan.log_scan import LogScan


def last_stable_offset(directory: str, end_offset: int, files: Files = FILES) -> int:
    """The first offset of the earliest transaction that is open at `end_offset`, else that.

    Reads the newest snapshot of the producers and the headers behind it.
    """
    listing = look_at(files, directory)
    begin, open_at = _newest_snapshot(files, directory, listing, end_offset)
    for row in _rows_from(files, directory, listing, begin):
        if row[1] >= end_offset:
            break
        if row[7] & CONTROL:
            open_at.pop(row[8], None)
        elif row[7] & TRANSACTIONAL and row[8] >= 0:
            open_at.setdefault(row[8], row[1])
    return min(open_at.values(), default=end_offset)


def log_end_offset(directory: str, listing: PartitionListing, files: Files = FILES) -> int:
    """The offset behind the last whole and sound batch.

    Unlike a broker's start it takes a torn tail for the end, and repairs nothing.
    """
    if not listing.logs:
        return 0
    base = listing.bases[-1]
    end = base
    for row in _tail(files, directory, base, listing.logs[base].size_bytes):
        end = row[2] + 1
    if end == base and listing.logs[base].size_bytes:
        return _end_of_old(files, directory, base, listing.logs[base].size_bytes)
    return end


def _newest_snapshot(
    files: Files, directory: str, listing: PartitionListing, end_offset: int
) -> tuple[int, dict[int, int]]:
    """The offset of the newest sound snapshot up to there, and what was open: first offsets."""
    for offset in sorted((at for at in listing.snapshots if at <= end_offset), reverse=True):
        path = f"{directory}/{segment_name(offset, SNAPSHOT)}"
        try:
            entries = decode_snapshot(path, files.read_bytes(path))
        except (CorruptCheckpoint, FileMissing):
            continue
        return offset, {
            producer: entry.txn_first_offset
            for producer, entry in entries
            if entry.txn_first_offset >= 0
        }
    return 0, {}


def _rows_from(
    files: Files, directory: str, listing: PartitionListing, offset: int
) -> Iterator[BatchRow]:
    """The batches from an offset on; those before it in its segment are left out."""
    bases = listing.bases
    for index, base in enumerate(bases):
        if index + 1 < len(bases) and bases[index + 1] <= offset:
            continue
        for row in _scanned(files, directory, base, 0, listing.logs[base].size_bytes):
            if row[1] >= offset:
                yield row


def _tail(files: Files, directory: str, base: int, size: int) -> Iterator[BatchRow]:
    """The last batches of a segment: from the last entry of its index, if that is true.

    Unlike `indexed_batch` the scan, which is made in any case, looks at the batch's CRC as well.
    """
    index = OffsetSearch(files, f"{directory}/{segment_name(base, OFFSET_INDEX)}", base)
    last = index.last_up_to(MAX_INT64)
    if last is None:
        return _scanned(files, directory, base, 0, size)
    rows = _scanned(files, directory, base, last.position, size)
    first = next(rows, None)
    if first is None or first[2] != last.offset:
        return _scanned(files, directory, base, 0, size)
    return iter((first, *rows))


def _end_of_old(files: Files, directory: str, base: int, size: int) -> int:
    """Likewise, of a segment that does not begin in format 2: all of it is read."""
    end = base
    file = files.open_log(f"{directory}/{segment_name(base, LOG)}")
    try:
        for part in read_tables(file, BatchOrigin(directory, -1, base), 0, size, MAX_INT64):
            end = int(part.table.rows[-1, LAST_OFFSET]) + 1
    except DamagedLog:  # a torn tail
        return end
    finally:
        file.close()
    return end


def _scanned(
    files: Files, directory: str, base: int, position: int, size: int
) -> Iterator[BatchRow]:
    file = files.open_log(f"{directory}/{segment_name(base, LOG)}")
    try:
        for chunk in LogScan(file, position, limit=size, next_offset=base).chunks():
            yield from chunk.rows
    finally:
        file.close()
