"""An archive of Delta tables: the table itself is the checkpoint.

Each table has, for every stream, an application transaction whose version is the offset to go on
from; it is committed together with the files.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import DeltaError
from deltalake.schema import PrimitiveType
from deltalake.transaction import AddAction, CommitProperties, Transaction

from pipeline.sinks.archive.asides import NO_ROUND
from pipeline.sinks.archive.marker import DELTA, ArchiveMarker
from pipeline.sinks.archive.rows import TOPIC_ID, schema_of
from pipeline.sinks.archive.tables import TableArchive
from pipeline.sinks.archive.values import (
    Commit,
    Layout,
    SchemaDiffers,
    Stream,
    TableChanged,
    TableKind,
    WrittenFile,
)

APPLICATION = "horolog/"
ROUND = "horolog.round"
"""An application, too: its version names the list of what follows the records (`Asides`)."""


class DeltaArchive(TableArchive[DeltaTable]):
    """Three Delta tables in one folder."""

    def __init__(
        self,
        root: str,
        *,
        max_writers: int = 64,
        value_schema: pa.Schema | None = None,
        is_plain: bool = False,
    ) -> None:
        """Nothing is opened yet. `is_plain`: see `Layout`."""
        layout = Layout(
            root, staged=False, keeps_topic=False, max_writers=max_writers, is_plain=is_plain
        )
        super().__init__(layout, value_schema, ArchiveMarker(DELTA))

    def files(self) -> list[str]:
        """Paths of the files that count, in all tables."""
        tables = (self.table(kind) for kind in TableKind)
        return [uri for table in tables if table is not None for uri in table.file_uris()]

    def _ready(self, kind: TableKind) -> DeltaTable:
        table = self.table(kind) or self._create(kind)
        missing, extra = _differences(table.schema(), self._schema(kind))
        if missing == {TOPIC_ID} and not extra:
            self._add_topic_id(kind, table)
        elif missing or extra:
            raise SchemaDiffers(f"{self.root / kind}: the table has other columns")
        return table

    def _add(
        self,
        kind: TableKind,
        table: DeltaTable,
        files: Sequence[WrittenFile],
        commit: Commit,
        number: int,
    ) -> int:
        now_ms = time.time_ns() // 1_000_000
        following = {APPLICATION + key: until for key, (_, until) in commit.ranges.items()}
        properties = CommitProperties(
            custom_metadata={"horolog": json.dumps(commit.as_json())},
            app_transactions=[
                Transaction(ROUND, number, now_ms),
                *(
                    Transaction(name, max(until, table.transaction_version(name) or 0), now_ms)
                    for name, until in following.items()
                ),
            ],
        )
        try:
            table.create_write_transaction(
                [_add_action(each, now_ms) for each in files],
                "append",
                table.schema(),
                _folders(kind),
                commit_properties=properties,
            )
        except DeltaError as error:
            raise TableChanged(f"{self.root / kind}: the commit was refused: {error}") from error
        table.update_incremental()
        return table.version()

    def table(self, kind: TableKind) -> DeltaTable | None:
        """One of the tables; None while it has not been needed."""
        path = str(self.root / kind)
        return DeltaTable(path) if DeltaTable.is_deltatable(path) else None

    def _following(self, table: DeltaTable, streams: Sequence[Stream]) -> dict[str, int]:
        versions = {each.key: table.transaction_version(APPLICATION + each.key) for each in streams}
        return {key: version for key, version in versions.items() if version is not None}

    def _round(self, table: DeltaTable) -> int:
        return table.transaction_version(ROUND) or NO_ROUND

    def _files(self, table: DeltaTable) -> list[Path]:
        return [Path(unquote(uri)) for uri in table.file_uris()]

    def _listed(self, table: DeltaTable) -> set[str]:
        return {path.name for path in self._files(table)}

    def _add_topic_id(self, kind: TableKind, table: DeltaTable) -> None:
        """To a table of before that column was kept; rows that are there have null in it."""
        try:
            table.alter.add_columns([Field(TOPIC_ID, PrimitiveType("string"))])
        except DeltaError as error:
            raise TableChanged(f"{self.root / kind}: it was not altered: {error}") from error

    def _create(self, kind: TableKind) -> DeltaTable:
        path = str(self.root / kind)
        try:
            return DeltaTable.create(path, self._schema(kind), partition_by=_folders(kind))
        except DeltaError as error:
            raise TableChanged(f"{path}: it could not be made: {error}") from error

    def _schema(self, kind: TableKind) -> Schema:
        schema = schema_of(kind, self._value_schema)
        if kind is TableKind.RECORDS:
            schema = schema.append(pa.field("event_date", pa.date32()))
        return Schema.from_arrow(schema)


def _differences(there: Schema, wanted: Schema) -> tuple[set[str], set[str]]:
    """The columns that are missing, and those that should not be there, or not so."""
    have, want = ({field.name: field for field in schema.fields} for schema in (there, wanted))
    missing = {name for name in want if name not in have}
    return missing, {name for name, field in have.items() if want.get(name) != field}


def _folders(kind: TableKind) -> list[str]:
    return ["topic", "event_date"] if kind is TableKind.RECORDS else ["topic"]


def _add_action(file: WrittenFile, now_ms: int) -> AddAction:
    low, high = file.first_offset, file.last_offset
    stats = {
        "numRecords": file.rows,
        "minValues": {"offset": low},
        "maxValues": {"offset": high},
        "nullCount": {"offset": 0},
    }
    path = file.path.removeprefix(f"{file.kind}/")
    return AddAction(path, file.size_bytes, dict(file.partition), now_ms, True, json.dumps(stats))
