"""Records of a batch, sorted into the tables of an archive and the days they fall on. Pure.

Whose time cannot be believed goes to the quarantine, whatever its value; of the others, whose value
does not fit the wanted schema to the dead letters. A day is a day of UTC.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.decode.arrays import derived, mask_of, numbers_of, repeated
from pipeline.decode.schemas import ALL_COLUMNS, HEADERS, TIMESTAMP
from pipeline.sinks.archive.values import TableKind
from pipeline.transforms.event_time import (
    Mask,
    TimeLimits,
    Times,
    days_of,
    is_good,
    reasons_of,
)
from pipeline.transforms.json_values import parse

READ = pa.schema([
    ALL_COLUMNS.field(name)
    for name in (
        "key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers",
        "timestampMs", "appendTime", "producerId",
    )
])  # fmt: skip
"""Columns that are read from a source."""

TOPIC_ID = "topicId"
"""The column that tells topics apart that had the same name one after the other; null: unknown."""
_PLACE = [
    pa.field("topic", pa.string()),
    pa.field(TOPIC_ID, pa.string()),
    pa.field("partition", pa.int32()),
    pa.field("offset", pa.int64()),
]
_CONTENT = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("headers", HEADERS),
    pa.field("producerId", pa.int64()),
]
_ARRIVAL = [pa.field("appendTime", TIMESTAMP), pa.field("ingest_date", pa.date32())]
_TIME = [pa.field("timestamp", TIMESTAMP), pa.field("timestampType", pa.int32())]
_CLAIM = [pa.field("timestampMs", pa.int64()), pa.field("reason", pa.string())]

RECORDS = pa.schema([*_PLACE, *_TIME, *_ARRIVAL, *_CONTENT])
QUARANTINE = pa.schema([*_PLACE, *_CLAIM, *_ARRIVAL, *_CONTENT])
DEAD = pa.schema([*_PLACE, *_TIME, *_ARRIVAL, *_CONTENT, pa.field("error", pa.string())])
_FEW_EDGES = 200
DATA = "data"
"""The column of the parsed value, where a schema was given."""


class Share(NamedTuple):
    """Rows for one table and, of records, one day; with their times and offsets as numbers."""

    kind: TableKind
    day: int | None
    rows: pa.RecordBatch
    times: Times
    offsets: Times


def schema_of(kind: TableKind, value_schema: pa.Schema | None = None) -> pa.Schema:
    """The columns of a table, topic included."""
    if kind is TableKind.QUARANTINE:
        return QUARANTINE
    if kind is TableKind.DEAD:
        return DEAD
    if value_schema is None:
        return RECORDS
    return RECORDS.append(pa.field(DATA, pa.struct(list(value_schema))))


def shares(
    batch: pa.RecordBatch,
    limits: TimeLimits,
    value_schema: pa.Schema | None = None,
    topic_id: str = "",
) -> Iterator[Share]:
    """Every record of the batch in one share. `batch` has the columns of `READ`."""
    if not batch.num_rows:
        return
    ids = repeated(topic_id or None, pa.string(), batch.num_rows)
    batch = _with_ingest_date(batch).append_column(TOPIC_ID, ids)
    times = numbers_of(batch.column("timestampMs"))
    good = is_good(times, limits)
    if good is not None:
        bad = ~good
        why = pa.array(reasons_of(times[bad], limits), pa.string())
        aside = _kept(batch, bad).append_column("reason", why)
        yield _share(TableKind.QUARANTINE, aside.select(QUARANTINE.names))
        batch = _kept(batch, good)
    if value_schema is None:
        yield from _by_day(batch.select(_read_names(RECORDS)))
        return
    parsed = parse(batch.column("value"), value_schema)
    if not parsed.is_clean:
        is_dead = np.array([error is not None for error in parsed.errors], np.bool_)
        errors = pa.array([error for error in parsed.errors if error], pa.string())
        dead = _kept(batch, is_dead).append_column("error", errors)
        yield _share(TableKind.DEAD, dead.select([*DEAD.names, "timestampMs"]))
        batch = _kept(batch.append_column(DATA, parsed.data), ~is_dead)
    else:
        batch = batch.append_column(DATA, parsed.data)
    yield from _by_day(batch.select([*_read_names(RECORDS), DATA]))


def _read_names(schema: pa.Schema) -> list[str]:
    """The schema's columns, and the exact time, which the table itself does not keep."""
    return [*schema.names, "timestampMs"]


def _by_day(batch: pa.RecordBatch) -> Iterator[Share]:
    if not batch.num_rows:
        return
    days = days_of(numbers_of(batch.column("timestampMs")))
    first, last = int(days.min()), int(days.max())
    if first == last:
        yield _share(TableKind.RECORDS, batch, first)
        return
    for day in sorted(set(days.tolist())):
        yield _share(TableKind.RECORDS, _kept(batch, days == day), day)


def _share(kind: TableKind, rows: pa.RecordBatch, day: int | None = None) -> Share:
    times, offsets = numbers_of(rows.column("timestampMs")), numbers_of(rows.column("offset"))
    if kind is not TableKind.QUARANTINE:
        rows = rows.drop_columns(["timestampMs"])
    return Share(kind, day, rows, times, offsets)


def _with_ingest_date(batch: pa.RecordBatch) -> pa.RecordBatch:
    days = derived(batch.column("appendTime"), _days_of_micros, pa.date32())
    return batch.append_column("ingest_date", days)


def _days_of_micros(times: Times) -> Any:
    return days_of(times // 1000).astype(np.int32)


def _kept(batch: pa.RecordBatch, mask: Mask) -> pa.RecordBatch:
    """The rows that are marked. Stretches of them are joined while they are few.

    A filter has Arrow load all of its functions first, which takes as long as 100,000 records.
    """
    edges = np.flatnonzero(mask[1:] != mask[:-1]) + 1
    if len(edges) > _FEW_EDGES:
        return batch.filter(mask_of(mask))
    bounds = pairwise([0, *edges.tolist(), len(mask)])
    rows = [batch.slice(begin, end - begin) for begin, end in bounds if mask[begin]]
    if len(rows) < 2:
        return rows[0] if rows else batch.slice(0, 0)
    return pa.Table.from_batches(rows).combine_chunks().to_batches()[0]
