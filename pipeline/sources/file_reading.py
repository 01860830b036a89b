"""Reads chunks of segments: bytes of whole batches from the disk, columns out of the decoder.

The file may have gone since it was planned, by retention or because the cleaner put another one in
its place: then its offsets are planned once more, and records that are really gone are reported, or
passed over if the user said so. A batch that is not whole where it has to be is damage, never an
end.
"""

from collections.abc import Generator, Iterator

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import Numbers
from pipeline.decode.batch_columns import LAST_OFFSET
from pipeline.decode.columns import Arrivals, BatchOrigin
from pipeline.decode.decoder import decode_rows
from pipeline.decode.schemas import ARRIVED_FROM
from pipeline.directories.log_files import FILES, RANGE_BYTES, LogFile, identity_of, is_stored
from pipeline.directories.tier_files import files_of_segment, stored_segment
from pipeline.directories.tier_log import REQUEST_BYTES
from pipeline.errors import DataLost
from pipeline.sources.batch_tables import READ_BYTES, Batched, read_tables
from pipeline.sources.bounds import OffsetBounds, Range
from pipeline.sources.chunks import FileChunk
from pipeline.sources.file_plan import plan_partition
from pipeline.sources.log_views import topic_id_of
from pipeline.sources.segment_plan import PlannedSegment, proved_zones
from pipeline.sources.tier_parts import files_of, path_of
from storage.errors import DiskError, FileMissing
from storage.files.layout import LOG
from storage.files.partition_listing import PartitionListing, look_at
from storage.zones.rows import ARRIVAL_ESTIMATED, LIFTED

_APPEND_TIMES = frozenset({"appendTime", "appendTimeBound", ARRIVED_FROM.name})


def read_file_chunk(chunk: FileChunk, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The selected records with the columns of `schema`. DataLost, DamagedLog, DiskError."""
    rest = yield from _read(chunk, schema)
    if rest is None:
        return
    for again in _planned_again(rest):
        if (yield from _read(again, schema)) is not None:
            raise DataLost(
                f"{chunk.view}: the segment at {again.segment} was replaced twice while it was "
                "read; read again, or from the broker (mode=wire)"
            )


def batches_of(chunk: FileChunk) -> Iterator[tuple[Numbers, int]]:
    """The chunk's batches as rows of numbers, and the position that theirs count from. Raises
    DataLost.
    """
    file = _opened(chunk)
    if file is None:
        raise DataLost(f"{chunk.view}: the segment at {chunk.segment} was replaced or removed")
    try:
        for part in _tables(chunk, file):
            yield part.table.rows, part.position
    except FileMissing as error:
        raise DataLost(f"{chunk.view}: {error}") from None
    finally:
        file.close()


def _opened(chunk: FileChunk) -> LogFile | None:
    """The very file that was planned, or None. Of a store nothing is asked yet."""
    try:
        file = _segment(chunk).files.open_log(_segment(chunk).path(LOG))
    except FileMissing:
        return None
    return file if identity_of(file) == chunk.inode else None


def _segment(chunk: FileChunk, size_bytes: int = 0) -> PlannedSegment:
    files = FILES if chunk.stored is None else files_of_segment(chunk.stored)
    path = path_of(chunk.view)
    return PlannedSegment(path, chunk.segment, size_bytes, 0, is_closed=True, files=files)


def _planned_again(chunk: FileChunk) -> list[FileChunk]:
    """The chunk's offsets as stored now; DataLost for those that are gone."""
    view, wanted = chunk.view, chunk.selection
    if is_stored(str(view.directory)):  # a copy has no cleaner
        raise _changed(chunk)
    listing = _listed(chunk)
    if listing is None or not listing.logs:
        gone = f"{view}: its topic was deleted while it was read"
        begin = wanted.last_offset + 1
    else:
        begin = listing.bases[0]
        gone = f"{view}: offsets from {wanted.first_offset} to before {begin} are gone"
    if begin > wanted.first_offset and chunk.fails_on_loss:
        raise DataLost(f"{gone}; failOnDataLoss=false reads what is left")
    bounds = OffsetBounds(
        Range(max(begin, wanted.first_offset), wanted.last_offset),
        Range(wanted.low_ms, wanted.high_ms),
    )
    if begin > wanted.last_offset:
        return []
    planned = plan_partition(view, bounds)
    return [
        each._replace(selection=each.selection._replace(aborted=wanted.aborted)) for each in planned
    ]


def _listed(chunk: FileChunk) -> PartitionListing | None:
    """The partition's files now; None when its topic is gone. DataLost for a lost object."""
    view, stored = chunk.view, chunk.stored
    try:
        if view.directory is not None and topic_id_of(view.directory) != view.topic_id:
            return None
        files = files_of(view, is_fresh=True)
        if stored is not None and stored_segment(files, chunk.segment) == stored:
            raise DataLost(
                f"{view}: the store has lost {stored.records_key}, which counts: horolog tier "
                "verify tells more"
            )
        return look_at(files, path_of(view))
    except FileMissing:
        return None


def _changed(chunk: FileChunk) -> DataLost:
    return DataLost(
        f"{chunk.view}: the copied segment at {chunk.segment} was removed or rewritten while it "
        "was read"
    )


def _read(chunk: FileChunk, schema: pa.Schema) -> Generator[pa.RecordBatch, None, FileChunk | None]:
    """The records of the chunk; what is left of it when its file is another one, or gone."""
    file = _opened(chunk)
    if file is None:
        return chunk
    view, selection = chunk.view, chunk.selection
    try:
        arrivals = None if _APPEND_TIMES.isdisjoint(schema.names) else _arrivals(chunk, file)
        for part in _tables(chunk, file):
            origin = BatchOrigin(view.topic, view.partition, chunk.segment, part.position, arrivals)
            yield from decode_rows(part.data, part.table.rows, origin, schema, selection)
            next_offset = int(part.table.rows[-1, LAST_OFFSET]) + 1
            chunk = _from(chunk, next_offset)
    except DiskError as error:
        if chunk.stored is not None and isinstance(error, FileMissing):
            return chunk
        if is_stored(str(view.directory)) and _opened(chunk) is None:
            raise _changed(chunk) from None
        raise
    finally:
        file.close()
    return None


def _from(chunk: FileChunk, offset: int) -> FileChunk:
    """The rest of the chunk, from there on."""
    first = max(chunk.selection.first_offset, offset)
    return chunk._replace(selection=chunk.selection._replace(first_offset=first))


def _tables(chunk: FileChunk, file: LogFile) -> Iterator[Batched]:
    """The batches of the chunk, some at a time."""
    view = chunk.view
    origin = BatchOrigin(view.topic, view.partition, chunk.segment)
    size = RANGE_BYTES if is_stored(str(view.directory)) else READ_BYTES
    if chunk.stored is not None:
        size = REQUEST_BYTES
    last = chunk.selection.last_offset
    return read_tables(file, origin, chunk.start, chunk.end, last, read_bytes=size)


def _arrivals(chunk: FileChunk, file: LogFile) -> Arrivals | None:
    zones = proved_zones(_segment(chunk, file.size()), file)
    if zones is None:
        return None
    flags = np.array(zones.flags, np.int64)
    return Arrivals(
        np.array(zones.positions, np.int64),
        np.array(zones.first_arrivals, np.int64),
        np.array(zones.last_arrivals, np.int64),
        flags & ARRIVAL_ESTIMATED != 0,
        flags & LIFTED != 0,
    )
