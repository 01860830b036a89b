"""Offsets of a stream that a table has ahead of the records.

This happens after a run of an older version died between two tables, which then committed the
records last, and after a user rolled the records back. Rows in a table stay there; they are not
judged again, so that no option and no clock moves a record.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.decode.arrays import numbers_of
from pipeline.sinks.archive.rows import TOPIC_ID
from pipeline.sinks.archive.sweep import named
from pipeline.sinks.archive.values import Stored, Stream

NOTHING: Stored = np.empty(0, np.int64)


def stored_offsets(files: Iterable[Path], stream: Stream, first: int) -> Stored:
    """Offsets of the stream from `first` on that these files have, in order."""
    found = [_offsets(path, stream) for path in files if _may_have(path, stream, first)]
    offsets: Stored = np.unique(np.concatenate([NOTHING, *found]))
    return offsets[np.searchsorted(offsets, first) :]


def _may_have(path: Path, stream: Stream, first: int) -> bool:
    name = named(path)
    return name is None or (name.is_of(stream) and name.until > first)


def _offsets(path: Path, stream: Stream) -> Stored:
    """The file's offsets; in files that others have rewritten, the rows name their stream."""
    with pq.ParquetFile(path) as file:
        there = set(file.schema_arrow.names)
        names = [name for name in ("topic", TOPIC_ID, "partition", "offset") if name in there]
        rows = file.read(columns=names)
    if named(path) is None:
        if "topic" not in there and f"topic={stream.topic}" not in path.parts:
            return NOTHING
        rows = rows.filter(_is_of(stream, there))
    return numbers_of(rows.column("offset").combine_chunks().cast(pa.int64()))


def _is_of(stream: Stream, columns: set[str]) -> pc.Expression:
    mine = pc.field("partition") == stream.partition
    if "topic" in columns:
        mine &= pc.field("topic") == stream.topic
    if TOPIC_ID in columns:
        mine &= (pc.field(TOPIC_ID) == stream.topic_id) | pc.field(TOPIC_ID).is_null()
    return mine
