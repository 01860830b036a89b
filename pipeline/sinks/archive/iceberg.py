"""An archive of Iceberg tables: the offsets to go on from stand in the summary of each snapshot.

They stand in a property of the table as well, for when others have written snapshots of their own
and expired ours. A table that was rolled back goes by the snapshot that it was rolled back to.

The catalog is a file beside the tables, or any that pyiceberg is configured for. The records are
partitioned by topic and by the day of their time.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.manifest import DataFile
from pyiceberg.schema import Schema
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import DayTransform, IdentityTransform
from pyiceberg.types import StringType
from sqlalchemy.exc import SQLAlchemyError

from pipeline.errors import PipelineError
from pipeline.sinks.archive.asides import NO_ROUND
from pipeline.sinks.archive.files import sync_folders
from pipeline.sinks.archive.marker import (
    CATALOG_FILE,
    ICEBERG,
    AnotherArchive,
    ArchiveMarker,
    has_rows,
)
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

NAMESPACE = "horolog"
FOLLOWING, PROOF = "horolog.next", "horolog.proof"
"""Keys of a snapshot's summary; the first one is a property of the table, too."""
ROUND = "horolog.round"
"""A property: names the list of what follows the records (`Asides`)."""
_NOISY = "pyiceberg.io.pyarrow"
"""Warns of each column without statistics, and we write those that prune."""


class NoCatalog(PipelineError):  # noqa: N818 - what happened
    """The catalog is not configured, does not answer, or is damaged."""

    EXIT_STATUS = 2


class IcebergArchive(TableArchive[Table]):
    """Three Iceberg tables in one folder."""

    def __init__(
        self,
        root: str,
        *,
        max_writers: int = 64,
        value_schema: pa.Schema | None = None,
        catalog: str | None = None,
    ) -> None:
        """Nothing is opened yet. `catalog`: one of pyiceberg's configuration, by name.

        Encodings are plain: Iceberg's own vectorised reader knew no others before 1.11.
        """
        layout = Layout(
            str(Path(root).resolve()), staged=False, keeps_topic=True, max_writers=max_writers,
            is_plain=True,
        )  # fmt: skip
        super().__init__(layout, value_schema, ArchiveMarker(ICEBERG, catalog))
        self._catalog_name = catalog
        self.catalog: Catalog
        logging.getLogger(_NOISY).setLevel(logging.ERROR)

    def __enter__(self) -> Self:
        """Take the lock, find the catalog. ArchiveBusy, AnotherArchive, NoCatalog."""
        super().__enter__()
        try:
            self.catalog = self._found_catalog()
        except BaseException:
            super().__exit__()
            raise
        return self

    def _found_catalog(self) -> Catalog:
        """The catalog that has the tables of this folder. AnotherArchive, NoCatalog."""
        name = self._catalog_name or self.root / CATALOG_FILE
        there = [kind for kind in TableKind if has_rows(self.root, kind)]
        if there and self._catalog_name is None and not (self.root / CATALOG_FILE).exists():
            raise AnotherArchive(
                f"{self.root} has tables that a catalog with a name knows: --catalog NAME"
            )
        try:
            catalog = self._open_catalog()
            catalog.create_namespace_if_not_exists(NAMESPACE)
            unknown = [each for each in there if not catalog.table_exists((NAMESPACE, each))]
        except Exception as error:  # of pyiceberg, of the network, or of a driver
            raise NoCatalog(f"the Iceberg catalog {name} cannot be used: {error}") from error
        if unknown:
            catalog.close()
            raise AnotherArchive(
                f"{self.root / unknown[0]} is a table that the Iceberg catalog {name} does not "
                "know: another catalog has it (--catalog), or it was dropped there"
            )
        return catalog

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        self.catalog.close()
        super().__exit__()

    def table(self, kind: TableKind) -> Table | None:
        """One of the tables; None while it has not been needed."""
        try:
            return _alone(self.catalog.load_table((NAMESPACE, str(kind))))
        except NoSuchTableError:
            return None

    def rewrite(self, kind: TableKind, rows: str, order: list[tuple[str, str]]) -> None:
        """Rewrite the rows of a filter as one file, in that order. TableChanged."""
        table = self.table(kind)
        assert table is not None
        summary = {FOLLOWING: json.dumps(_newest(table))}
        content = table.scan(row_filter=rows).to_arrow().sort_by(order)
        with _named_errors(self.root / kind):
            table.overwrite(content, overwrite_filter=rows, snapshot_properties=summary)

    def exchange(self, table: Table, made: WrittenFile, gone: Sequence[DataFile]) -> None:
        """A file in the place of others that hold the same rows. TableChanged."""
        path = self.root / made.path
        sync_folders([path], self.root)
        summary = {FOLLOWING: json.dumps(_newest(table))}
        with _named_errors(self.root / made.kind), table.transaction() as transaction:
            added = parquet_file_to_data_file(table.io, table.metadata, _uri(path))
            with transaction.update_snapshot(snapshot_properties=summary).overwrite() as change:
                for file in gone:
                    change.delete_data_file(file)
                change.append_data_file(added)

    def streams(self, table: Table) -> list[Stream]:
        """Those that were archived, as a table has them."""
        return [Stream.of_key(key) for key in _newest(table)]

    def _following(self, table: Table, streams: Sequence[Stream]) -> dict[str, int]:  # noqa: ARG002 - of all streams
        return _newest(table)

    def _ready(self, kind: TableKind) -> Table:
        table = self.table(kind) or self._create(kind)
        there = _types(table.schema())
        wanted = _types(_schema(kind, self._value_schema))
        if {TOPIC_ID: wanted.get(TOPIC_ID), **there} == wanted and TOPIC_ID not in there:
            return self._with_topic_id(kind, table)
        if there != wanted:
            raise SchemaDiffers(f"{self.root / kind}: the table has other columns")
        return table

    def _add(
        self,
        kind: TableKind,
        table: Table,
        files: Sequence[WrittenFile],
        commit: Commit,
        number: int,
    ) -> int:
        paths = [_uri(self.root / each.path) for each in files]
        known = _newest(table)
        known |= {key: max(until, known.get(key, 0)) for key, (_, until) in commit.ranges.items()}
        following = json.dumps(known)
        summary = {FOLLOWING: following, PROOF: json.dumps(commit.as_json())}
        with _named_errors(self.root / kind), table.transaction() as transaction:
            transaction.set_properties({FOLLOWING: following, ROUND: str(number)})
            # whether the files are there already, all older commits would be read for
            transaction.add_files(paths, summary, check_duplicate_files=False)
        snapshot = table.current_snapshot()
        return -1 if snapshot is None else snapshot.sequence_number or 0

    def _round(self, table: Table) -> int:
        return int(table.properties.get(ROUND, NO_ROUND))

    def _files(self, table: Table) -> list[Path]:
        return [path_of(task.file.file_path) for task in table.scan().plan_files()]

    def _listed(self, table: Table) -> set[str]:
        manifests = {
            each.manifest_path: each
            for snapshot in table.snapshots()
            for each in snapshot.manifests(table.io)
        }
        return {
            path_of(entry.data_file.file_path).name
            for manifest in manifests.values()
            for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=False)
        }

    def _with_topic_id(self, kind: TableKind, table: Table) -> Table:
        """A table of before that column was kept; rows that are there have null in it."""
        with _named_errors(self.root / kind), table.update_schema() as change:
            change.add_column(TOPIC_ID, StringType())
        return table

    def _create(self, kind: TableKind) -> Table:
        """Table and partitioning at once: one without the other would stay so."""
        name, schema = (NAMESPACE, str(kind)), schema_of(kind, self._value_schema)
        with _named_errors(self.root / kind):
            creation = self.catalog.create_table_transaction(
                name, schema, location=_uri(self.root / kind)
            )
            with creation, creation.update_spec() as spec:
                spec.add_field("topic", IdentityTransform(), "topic_name")
                if kind is TableKind.RECORDS:
                    spec.add_field("timestamp", DayTransform(), "event_date")
        return _alone(self.catalog.load_table(name))

    def _open_catalog(self) -> Catalog:
        if self._catalog_name is not None:
            return load_catalog(self._catalog_name)
        properties: dict[str, Any] = {
            "type": "sql",
            "uri": f"sqlite:///{self.root / CATALOG_FILE}",
            "warehouse": _uri(self.root),
        }
        return load_catalog(NAMESPACE, **properties)


@contextmanager
def _named_errors(place: Path) -> Iterator[None]:
    """Turns errors of a catalog into TableChanged and NoCatalog."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError) as error:
        raise TableChanged(f"{place}: the commit was refused: {error}") from error
    except FileNotFoundError as error:
        raise TableChanged(f"{place}: files have gone: another archiver did it: {error}") from error
    except (RESTError, SQLAlchemyError, OSError) as error:
        raise NoCatalog(
            f"{place}: the commit may have failed: {error}. Run again: it goes on from what the "
            "table has"
        ) from error


def _alone(table: Table) -> Table:
    """The table; a commit after another process's fails.

    pyiceberg would try again without a look at what that was: the same records, maybe.
    """
    once = {TableProperties.COMMIT_NUM_RETRIES: "0"}
    properties = {**table.metadata.properties, **once}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _schema(kind: TableKind, value_schema: pa.Schema | None) -> Schema:
    """As pyiceberg makes it of ours, in a table that is new."""
    return Catalog._convert_schema_if_needed(schema_of(kind, value_schema))  # noqa: SLF001


def _types(schema: Schema) -> dict[str, pa.DataType]:
    """Of the columns, whatever their order and their numbers are."""
    return {field.name: field.type for field in schema.as_arrow()}


def path_of(uri: str) -> Path:
    """Of a file, as `_uri` names it; others may write them otherwise."""
    return Path(uri.removeprefix("file:"))


def _uri(path: Path) -> str:
    """As pyiceberg takes paths: it would look for a `%3D` by that name."""
    return f"file://{path}"


def _newest(table: Table) -> dict[str, int]:
    """Offsets of our newest snapshot, or of the table's properties, when that one was expired.

    TableChanged when there are none.
    """
    text = _of_snapshots(table) or table.properties.get(FOLLOWING)
    if text is None:
        if table.current_snapshot() is None:
            return {}
        raise TableChanged(
            f"{table.location()}: nothing says up to where it was archived: the snapshots that "
            "did were expired"
        )
    known: dict[str, int] = json.loads(text)
    return known


def _of_snapshots(table: Table) -> str | None:
    snapshot = table.current_snapshot()
    while snapshot is not None:
        summary = snapshot.summary
        text = None if summary is None else summary.additional_properties.get(FOLLOWING)
        if text is not None:
            return text
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return None
