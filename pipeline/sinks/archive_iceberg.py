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
from itertools import count
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
from pyiceberg.table import Table, TableProperties
from pyiceberg.transforms import DayTransform, IdentityTransform
from sqlalchemy.exc import SQLAlchemyError

from pipeline.errors import PipelineError
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
from pipeline.transforms.archive_rows import DATA, schema_of

NAMESPACE = "horolog"
FOLLOWING, PROOF = "horolog.next", "horolog.proof"
"""Keys of a snapshot's summary; the first one is a property of the table, too."""
CATALOG_FILE = "catalog.sqlite"
_ATTEMPTS = 4
"""To commit: others may be at work in the table, as long as they archive nothing."""
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
        super().__init__(layout, value_schema)
        self._catalog_name = catalog
        self.catalog: Catalog
        logging.getLogger(_NOISY).setLevel(logging.ERROR)

    def __enter__(self) -> Self:
        """Take the lock, find the catalog. ArchiveBusy, NoCatalog."""
        super().__enter__()
        try:
            self.catalog = self._open_catalog()
            self.catalog.create_namespace_if_not_exists(NAMESPACE)
        except Exception as error:  # of pyiceberg, of the network, or of somebody's driver
            super().__exit__()
            name = self._catalog_name or self.root / CATALOG_FILE
            raise NoCatalog(f"the Iceberg catalog {name} cannot be used: {error}") from error
        return self

    def __exit__(self, *_: object) -> None:
        """Let others have it."""
        self.catalog.close()
        super().__exit__()

    def table(self, kind: Kind) -> Table | None:
        """One of the tables; None while it has not been needed."""
        try:
            return _alone(self.catalog.load_table((NAMESPACE, str(kind))))
        except NoSuchTableError:
            return None

    def rewrite(self, kind: Kind, rows: str, order: list[tuple[str, str]]) -> None:
        """Write the rows of a filter anew, as one file, in that order. TableChanged."""
        table = self.table(kind)
        assert table is not None
        summary = {FOLLOWING: json.dumps(_newest(table))}
        content = table.scan(row_filter=rows).to_arrow().sort_by(order)
        with _named_errors(self.root / kind):
            table.overwrite(content, overwrite_filter=rows, snapshot_properties=summary)

    def _following(self, table: Table, streams: Sequence[Stream]) -> dict[str, int]:  # noqa: ARG002 - of all streams
        return _newest(table)

    def _append(self, kind: Kind, files: Sequence[WrittenFile], commit: Commit) -> int:
        paths = [self.root / each.path for each in files]
        sync_folders(paths)
        following = {key: until for key, (_, until) in commit.ranges.items()}
        known = {**self._known[kind], **following}
        summary = {FOLLOWING: json.dumps(known), PROOF: json.dumps(commit.as_json())}
        with _named_errors(self.root / kind):
            table = self._added(kind, [_uri(path) for path in paths], summary)
        self._known[kind] = known
        snapshot = table.current_snapshot()
        return -1 if snapshot is None else snapshot.sequence_number or 0

    def _added(self, kind: Kind, paths: list[str], summary: dict[str, str]) -> Table:
        """The table with these files, behind what others have done but no archiver."""
        for attempt in count(1):
            table = self._agreed(kind)
            try:
                with table.transaction() as transaction:
                    transaction.set_properties({FOLLOWING: summary[FOLLOWING]})
                    # whether the files are there already, all older commits would be read for
                    transaction.add_files(paths, summary, check_duplicate_files=False)
            except CommitFailedException:
                if attempt == _ATTEMPTS:
                    raise
            else:
                break
        return table

    def _agreed(self, kind: Kind) -> Table:
        """The table as we know it. SchemaDiffers, TableChanged."""
        table = self.table(kind) or self._create(kind)
        if _names(table.schema().as_arrow()) != _names(schema_of(kind, self._value_schema)):
            raise SchemaDiffers(f"{self.root / kind}: the table has other columns")
        if _newest(table) != self._known[kind]:
            raise TableChanged(f"{self.root / kind}: another archiver has committed meanwhile")
        return table

    def _create(self, kind: Kind) -> Table:
        """Table and partitioning at once: one without the other would stay so."""
        name, schema = (NAMESPACE, str(kind)), schema_of(kind, self._value_schema)
        creation = self.catalog.create_table_transaction(
            name, schema, location=_uri(self.root / kind)
        )
        with creation, creation.update_spec() as spec:
            spec.add_field("topic", IdentityTransform(), "topic_name")
            if kind is Kind.RECORDS:
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
    """What a catalog refuses, or does not do. TableChanged, NoCatalog."""
    try:
        yield
    except (CommitFailedException, TableAlreadyExistsError) as error:
        raise TableChanged(f"{place}: the commit was refused: {error}") from error
    except (RESTError, SQLAlchemyError, OSError) as error:
        raise NoCatalog(
            f"{place}: the commit may have failed: {error}. Run again: it goes on from what the "
            "table has"
        ) from error


def _alone(table: Table) -> Table:
    """The table, whose commits fail once somebody else's came before them.

    pyiceberg would try again without a look at what that was: the same records, maybe.
    """
    once = {TableProperties.COMMIT_NUM_RETRIES: "0"}
    properties = {**table.metadata.properties, **once}
    table.metadata = table.metadata.model_copy(update={"properties": properties})
    return table


def _names(schema: pa.Schema) -> list[str]:
    """Of the columns, and of the fields of parsed values."""
    data = schema.field(DATA).type if DATA in schema.names else ()
    return [*schema.names, *(field.name for field in data)]


def _uri(path: Path) -> str:
    """As pyiceberg takes paths: it would look for a `%3D` by that name."""
    return f"file://{path}"


def _newest(table: Table) -> dict[str, int]:
    """What the newest snapshot of ours says, or the table, when that one was expired.

    TableChanged when neither does.
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
