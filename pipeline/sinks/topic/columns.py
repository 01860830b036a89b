"""A frame as records to be produced: which columns count, and what they become.

`key`, `value`, `topic`, `partition` and `headers` are those of Spark's connector. `timestamp`, or
`timestampMs`, is the record's time and is kept; the connector has no such column. Other columns
that our source gives are read past, so that a frame of it can be written as it is.
"""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.schemas import ALL_COLUMNS, HEADERS
from pipeline.errors import BadOption

TAKEN = ("key", "value", "topic", "partition", "timestamp", "timestampMs", "headers")


class Outgoing(NamedTuple):
    """Columns of one length. None: the frame does not have it."""

    value: pa.Array
    key: pa.Array
    times_ms: pa.Array
    topic: pa.Array | None
    partition: pa.Array | None
    headers: pa.Array | None

    def cut(self, first: int, last: int) -> "Outgoing":
        """The records from `first` to before `last`, in the same memory."""
        count = last - first
        return Outgoing(*(None if each is None else each.slice(first, count) for each in self))


def check_columns(names: list[str], *, has_topic: bool) -> None:
    """BadOption for a frame that cannot be written."""
    if "value" not in names:
        raise BadOption("a frame to be written needs the column value")
    if not has_topic and "topic" not in names:
        raise BadOption("the option topic or the column topic must say where records go")
    strange = sorted(set(names) - set(ALL_COLUMNS.names))
    if strange:
        raise BadOption(f"{strange[0]} is no column of a record: those are {', '.join(TAKEN)}")


def outgoing(batch: pa.RecordBatch, now_ms: int) -> Outgoing:
    """The columns that count; a record without a time gets `now_ms`, as from any producer."""
    count = batch.num_rows
    return Outgoing(
        _bytes(_column(batch, "value"), count),
        _bytes(_column(batch, "key"), count),
        _times(batch, now_ms),
        _column(batch, "topic"),
        _column(batch, "partition"),
        _headers(_column(batch, "headers")),
    )


def _column(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    return batch.column(name) if name in batch.schema.names else None


def _bytes(column: pa.Array | None, count: int) -> pa.Array:
    if column is None:
        return pa.nulls(count, pa.binary())
    return column if column.type == pa.binary() else column.cast(pa.binary())


def _times(batch: pa.RecordBatch, now_ms: int) -> pa.Array:
    exact = _column(batch, "timestampMs")
    if exact is not None:
        return pc.fill_null(exact.cast(pa.int64()), now_ms)
    claimed = _column(batch, "timestamp")
    if claimed is None:
        return pa.repeat(pa.scalar(now_ms, pa.int64()), batch.num_rows)
    micros = pc.fill_null(claimed.cast(pa.timestamp("us", "UTC")).view(pa.int64()), now_ms * 1000)
    return pa.array(np.floor_divide(micros.to_numpy(zero_copy_only=False), 1000))


def _headers(column: pa.Array | None) -> pa.Array | None:
    if column is None or column.null_count == len(column):
        return None
    return column if column.type == HEADERS else column.cast(HEADERS)
