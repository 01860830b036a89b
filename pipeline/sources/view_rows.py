"""Rows of batches, segments, index entries and partitions.

Cheap questions about time need no record: a batch's header has its largest time, a zone map both
times from both sides. Files only, but for `partitions`.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import Numbers
from pipeline.decode.batch_columns import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIME,
    COUNT,
    LAST_OFFSET,
    LEADER_EPOCH,
    MAX_TIME,
    POSITION,
    PRODUCER,
    PRODUCER_EPOCH,
    SEQUENCE,
    SIZE,
)
from pipeline.decode.schemas import BATCHES, OFFSET_INDEX, PARTITIONS, SEGMENTS, TIME_INDEX
from pipeline.errors import BadOption
from pipeline.sources.chunks import FileChunk
from pipeline.sources.file_plan import segments_of
from pipeline.sources.file_reading import batches_of
from pipeline.sources.partition_view import PartitionView
from pipeline.sources.segment_plan import PlannedSegment, proved_zones
from pipeline.sources.tier_parts import files_of, path_of
from protocol.records.batch import CODEC_MASK, CONTROL, LOG_APPEND_TIME, TRANSACTIONAL
from protocol.records.compression import Codec
from storage.errors import CorruptIndex
from storage.files.layout import LOG
from storage.files.layout import OFFSET_INDEX as OFFSET_FILE
from storage.files.layout import TIME_INDEX as TIME_FILE
from storage.files.partition_listing import look_at
from storage.index.offset_index import OffsetIndex
from storage.index.time_index import TimeIndex
from storage.zones.rows import ARRIVAL_ESTIMATED, UNREAD

_INDEX_BYTES = 1 << 31


def batch_rows(chunk: FileChunk) -> Iterator[pa.RecordBatch]:
    """The batches that hold any of the chunk's offsets, whatever is in them. DamagedLog."""
    wanted = chunk.selection
    for rows, position in batches_of(chunk):
        keep = (rows[:, LAST_OFFSET] >= wanted.first_offset) & (
            rows[:, BASE_OFFSET] <= wanted.last_offset
        )
        yield _batches(chunk, rows[keep], position)


def partition_rows(name: str, view: PartitionView) -> pa.RecordBatch:
    """The rows of one partition in the view `name`; BadOption where it needs files."""
    if name == "partitions":
        made = (view.topic, view.partition, view.topic_id, view.start_offset, view.end_offset)
        return _rows(PARTITIONS, [(*made, view.size_bytes, view.directory)])
    if view.directory is None and view.tier is None:
        raise BadOption(f"view={name} reads files, and {view} is not on this machine")
    files = files_of(view)
    found = segments_of(view, look_at(files, path_of(view)), files)
    schema, rows_of = _OF_SEGMENTS[name]
    return _rows(
        schema, [(view.topic, view.partition, *row) for facts in found for row in rows_of(facts)]
    )


def _rows(schema: pa.Schema, rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    return pa.RecordBatch.from_arrays(
        [pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _segment_rows(facts: PlannedSegment) -> Iterator[tuple[object, ...]]:
    file = facts.files.open_log(facts.path(LOG))
    try:
        zones = proved_zones(facts, file)
    finally:
        file.close()
    seen: tuple[object, ...] = (None,) * 5
    if zones is not None and not zones.all_flags & UNREAD:  # else a part of it is not known
        low, high = min(zones.floors), max(zones.reaches)
        is_estimated = bool(zones.all_flags & ARRIVAL_ESTIMATED)
        seen = (low, high, zones.first_arrivals[0], zones.last_arrivals[-1], is_estimated)
    begin = (facts.base_offset, facts.end_offset, facts.size_bytes, not facts.is_closed)
    yield (*begin, *seen, facts.modified_ms)


def _time_rows(facts: PlannedSegment) -> Iterator[tuple[object, ...]]:
    index = TimeIndex(facts.files, facts.path(TIME_FILE), facts.base_offset, _INDEX_BYTES)
    with suppress(CorruptIndex):  # also one that Kafka has made longer than its entries
        for number in range(index.entries):
            yield (facts.base_offset, *index.entry(number))


def _offset_rows(facts: PlannedSegment) -> Iterator[tuple[object, ...]]:
    index = OffsetIndex(facts.files, facts.path(OFFSET_FILE), facts.base_offset, _INDEX_BYTES)
    with suppress(CorruptIndex):
        for number in range(index.entries):
            yield (facts.base_offset, *index.entry(number))


def _batches(chunk: FileChunk, rows: Numbers, position: int) -> pa.RecordBatch:
    attributes = rows[:, ATTRIBUTES]
    columns = {
        "topic": np.full(len(rows), chunk.view.topic, object),
        "partition": np.full(len(rows), chunk.view.partition),
        "segment": np.full(len(rows), chunk.segment),
        "position": rows[:, POSITION] + position,
        "sizeBytes": rows[:, SIZE],
        "baseOffset": rows[:, BASE_OFFSET],
        "lastOffset": rows[:, LAST_OFFSET],
        "recordCount": rows[:, COUNT],
        "codec": np.array([_codec(each) for each in attributes & CODEC_MASK], object),
        "baseTimeMs": rows[:, BASE_TIME],
        "maxTimeMs": rows[:, MAX_TIME],
        "timestampType": (attributes & LOG_APPEND_TIME != 0).astype(np.int32),
        "isTransactional": attributes & TRANSACTIONAL != 0,
        "isControl": attributes & CONTROL != 0,
        "producerId": rows[:, PRODUCER],
        "producerEpoch": rows[:, PRODUCER_EPOCH],
        "baseSequence": rows[:, SEQUENCE],
        "leaderEpoch": rows[:, LEADER_EPOCH],
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name]).cast(field.type) for field in BATCHES], schema=BATCHES
    )


def _codec(bits: int) -> str:
    return Codec(bits).name.lower() if bits < len(Codec) else "unknown"


_OF_SEGMENTS: dict[
    str, tuple[pa.Schema, Callable[[PlannedSegment], Iterator[tuple[object, ...]]]]
] = {
    "segments": (SEGMENTS, _segment_rows),
    "time_index": (TIME_INDEX, _time_rows),
    "offset_index": (OFFSET_INDEX, _offset_rows),
}
