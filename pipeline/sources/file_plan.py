"""Cuts what is asked of partitions on disk into chunks, and chunks into tasks of like size."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pipeline.decode.decoder import Selection
from pipeline.directories.log_files import FILES, identity_of
from pipeline.errors import DamagedLog, DataLost
from pipeline.sources.bounds import ANY, OffsetBounds, Range
from pipeline.sources.chunks import Chunk, FileChunk, Task
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.segment_plan import PlannedSegment, Stretch, cut, proved_zones, stretches
from storage.errors import CorruptIndex, FileMissing
from storage.files.layout import ABORTS, LOG, TXN_INDEX
from storage.files.partition_listing import PartitionListing, look_at
from storage.index.txn_index import AbortedTxn, TxnIndex

MOST_TASK_BYTES = 128 * 1024 * 1024  # a task costs Spark what it takes to read 30 MiB
LEAST_TASK_BYTES = 16 * 1024 * 1024
ATTEMPTS = 3
BETWEEN_ATTEMPTS_SECONDS = 0.05


def plan_partition(
    view: PartitionView,
    bounds: OffsetBounds,
    *,
    is_committed: bool = False,
    fails_on_loss: bool = True,
    most_bytes: int = MOST_TASK_BYTES,
) -> list[FileChunk]:
    """The chunks of a partition that may hold something, in the order of the log.

    `is_committed`: records of aborted transactions are left out. DataLost when the first offset
    that is asked for has gone, unless `fails_on_loss` is False. DiskError.
    """
    offsets = bounds.offsets.within(Range(view.start_offset, view.end_offset - 1))
    if offsets.low > offsets.high or not bounds.takes(view.topic, view.partition):
        return []
    within = OffsetBounds(offsets, bounds.times, bounds.arrivals)
    for _ in range(ATTEMPTS):
        try:
            return list(_planned(view, within, is_committed, fails_on_loss, most_bytes))
        except FileMissing:
            continue  # retention or the cleaner took a segment while we looked
    raise DataLost(f"{view}: its segments change faster than they can be listed")


def tasks_of(chunks: Sequence[Chunk], wanted: int | None = None) -> list[Task]:
    """Chunks in order, packed to tasks: about `wanted` ones, or as suits the cores here."""
    total = sum(each.size_bytes for each in chunks)
    tasks: list[Task] = []
    most = task_bytes(total, wanted)
    pack: list[Chunk] = []
    size = 0
    for each in chunks:
        if pack and size + each.size_bytes > most:
            tasks.append(tuple(pack))
            pack, size = [], 0
        pack.append(each)
        size += each.size_bytes
    if pack:
        tasks.append(tuple(pack))
    return tasks


def task_bytes(total: int, wanted: int | None) -> int:
    """Bytes of a task, so that there are some for each core and none is tiny."""
    if wanted:
        return max(1, -(-total // wanted))
    cores = os.cpu_count() or 1
    return min(MOST_TASK_BYTES, max(LEAST_TASK_BYTES, total // (4 * cores)))


def _planned(
    view: PartitionView,
    bounds: OffsetBounds,
    is_committed: bool,
    fails_on_loss: bool,
    most_bytes: int,
) -> Iterator[FileChunk]:
    assert view.directory is not None
    listing = look_at(FILES, view.directory)
    first = listing.bases[0] if listing.logs else view.end_offset
    if first > bounds.offsets.low:
        if fails_on_loss:
            raise DataLost(
                f"{view}: offsets from {bounds.offsets.low} to before {first} are gone; "
                "failOnDataLoss=false reads what is left"
            )
        bounds = replace(bounds, offsets=bounds.offsets.within(Range(low=first)))
    aborted = _aborted(view.directory, listing, bounds.offsets) if is_committed else ()
    for facts in segments_of(view, listing):
        for chunk in _chunks(view, facts, bounds, aborted, most_bytes):
            yield chunk._replace(fails_on_loss=fails_on_loss)


def segments_of(view: PartitionView, listing: PartitionListing) -> Iterator[PlannedSegment]:
    """The segments of a partition on this machine, in order."""
    assert view.directory is not None
    bases = listing.bases
    for index, base in enumerate(bases):
        is_closed = index + 1 < len(bases)
        end = bases[index + 1] if is_closed else max(view.end_offset, base)
        entry = listing.logs[base]
        yield PlannedSegment(view.directory, base, entry.size_bytes, end, is_closed, entry.mtime_ms)


def _chunks(
    view: PartitionView,
    facts: PlannedSegment,
    bounds: OffsetBounds,
    aborted: Iterable[AbortedTxn],
    most_bytes: int,
) -> Iterator[FileChunk]:
    file = FILES.open_log(facts.path(LOG))
    try:
        inode = identity_of(file)
        zones = proved_zones(facts, file) if _asks_for_zones(facts, bounds) else None
        for found in stretches(facts, file, bounds, zones):
            for piece in cut(facts, file, found, most_bytes):
                selection = _selection(piece, bounds, aborted)
                if selection.first_offset <= selection.last_offset:
                    yield FileChunk(
                        view, facts.base_offset, piece.start, piece.end, selection, inode
                    )
    finally:
        file.close()


def _asks_for_zones(facts: PlannedSegment, bounds: OffsetBounds) -> bool:
    """True when zones may skip a part of the segment that the offset index cannot."""
    is_timed = bounds.times != ANY or bounds.arrivals != ANY
    return is_timed or bounds.offsets.high < facts.end_offset - 1


def _selection(piece: Stretch, bounds: OffsetBounds, aborted: Iterable[AbortedTxn]) -> Selection:
    first = max(piece.first_offset, bounds.offsets.low)
    last = min(piece.end_offset - 1, bounds.offsets.high)
    there = tuple(
        each for each in aborted if each.first_offset <= last and each.last_offset >= first
    )
    return Selection(first, last, bounds.times.low, bounds.times.high, there)


def _aborted(directory: str, listing: PartitionListing, offsets: Range) -> list[AbortedTxn]:
    """The transactions that touch the offsets; the segments of their markers list them."""
    found: list[AbortedTxn] = []
    for base in listing.bases:
        if not ABORTS.isdisjoint(listing.beside.get(base, ())):
            path = PlannedSegment(directory, base, 0, 0, is_closed=True).path(TXN_INDEX)
            index = _proved(TxnIndex(FILES, path, base))
            found += index.search(offsets.low, offsets.high + 1).transactions
    return found


def _proved(index: TxnIndex) -> TxnIndex:
    """The index, as far as the broker's checksum beside it tells. DamagedLog."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            index.check_beside_writer()
        except CorruptIndex as error:
            if attempt == ATTEMPTS:
                raise DamagedLog(
                    f"{error}: the index of aborted transactions is not as its checksum says. A "
                    "broker rebuilds it when it starts on this directory; meanwhile "
                    "isolationLevel=read_uncommitted reads all records"
                ) from error
            time.sleep(BETWEEN_ATTEMPTS_SECONDS)  # its checksum may be on its way
    return index
