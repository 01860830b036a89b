"""Reads chunks of segments: bytes of whole batches from the disk, columns out of the decoder.

The file may have gone since it was planned, by retention or because the cleaner put another one in
its place: then its offsets are planned once more, and records that are really gone are reported, or
passed over if the user said so. A batch that is not whole where it has to be is damage, never an
end.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import Numbers
from pipeline.decode.columns import Arrivals, BatchOrigin
from pipeline.decode.decoder import decode_rows
from pipeline.decode.schemas import ARRIVED_FROM
from pipeline.directories.log_files import FILES, RANGE_BYTES, LogFile, identity_of, is_stored
from pipeline.errors import DataLost
from pipeline.sources.batch_tables import READ_BYTES, Batched, read_tables
from pipeline.sources.bounds import OffsetBounds, Range
from pipeline.sources.chunks import FileChunk
from pipeline.sources.file_plan import plan_partition
from pipeline.sources.log_views import topic_id_of
from pipeline.sources.segment_plan import PlannedSegment, proved_zones
from storage.errors import DiskError, FileMissing
from storage.files.layout import LOG
from storage.files.partition_listing import look_at
from storage.zones.rows import ARRIVAL_ESTIMATED, LIFTED

_APPEND_TIMES = frozenset({"appendTime", "appendTimeBound", ARRIVED_FROM.name})


def read_file_chunk(chunk: FileChunk, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The selected records with the columns of `schema`. DataLost, DamagedLog, DiskError."""
    file = _opened(chunk)
    if file is not None:
        yield from _read(chunk, file, schema)
        return
    for again in _planned_again(chunk):
        file = _opened(again)
        if file is None:
            raise DataLost(
                f"{chunk.view}: the segment at {again.segment} was replaced twice while it was "
                "read; read again, or from the broker (mode=wire)"
            )
        yield from _read(again, file, schema)


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
    finally:
        file.close()


def _opened(chunk: FileChunk) -> LogFile | None:
    """The very file that was planned, or None."""
    path = PlannedSegment(str(chunk.view.directory), chunk.segment, 0, 0, is_closed=True).path(LOG)
    try:
        file = FILES.open_log(path)
    except FileMissing:
        return None
    return file if identity_of(file) == chunk.inode else None


def _planned_again(chunk: FileChunk) -> list[FileChunk]:
    """The chunk's offsets as stored now; DataLost for those that are gone."""
    view, wanted = chunk.view, chunk.selection
    directory = str(view.directory)
    if is_stored(directory):  # a copy has no cleaner
        raise _changed(chunk)
    try:
        listing = look_at(FILES, directory)
        is_same = topic_id_of(directory) == view.topic_id
    except FileMissing:
        listing, is_same = None, False
    if listing is None or not listing.logs or not is_same:
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


def _changed(chunk: FileChunk) -> DataLost:
    return DataLost(
        f"{chunk.view}: the copied segment at {chunk.segment} was removed or rewritten while it "
        "was read"
    )


def _read(chunk: FileChunk, file: LogFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    view, selection = chunk.view, chunk.selection
    try:
        arrivals = None if _APPEND_TIMES.isdisjoint(schema.names) else _arrivals(chunk, file)
        for part in _tables(chunk, file):
            origin = BatchOrigin(view.topic, view.partition, chunk.segment, part.position, arrivals)
            yield from decode_rows(part.data, part.table.rows, origin, schema, selection)
    except DiskError:
        if is_stored(str(view.directory)) and _opened(chunk) is None:
            raise _changed(chunk) from None
        raise
    finally:
        file.close()


def _tables(chunk: FileChunk, file: LogFile) -> Iterator[Batched]:
    """The batches of the chunk, some at a time."""
    view = chunk.view
    origin = BatchOrigin(view.topic, view.partition, chunk.segment)
    size = RANGE_BYTES if is_stored(str(view.directory)) else READ_BYTES
    last = chunk.selection.last_offset
    return read_tables(file, origin, chunk.start, chunk.end, last, read_bytes=size)


def _arrivals(chunk: FileChunk, file: LogFile) -> Arrivals | None:
    size = file.size()
    facts = PlannedSegment(str(chunk.view.directory), chunk.segment, size, 0, is_closed=True)
    zones = proved_zones(facts, file)
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
