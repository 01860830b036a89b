"""An archive of Delta tables: the table itself is the checkpoint.

Each table has, for every stream, an application transaction whose version is the offset to go on
from; it is committed together with the files.
"""

import json
import time
from collections.abc import Sequence

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction, CommitProperties, Transaction

from pipeline.sinks.archive_parquet import sync_folders
from pipeline.sinks.archive_tables import TableArchive
from pipeline.sinks.archive_values import (
    Commit,
    Kind,
    Layout,
    SchemaDiffers,
    Stream,
    TableChanged,
    WrittenFile,
)
from pipeline.transforms.archive_rows import schema_of

APPLICATION = "horolog/"


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
        super().__init__(layout, value_schema)

    def files(self) -> list[str]:
        """Paths of the files that count, in all tables."""
        tables = (self.table(kind) for kind in Kind)
        return [uri for table in tables if table is not None for uri in table.file_uris()]

    def _append(self, kind: Kind, files: Sequence[WrittenFile], commit: Commit) -> int:
        sync_folders(self.root / each.path for each in files)
        table = self.table(kind) or self._create(kind)
        if table.schema() != self._schema(kind):
            raise SchemaDiffers(f"{self.root / kind}: the table has other columns")
        known = self._known[kind]
        if self._following(table, list(map(Stream.of_key, commit.ranges))) != {
            key: known[key] for key in commit.ranges if key in known
        }:
            raise TableChanged(f"{self.root / kind}: another archiver has committed meanwhile")
        now_ms = time.time_ns() // 1_000_000
        properties = CommitProperties(
            custom_metadata={"horolog": json.dumps(commit.as_json())},
            app_transactions=[
                Transaction(APPLICATION + key, until, now_ms)
                for key, (_, until) in commit.ranges.items()
            ],
        )
        try:
            table.create_write_transaction(
                [_add_action(each, now_ms) for each in files],
                "append",
                self._schema(kind),
                _folders(kind),
                commit_properties=properties,
            )
        except DeltaError as error:
            raise TableChanged(f"{self.root / kind}: the commit was refused: {error}") from error
        self._known[kind] = known | {key: until for key, (_, until) in commit.ranges.items()}
        table.update_incremental()
        return table.version()

    def table(self, kind: Kind) -> DeltaTable | None:
        """One of the tables; None while it has not been needed."""
        path = str(self.root / kind)
        return DeltaTable(path) if DeltaTable.is_deltatable(path) else None

    def _following(self, table: DeltaTable, streams: Sequence[Stream]) -> dict[str, int]:
        versions = {each.key: table.transaction_version(APPLICATION + each.key) for each in streams}
        return {key: version for key, version in versions.items() if version is not None}

    def _create(self, kind: Kind) -> DeltaTable:
        path = str(self.root / kind)
        try:
            return DeltaTable.create(path, self._schema(kind), partition_by=_folders(kind))
        except DeltaError as error:
            raise TableChanged(f"{path}: it could not be made: {error}") from error

    def _schema(self, kind: Kind) -> Schema:
        schema = schema_of(kind, self._value_schema)
        if kind is Kind.RECORDS:
            schema = schema.append(pa.field("event_date", pa.date32()))
        return Schema.from_arrow(schema)


def _folders(kind: Kind) -> list[str]:
    return ["topic", "event_date"] if kind is Kind.RECORDS else ["topic"]


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
