"""Cuts what is asked of partitions on disk into chunks, and chunks into tasks of like size."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pipeline.decode.decoder import Selection
from pipeline.directories.log_files import Files, identity_of
from pipeline.directories.tier_files import TierFiles, stored_segment
from pipeline.errors import DamagedLog, DataLost
from pipeline.sources.bounds import ANY, OffsetBounds, Range
from pipeline.sources.chunks import Chunk, FileChunk, Task
from pipeline.sources.log_ends import log_end_offset
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.segment_plan import PlannedSegment, Stretch, cut, proved_zones, stretches
from pipeline.sources.tier_parts import files_of, path_of
from storage.errors import CorruptIndex, FileMissing
from storage.files.layout import ABORTS, LOG, REMOTE_FILE, TXN_INDEX
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
    for attempt in range(ATTEMPTS):
        try:
            files = files_of(view, is_fresh=attempt > 0)
            return list(_planned(view, files, within, is_committed, fails_on_loss, most_bytes))
        except FileMissing as error:
            missing = error  # retention or the cleaner took a segment while we looked
    raise DataLost(
        f"{view}: its segments change faster than they can be listed, or are lost: {missing}"
    )


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


def _planned(  # noqa: PLR0917 - private, called by position
    view: PartitionView,
    files: Files,
    bounds: OffsetBounds,
    is_committed: bool,
    fails_on_loss: bool,
    most_bytes: int,
) -> Iterator[FileChunk]:
    listing = look_at(files, path_of(view))
    first = listing.bases[0] if listing.logs else view.end_offset
    if fails_on_loss:
        _refuse_lost(view, files, listing, bounds.offsets)
    if first > bounds.offsets.low:
        bounds = replace(bounds, offsets=bounds.offsets.within(Range(low=first)))
    segments = list(segments_of(view, listing, files))
    aborted = _aborted(segments, listing, bounds.offsets) if is_committed else ()
    for facts in segments:
        for chunk in _chunks(view, facts, bounds, aborted, most_bytes):
            yield chunk._replace(fails_on_loss=fails_on_loss)


def _refuse_lost(
    view: PartitionView, files: Files, listing: PartitionListing, offsets: Range
) -> None:
    """DataLost for offsets that are asked for and are not there.

    Files may end before what the leader says: as those of a broker that is about to lose them.
    """
    first = listing.bases[0] if listing.logs else view.end_offset
    if first > offsets.low:
        if view.tier is None and REMOTE_FILE in listing.others:
            raise DataLost(
                f"{view}: offsets from {offsets.low} to before {first} are only in the tier's "
                "object store: name it (horolog.tier.url, --tier), or failOnDataLoss=false reads "
                "what is on this machine"
            )
        raise DataLost(
            f"{view}: offsets from {offsets.low} to before {first} are gone; failOnDataLoss=false "
            "reads what is left"
        )
    if view.leader and view.directory is not None:
        end = log_end_offset(view.directory, listing, files)
        if end <= offsets.high:
            raise DataLost(
                f"{view}: the files in {view.directory} end before {end}, and {view.leader} has "
                f"offsets up to {offsets.high}; read again, or from the broker (mode=wire)"
            )
    for gap in files.gaps if isinstance(files, TierFiles) else ():
        if gap.first <= offsets.high and gap.end > offsets.low:
            raise DataLost(
                f"{view}: offsets from {gap.first} to before {gap.end} are neither in the store "
                "nor in the directory; failOnDataLoss=false reads the others"
            )


def segments_of(
    view: PartitionView, listing: PartitionListing, files: Files
) -> Iterator[PlannedSegment]:
    """The segments of a partition that can be read as files, in order."""
    path, bases = path_of(view), listing.bases
    for index, base in enumerate(bases):
        is_last = index + 1 == len(bases)
        stored = stored_segment(files, base)
        end = max(view.end_offset, base) if is_last else bases[index + 1]
        if is_last and stored is not None:
            end = stored.row.end_offset
        is_closed = not is_last or stored is not None
        size, modified_ms = listing.logs[base].size_bytes, listing.logs[base].mtime_ms
        yield PlannedSegment(path, base, size, end, is_closed, modified_ms, files)


def _chunks(
    view: PartitionView,
    facts: PlannedSegment,
    bounds: OffsetBounds,
    aborted: Iterable[AbortedTxn],
    most_bytes: int,
) -> Iterator[FileChunk]:
    stored = stored_segment(facts.files, facts.base_offset)
    if stored is not None and 0 <= stored.row.max_timestamp < bounds.times.low:
        return  # what has no time does not match, either
    file = facts.files.open_log(facts.path(LOG))
    try:
        inode = identity_of(file)
        zones = proved_zones(facts, file) if _asks_for_zones(facts, bounds) else None
        for found in stretches(facts, file, bounds, zones):
            for piece in cut(facts, file, found, most_bytes):
                selection = _selection(piece, bounds, aborted)
                if selection.first_offset <= selection.last_offset:
                    at = facts.base_offset, piece.start, piece.end
                    yield FileChunk(view, *at, selection, inode, stored=stored)
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


def _aborted(
    segments: Sequence[PlannedSegment], listing: PartitionListing, offsets: Range
) -> list[AbortedTxn]:
    """The transactions that touch the offsets; the segments of their markers list them."""
    found: list[AbortedTxn] = []
    for facts in segments:
        has_aborts = not ABORTS.isdisjoint(listing.beside.get(facts.base_offset, ()))
        if has_aborts and facts.end_offset > offsets.low:
            index = _proved(TxnIndex(facts.files, facts.path(TXN_INDEX), facts.base_offset))
            search = index.search(offsets.low, offsets.high + 1)
            found += search.transactions
            if search.is_complete:
                break
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
