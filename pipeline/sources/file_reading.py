"""Reads chunks of segments: bytes of whole batches from the disk, columns out of the decoder.

The file may have gone since it was planned, by retention or because the cleaner put another one in
its place: then its offsets are planned once more, and what is really gone is told, or passed over
if the user said so. A batch that is not whole where it has to be is damage, never an end.
"""

import os
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from pipeline import lockstep
from pipeline.columns import Arrivals, Origin
from pipeline.compiled import Numbers
from pipeline.decoder import DEFAULT_ENGINE, Table, decode_rows, tabulate
from pipeline.errors import DamagedLog, DataLost
from pipeline.rows import LAST_OFFSET
from pipeline.sources.bounds import Bounds, Range
from pipeline.sources.chunks import FileChunk
from pipeline.sources.file_plan import plan_partition
from pipeline.sources.log_views import topic_id_of
from pipeline.sources.segment_plan import SegmentFacts, proved_zones
from storage.errors import FileMissing
from storage.layout import LOG
from storage.partition_listing import look_at
from storage.posix import PosixFile, PosixFileSystem
from storage.zone_rows import ARRIVAL_ESTIMATED

READ_BYTES = (16 if DEFAULT_ENGINE is lockstep else 4) * 1024 * 1024
MOST_BATCH_BYTES = 512 * 1024 * 1024
_APPEND_TIMES = frozenset({"appendTime", "appendTimeBound"})

_FS = PosixFileSystem()


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
    """The chunk's batches as rows of numbers, and the position that theirs count from."""
    file = _opened(chunk)
    if file is None:
        raise DataLost(f"{chunk.view}: the segment at {chunk.segment} was replaced or removed")
    try:
        for _, table, position in _tables(chunk, file):
            yield table.rows, position
    finally:
        file.close()


def _opened(chunk: FileChunk) -> PosixFile | None:
    """The very file that was planned, or None."""
    path = SegmentFacts(str(chunk.view.directory), chunk.segment, 0, 0, is_closed=True).path(LOG)
    try:
        file = _FS.open(path, write=False)
    except FileMissing:
        return None
    number = file.fileno()
    return file if number is not None and os.fstat(number).st_ino == chunk.inode else None


def _planned_again(chunk: FileChunk) -> list[FileChunk]:
    """The chunk's offsets as they lie now; DataLost for those that are gone."""
    view, wanted = chunk.view, chunk.selection
    directory = str(view.directory)
    try:
        listing = look_at(_FS, directory)
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
    bounds = Bounds(
        Range(max(begin, wanted.first_offset), wanted.last_offset),
        Range(wanted.low_ms, wanted.high_ms),
    )
    if begin > wanted.last_offset:
        return []
    planned = plan_partition(view, bounds)
    return [
        each._replace(selection=each.selection._replace(aborted=wanted.aborted)) for each in planned
    ]


def _read(chunk: FileChunk, file: PosixFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    view, selection = chunk.view, chunk.selection
    try:
        arrivals = None if _APPEND_TIMES.isdisjoint(schema.names) else _arrivals(chunk, file)
        for data, table, position in _tables(chunk, file):
            origin = Origin(view.topic, view.partition, chunk.segment, position, arrivals)
            yield from decode_rows(data, table.rows, origin, schema, selection)
    finally:
        file.close()


def _tables(chunk: FileChunk, file: PosixFile) -> Iterator[tuple[memoryview, Table, int]]:
    """The batches of the chunk, some at a time; the bytes hold until the next ones."""
    view, wanted = chunk.view, chunk.selection
    position, size, end = chunk.start, READ_BYTES, chunk.end
    buffer = bytearray()
    while position < end:
        size = min(size, end - position)
        if size > len(buffer):
            buffer = bytearray(size)
        data = memoryview(buffer)[:size]
        data = data[: file.read_into(position, data)]
        table = tabulate(data, Origin(view.topic, view.partition, chunk.segment, position))
        if len(table.rows):
            yield data, table, position
            if table.rows[-1, LAST_OFFSET] >= wanted.last_offset:
                return
        if _is_behind(data, table, wanted.last_offset):
            return
        if table.fault is not None:
            raise table.fault
        position += table.end
        size = READ_BYTES
        if not table.end:  # the next batch is larger than what was read, or not all there
            size = table.needed
            end = max(end, file.size())
            if not 0 < size <= min(end - position, MOST_BATCH_BYTES):
                raise _cut_off(chunk, position)


def _is_behind(data: memoryview, table: Table, last_offset: int) -> bool:
    """Whether the next batch begins after all that is wanted; its first bytes may say so."""
    begin = data[table.end : table.end + 8]
    return len(begin) == 8 and int.from_bytes(begin, "big") > last_offset


def _cut_off(chunk: FileChunk, position: int) -> DamagedLog:
    return DamagedLog(
        f"{chunk.view}, segment {chunk.segment}, at byte {position}: the batch is cut off, below "
        f"offset {chunk.selection.last_offset + 1}, up to which may be read; horolog verify tells "
        "more"
    )


def _arrivals(chunk: FileChunk, file: PosixFile) -> Arrivals | None:
    size = file.size()
    facts = SegmentFacts(str(chunk.view.directory), chunk.segment, size, 0, is_closed=True)
    zones = proved_zones(facts, file)
    if zones is None:
        return None
    return Arrivals(
        np.array(zones.positions, np.int64),
        np.array(zones.last_arrivals, np.int64),
        np.array(zones.flags, np.int64) & ARRIVAL_ESTIMATED != 0,
    )
