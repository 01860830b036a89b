"""Partitions in data directories, and the offsets up to which they may be read. Reads only.

A live broker's directory is read up to the high watermark that the broker wrote down last: records
behind it may be incomplete, and may still be lost. After a clean stop, and in a copy of
single partitions, all whole batches count. With a broker at hand, ask that (`broker_views`). A copy
in an object store has what it has.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipeline.decode.batch_columns import LAST_OFFSET
from pipeline.decode.columns import BatchOrigin
from pipeline.directories.log_files import FILES, is_stored
from pipeline.directories.partitions import LocalPartition, partitions_in
from pipeline.errors import DamagedLog
from pipeline.sources.batch_tables import read_tables
from pipeline.sources.partition_view import PartitionView
from protocol.records.batch import CONTROL, MAX_INT64, TRANSACTIONAL
from protocol.records.scan import BatchRow
from storage.errors import CorruptCheckpoint, FileMissing
from storage.files.checkpoints import OffsetCheckpoint
from storage.files.layout import (
    CLEAN_SHUTDOWN_FILE,
    HIGH_WATERMARKS_FILE,
    LOG,
    OFFSET_INDEX,
    PARTITION_METADATA_FILE,
    SNAPSHOT,
    PartitionName,
    segment_name,
)
from storage.files.meta_properties import read_partition_metadata
from storage.files.partition_listing import PartitionListing, look_at
from storage.index.offset_search import OffsetSearch
from storage.producers.producer_snapshots import decode as decode_snapshot
from storage.scan.log_scan import LogScan


class _Directory(NamedTuple):
    """Facts of a data directory about all its partitions."""

    watermarks: dict[PartitionName, int] | None
    """None: all records there count."""


def views_in(
    log_dirs: Iterable[str],
    topics: Iterable[str],
    *,
    is_committed: bool = False,
    is_offline: bool = False,
) -> list[PartitionView]:
    """The partitions of the topics, none named: of all. `is_offline`: no broker is at work there.

    `is_committed`: up to the last stable offset. NothingThere, DiskError.
    """
    known: dict[str, _Directory] = {}
    views = []
    for each in partitions_in(FILES, log_dirs, topics):
        if each.directory not in known:
            known[each.directory] = _directory(each.directory, is_offline=is_offline)
        views.append(_view(each, known[each.directory], is_committed=is_committed))
    return views


def topic_id_of(directory: str) -> str:
    """The topic id of the partition in that directory; empty when it is not stored."""
    try:
        found = read_partition_metadata(FILES, f"{directory}/{PARTITION_METADATA_FILE}")
    except CorruptCheckpoint:
        return ""
    return "" if found is None else found.hex


def last_stable_offset(directory: str, end_offset: int) -> int:
    """The first offset of the earliest transaction that is open at `end_offset`, else that.

    Reads the newest snapshot of the producers and the headers behind it.
    """
    listing = look_at(FILES, directory)
    begin, open_at = _newest_snapshot(directory, listing, end_offset)
    for row in _rows_from(directory, listing, begin):
        if row[1] >= end_offset:
            break
        if row[7] & CONTROL:
            open_at.pop(row[8], None)
        elif row[7] & TRANSACTIONAL and row[8] >= 0:
            open_at.setdefault(row[8], row[1])
    return min(open_at.values(), default=end_offset)


def log_end_offset(directory: str, listing: PartitionListing | None = None) -> int:
    """The offset behind the last whole and sound batch.

    Unlike a broker's start it takes a torn tail for the end, and repairs nothing.
    """
    listing = listing or look_at(FILES, directory)
    if not listing.logs:
        return 0
    base = listing.bases[-1]
    end = base
    for row in _tail(directory, base, listing.logs[base].size_bytes):
        end = row[2] + 1
    if end == base and listing.logs[base].size_bytes:
        return _end_of_old(directory, base, listing.logs[base].size_bytes)
    return end


def _directory(path: str, *, is_offline: bool) -> _Directory:
    watermarks = f"{path}/{HIGH_WATERMARKS_FILE}"
    if (
        is_offline
        or is_stored(path)
        or FILES.exists(f"{path}/{CLEAN_SHUTDOWN_FILE}")
        or not FILES.exists(watermarks)
    ):
        return _Directory(None)
    return _Directory(OffsetCheckpoint(FILES, watermarks).load().offsets)


def _view(found: LocalPartition, directory: _Directory, *, is_committed: bool) -> PartitionView:
    listing = look_at(FILES, found.path)
    start = max(found.start_offset, listing.bases[0] if listing.logs else 0)
    if directory.watermarks is None:
        end = log_end_offset(found.path, listing)
    else:
        end = directory.watermarks.get(found.name, 0)
    end = max(start, end)
    if is_committed:
        end = max(start, last_stable_offset(found.path, end))
    topic, partition = found.name
    size = sum(entry.size_bytes for entry in listing.logs.values())
    topic_id = topic_id_of(found.path)
    return PartitionView(topic, partition, topic_id, start, end, found.path, size_bytes=size)


def _newest_snapshot(
    directory: str, listing: PartitionListing, end_offset: int
) -> tuple[int, dict[int, int]]:
    """The offset of the newest sound snapshot up to there, and what was open: first offsets."""
    for offset in sorted((at for at in listing.snapshots if at <= end_offset), reverse=True):
        path = f"{directory}/{segment_name(offset, SNAPSHOT)}"
        try:
            entries = decode_snapshot(path, FILES.read_bytes(path))
        except (CorruptCheckpoint, FileMissing):
            continue
        return offset, {
            producer: entry.txn_first_offset
            for producer, entry in entries
            if entry.txn_first_offset >= 0
        }
    return 0, {}


def _rows_from(directory: str, listing: PartitionListing, offset: int) -> Iterator[BatchRow]:
    """The batches from an offset on; those before it in its segment are left out."""
    bases = listing.bases
    for index, base in enumerate(bases):
        if index + 1 < len(bases) and bases[index + 1] <= offset:
            continue
        for row in _scanned(directory, base, 0, listing.logs[base].size_bytes):
            if row[1] >= offset:
                yield row


def _tail(directory: str, base: int, size: int) -> Iterator[BatchRow]:
    """The last batches of a segment: from the last entry of its index, if that is true.

    Unlike `indexed_batch` the scan, which is made in any case, looks at the batch's CRC as well.
    """
    index = OffsetSearch(FILES, f"{directory}/{segment_name(base, OFFSET_INDEX)}", base)
    last = index.last_up_to(MAX_INT64)
    if last is None:
        return _scanned(directory, base, 0, size)
    rows = _scanned(directory, base, last.position, size)
    first = next(rows, None)
    if first is None or first[2] != last.offset:
        return _scanned(directory, base, 0, size)
    return iter((first, *rows))


def _end_of_old(directory: str, base: int, size: int) -> int:
    """Likewise, of a segment that does not begin in format 2: all of it is read."""
    end = base
    file = FILES.open_log(f"{directory}/{segment_name(base, LOG)}")
    try:
        for part in read_tables(file, BatchOrigin(directory, -1, base), 0, size, MAX_INT64):
            end = int(part.table.rows[-1, LAST_OFFSET]) + 1
    except DamagedLog:  # a torn tail
        return end
    finally:
        file.close()
    return end


def _scanned(directory: str, base: int, position: int, size: int) -> Iterator[BatchRow]:
    file = FILES.open_log(f"{directory}/{segment_name(base, LOG)}")
    try:
        for chunk in LogScan(file, position, limit=size, next_offset=base).chunks():
            yield from chunk.rows
    finally:
        file.close()
