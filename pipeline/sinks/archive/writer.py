"""The worker's side of an archive: reads a unit, writes its Parquet files, says what is in them.

A file keeps the name of a draft, which no other attempt has, until the driver commits it: so a
unit that is run twice may end at any time, and touches nothing that counts. The final name is made
of what is in it: stream, first and last offset. Memory is bounded: so many files are open at once,
so much waits to be written.
"""

import errno
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.decode.arrays import mask_of, numbers_of
from pipeline.errors import PipelineError
from pipeline.sinks.archive.rows import READ, TOPIC_ID, Share, schema_of, shares
from pipeline.sinks.archive.values import (
    CountsDoNotClose,
    Done,
    Layout,
    Stored,
    TableKind,
    Unit,
    WrittenFile,
)

STAGING = "_staging"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
UNFINISHED = ".unfinished"
ROW_GROUP_ROWS = 128 * 1024
WAITING_BYTES = 128 * 1024 * 1024
"""Of all open files of a worker together; above it the largest is written."""
_DELTA_ENCODINGS = {
    **dict.fromkeys(("offset", "timestamp", "timestampMs", "appendTime"), "DELTA_BINARY_PACKED"),
    **dict.fromkeys(("key", "value"), "DELTA_LENGTH_BYTE_ARRAY"),
}
"""An eighth of the bytes goes with them, and a tenth of the time of writing at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Read = Callable[[object, pa.Schema], Iterable[pa.RecordBatch]]


class DiskFull(PipelineError):  # noqa: N818 - what happened
    """The target takes no more. Nothing was committed: make room and run again."""


class OpenFile:
    """One Parquet file on its way."""

    def __init__(self, layout: Layout, kind: TableKind, path: str, schema: pa.Schema) -> None:
        """Makes the folder and the file, under the name of a draft."""
        self.kind = kind
        self.path = path
        self.waiting_bytes = 0
        place = Path(layout.root, STAGING, path) if layout.staged else Path(layout.root, path)
        self._place = place
        self.draft = place.with_name(f".{place.name}{UNFINISHED}-{uuid4().hex}")
        place.parent.mkdir(parents=True, exist_ok=True)
        self._schema = schema
        self._writer = pq.ParquetWriter(
            self.draft,
            schema,
            compression=layout.compression,
            compression_level=1 if layout.compression == "zstd" else None,
            use_dictionary=[TOPIC_ID, "timestampType", "ingest_date", "producerId", "reason"],
            write_statistics=[
                name
                for name in ("topic", "partition", "offset", "timestamp", "timestampMs")
                if name in schema.names
            ],
            column_encoding={
                name: encoding
                for name, encoding in _DELTA_ENCODINGS.items()
                if name in schema.names and not layout.is_plain
            }
            or None,
            coerce_timestamps="us",
        )
        self._rows: list[pa.RecordBatch] = []
        self._count = 0
        self._low_ms, self._high_ms = np.iinfo(np.int64).max, np.iinfo(np.int64).min
        self._first, self._last = -1, -1

    def add(self, share: Share) -> None:
        """Take rows, in the order of their offsets."""
        self._rows.append(share.rows.select(self._schema.names))
        self._count += len(share.offsets)
        self.waiting_bytes += share.rows.nbytes
        self._low_ms = min(self._low_ms, int(share.times.min()))
        self._high_ms = max(self._high_ms, int(share.times.max()))
        if self._first < 0:
            self._first = int(share.offsets[0])
        self._last = int(share.offsets[-1])
        if self._count >= ROW_GROUP_ROWS:
            self.write()

    def write(self) -> None:
        """Writes the waiting rows as a row group."""
        if self._rows:
            table = pa.Table.from_batches(self._rows, self._schema)
            self._writer.write_table(table, row_group_size=len(table))
        self._rows, self._count, self.waiting_bytes = [], 0, 0

    def fill(self, table: pa.Table, row_group_rows: int) -> None:
        """Write a whole table, whose times and offsets the caller knows."""
        self._writer.write_table(table, row_group_size=row_group_rows)

    def close(self, partition: dict[str, str]) -> WrittenFile:
        """Finish the file and force it to the disk; it stays a draft."""
        self.write()
        self._writer.close()
        with self.draft.open("rb+") as file:
            os.fsync(file.fileno())
        metadata = pq.read_metadata(self.draft)
        return WrittenFile(
            self.kind, self.path, metadata.num_rows, self.draft.stat().st_size, self._first,
            self._last, self._low_ms, self._high_ms, partition,
        )  # fmt: skip

    def take_name(self) -> None:
        """Give a closed file its name: for who alone writes it."""
        self.draft.rename(self._place)

    def abandon(self) -> None:
        """Leave nothing behind, whatever the disk says to the file's end."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()
        self.draft.unlink(missing_ok=True)


class ArchiveWriter:
    """The open files of one unit, by table and day."""

    def __init__(self, unit: Unit) -> None:
        """Nothing is open."""
        self._unit = unit
        self._open: dict[tuple[TableKind, int | None], OpenFile] = {}
        self._parts: dict[tuple[TableKind, int | None], int] = {}
        self._value_schema = (
            None
            if unit.value_schema is None
            else pa.ipc.read_schema(pa.py_buffer(unit.value_schema))
        )
        self.files: list[WrittenFile] = []
        self.drafts: list[str] = []
        self.skipped = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take records in the order of their offsets."""
        unit = self._unit
        new = _without(batch, unit.stored)
        self.skipped += batch.num_rows - new.num_rows
        for share in shares(new, unit.limits, self._value_schema, unit.stream.topic_id):
            self._add(share)

    def close(self) -> None:
        """Every file is whole."""
        for key in list(self._open):
            self._close(key)

    def abandon(self) -> None:
        """Something went wrong: what is unfinished goes."""
        for file in self._open.values():
            file.abandon()

    def _add(self, share: Share) -> None:
        key = share.kind, share.day
        file = self._open.pop(key, None) or self._begin(key)
        self._open[key] = file  # the one used last is the last
        file.add(share)
        while sum(each.waiting_bytes for each in self._open.values()) > WAITING_BYTES:
            max(self._open.values(), key=lambda each: each.waiting_bytes).write()

    def _begin(self, key: tuple[TableKind, int | None]) -> OpenFile:
        layout = self._unit.layout
        if len(self._open) >= layout.max_writers:
            self._close(next(iter(self._open)))
        part = self._parts[key] = self._parts.get(key, -1) + 1
        kind, _ = key
        schema = schema_of(kind, self._value_schema)
        if not layout.keeps_topic:
            schema = schema.remove(schema.get_field_index("topic"))
        return OpenFile(layout, kind, f"{self._folder(key)}/{self._name(part)}", schema)

    def _close(self, key: tuple[TableKind, int | None]) -> None:
        file = self._open[key]
        self.files.append(file.close(self._partition(key)))
        self.drafts.append(file.draft.name)
        del self._open[key]

    def _folder(self, key: tuple[TableKind, int | None]) -> str:
        folders = (f"{name}={value}" for name, value in self._partition(key).items())
        return "/".join((key[0], *folders))

    def _partition(self, key: tuple[TableKind, int | None]) -> dict[str, str]:
        partition = {"topic": self._unit.stream.topic}
        if key[1] is not None:
            partition["event_date"] = f"{_EPOCH + timedelta(days=key[1]):%Y-%m-%d}"
        return partition

    def _name(self, part: int) -> str:
        unit = self._unit
        tag = unit.layout.tag
        _, made, partition = unit.stream.name
        suffix = (f".{part}" if part else "") + (f"-{tag}" if tag else "")
        return f"{partition}-{made}-{unit.first:020d}-{unit.until:020d}{suffix}.parquet"


def write_unit(unit: Unit, read: Read) -> Done:
    """Archive the records of a unit. CountsDoNotClose, DiskFull, and what the source raises."""
    writer = ArchiveWriter(unit)
    count, at = 0, unit.first
    try:
        for batch in read(unit.work, READ):
            at = _in_order(unit, batch, at)
            count += batch.num_rows
            writer.add(batch)
        writer.close()
    except BaseException as error:
        writer.abandon()
        if isinstance(error, OSError) and error.errno in _FULL:
            raise DiskFull(
                f"{unit.layout.root}: {error.strerror}: nothing was committed"
            ) from error
        raise
    return Done(
        unit.stream.key, unit.first, unit.until, count, writer.skipped, tuple(writer.files),
        tuple(writer.drafts),
    )  # fmt: skip


def _in_order(unit: Unit, batch: pa.RecordBatch, at: int) -> int:
    """The offset after the batch's last; offsets must rise, and be in the unit."""
    if not batch.num_rows:
        return at
    offsets = numbers_of(batch.column("offset"))
    if offsets[0] < at or offsets[-1] >= unit.until or (np.diff(offsets) < 1).any():
        raise CountsDoNotClose(
            f"{unit.stream.key}: offsets do not rise from {at} to before {unit.until}"
        )
    return int(offsets[-1]) + 1


def _without(batch: pa.RecordBatch, stored: Stored) -> pa.RecordBatch:
    """The rows whose offsets are not among these."""
    if not len(stored) or not batch.num_rows:
        return batch
    is_new = ~np.isin(numbers_of(batch.column("offset")), stored)
    return batch if is_new.all() else batch.filter(mask_of(is_new))
