"""Parquet files of one folder become one, in the order of their rows, a stretch at a time.

Only what places the rows is read of all files at once; the rest goes through in pieces, so neither
memory nor the 32-bit offsets of Arrow's columns bound how much the values unpack to.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.decode.arrays import Numbers, repeated
from pipeline.sinks.archive.rows import TOPIC_ID
from pipeline.sinks.archive.values import CountsDoNotClose
from pipeline.sinks.archive.writer import ROW_GROUP_ROWS, WAITING_BYTES

_PIECES = 8
"""Of a row group, about, where its rows are large."""
_AT_ONCE = 4096
"""Rows of a piece, at most."""


class MergedPart(NamedTuple):
    """One of the files."""

    path: Path
    topic_id: str | None = None
    """Of rows that do not say it themselves."""


def merged_schema(parts: Sequence[MergedPart]) -> pa.Schema:
    """The columns of all files together, with the topic's id."""
    found = pa.unify_schemas([pq.read_schema(each.path).remove_metadata() for each in parts])
    if TOPIC_ID in found.names:
        return found
    return found.insert(found.get_field_index("partition"), pa.field(TOPIC_ID, pa.string()))


def merged_groups(
    parts: Sequence[MergedPart], schema: pa.Schema, group_bytes: int = WAITING_BYTES
) -> Iterator[pa.Table]:
    """All rows by partition, topic id and offset, as row groups. CountsDoNotClose."""
    waiting: list[pa.RecordBatch] = []
    rows = size_bytes = 0
    for piece in _pieces(parts, schema, group_bytes // _PIECES):
        waiting.append(piece)
        rows, size_bytes = rows + piece.num_rows, size_bytes + piece.nbytes
        if rows >= ROW_GROUP_ROWS or size_bytes >= group_bytes:
            yield pa.Table.from_batches(waiting, schema)
            waiting, rows, size_bytes = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting, schema)


def _pieces(
    parts: Sequence[MergedPart], schema: pa.Schema, piece_bytes: int
) -> Iterator[pa.RecordBatch]:
    with ExitStack() as stack:
        open_files = [
            _Rows(each, _batches(stack.enter_context(_opened(each)), piece_bytes), schema)
            for each in parts
        ]
        for number, first, count in _runs(parts):
            yield from open_files[number].take(first, count)


def _runs(parts: Sequence[MergedPart]) -> Iterator[tuple[int, int, int]]:
    """Runs of consecutive rows: file, first row, number."""
    places = [_places(each) for each in parts]
    ids = sorted({topic_id for each in places for topic_id in each.ids})
    numbers = np.concatenate([np.full(len(each.rows), n) for n, each in enumerate(places)])
    offsets, partitions, made = (
        np.concatenate(columns)
        for columns in zip(*(each.keys(ids) for each in places), strict=True)
    )
    rows = np.concatenate([each.rows for each in places])
    order = np.lexsort((offsets, made, partitions))
    numbers, rows = numbers[order], rows[order]
    begins = np.flatnonzero((np.diff(numbers) != 0) | (np.diff(rows) != 1)) + 1
    for first, until in pairwise([0, *begins.tolist(), len(rows)]):
        if until > first:
            yield int(numbers[first]), int(rows[first]), until - first


class _Places(NamedTuple):
    """Places of a file's rows."""

    rows: Numbers
    table: pa.Table
    topic_id: str

    @property
    def ids(self) -> set[str]:
        """Of topics; empty where none is known."""
        found = {self.topic_id}
        for chunk in self._chunks():
            found.update(chunk.dictionary.to_pylist())
        return found

    def keys(self, ids: list[str]) -> tuple[Numbers, Numbers, Numbers]:
        """Offset, partition, and the topic's place among `ids`, of each row."""
        made = [np.full(len(self.rows), ids.index(self.topic_id))] if not self._chunks() else []
        for chunk in self._chunks():
            known = [ids.index(each) for each in chunk.dictionary.to_pylist()]
            at = np.array([*known, ids.index(self.topic_id)])
            made.append(at[np.asarray(chunk.indices.fill_null(len(known)))])
        offsets, partitions = (
            np.asarray(self.table.column(name)) for name in ("offset", "partition")
        )
        return offsets, partitions, np.concatenate(made)

    def _chunks(self) -> list[pa.DictionaryArray]:
        return self.table.column(TOPIC_ID).chunks if TOPIC_ID in self.table.column_names else []


def _places(part: MergedPart) -> _Places:
    there = pq.read_schema(part.path).names
    names = [name for name in ("partition", TOPIC_ID, "offset") if name in there]
    with pq.ParquetFile(part.path, read_dictionary=[n for n in names if n == TOPIC_ID]) as file:
        table = file.read(columns=names)
    return _Places(np.arange(len(table)), table, part.topic_id or "")


def _opened(part: MergedPart) -> pq.ParquetFile:
    return pq.ParquetFile(part.path, pre_buffer=False)


def _batches(file: pq.ParquetFile, piece_bytes: int) -> Iterator[pa.RecordBatch]:
    """The rows of a file, of about so many bytes at a time."""
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        row_bytes = group.total_byte_size // max(1, group.num_rows) + 1
        at_once = min(_AT_ONCE, max(1, piece_bytes // row_bytes))
        yield from file.iter_batches(at_once, row_groups=[number], use_threads=False)


class _Rows:
    """A file that is read from its begin to its end, once."""

    def __init__(
        self, part: MergedPart, batches: Iterator[pa.RecordBatch], schema: pa.Schema
    ) -> None:
        self._part = part
        self._schema = schema
        self._batches = batches
        self._left: pa.RecordBatch | None = None
        self._at = 0

    def take(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        """The next rows. CountsDoNotClose when these are not the next ones."""
        if first != self._at:
            raise CountsDoNotClose(f"{self._part.path}: the rows are not in order")
        self._at += count
        while count:
            batch = self._left if self._left is not None else next(self._batches)
            now = batch.slice(0, count)
            self._left = batch.slice(count) if batch.num_rows > count else None
            count -= now.num_rows
            yield self._completed(now)

    def _completed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [self._column(batch, field) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, batch: pa.RecordBatch, field: pa.Field) -> pa.Array:
        is_there = field.name in batch.schema.names
        if field.name != TOPIC_ID:
            return batch.column(field.name) if is_there else pa.nulls(len(batch), field.type)
        known = repeated(self._part.topic_id, field.type, len(batch))
        return batch.column(TOPIC_ID).fill_null(known) if is_there else known
