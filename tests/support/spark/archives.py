"""Archives of each format as tests use them: made, read back, compared with what was made up."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable

from pipeline.engine.native import NativeEngine
from pipeline.sinks.archive.delta import DeltaArchive
from pipeline.sinks.archive.iceberg import IcebergArchive
from pipeline.sinks.archive.parquet import ParquetArchive
from pipeline.sinks.archive.run import Wishes, run_once
from pipeline.sinks.archive.values import Commit, TableKind
from pipeline.transforms.json_values import read_schema
from tests.support.spark.made_up_records import MadeUp, Row, rows_between

FORMATS = ("parquet", "delta", "iceberg")
VALUES = read_schema('{"n": "long", "text": "string"}')
WISHES = Wishes(round_bytes=100_000, value_schema=VALUES)


def opened(kind: str, root: Path, **options: Any) -> Any:
    """An archive of that format in `root`."""
    options = {"value_schema": VALUES, **options}
    return {"parquet": ParquetArchive, "delta": DeltaArchive, "iceberg": IcebergArchive}[kind](
        str(root), **options
    )


def archived(kind: str, root: Path, source: MadeUp, wishes: Wishes = WISHES) -> list[Commit]:
    """One run in this process, and its commits."""
    with opened(kind, root) as target:
        return run(target, source, wishes)


def run(target: Any, source: MadeUp, wishes: Wishes = WISHES) -> list[Commit]:
    """The same, into an archive that is open."""
    with NativeEngine(processes=1) as engine:
        return list(run_once(source, target, engine, wishes))


def table_of(kind: str, root: Path, table: TableKind) -> pa.Table:
    """All rows of a table that readers see; None of one that was never needed."""
    place = root / table
    if kind == "iceberg":
        with IcebergArchive(str(root)) as archive:
            found = archive.table(table)
            return pa.table({}) if found is None else found.scan().to_arrow()
    if kind == "delta":
        if not DeltaTable.is_deltatable(str(place)):
            return pa.table({})
        delta = DeltaTable(str(place))
        return pa.table(delta.to_pyarrow_table())
    return ds.dataset(place, partitioning="hive").to_table() if place.exists() else pa.table({})


def rows_of(kind: str, root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row of every table."""
    for table in TableKind:
        for row in table_of(kind, root, table).to_pylist():
            yield str(table), row


def check(kind: str, root: Path, ends: dict[int, int], start: int = 0) -> None:
    """The archive has every record once, where it belongs, as it was."""
    expected = {
        (partition, row.offset): row
        for partition, end in ends.items()
        for row in rows_between(start, end)
    }
    seen: Counter[tuple[int, int]] = Counter()
    for table, row in rows_of(kind, root):
        place = row["partition"], row["offset"]
        seen[place] += 1
        _compare(table, row, expected[place])
    assert seen == Counter(expected.keys())


def _compare(table: str, row: dict[str, Any], wanted: Row) -> None:
    assert table == wanted.table, (row, wanted)
    assert row["topic"] == "t"
    assert (row["key"], row["value"]) == (wanted.key, wanted.value)
    headers = [{"key": "h", "value": b"%d" % wanted.offset}] if wanted.offset % 5 == 0 else None
    assert (row["headers"] or None) == headers, "pyiceberg reads a null list as an empty one"
    if table == "quarantine":
        assert row["timestampMs"] == wanted.time_ms
        assert row["reason"]
    else:
        assert row["timestamp"].timestamp() * 1000 == wanted.time_ms
    if table == "records" and "data" in row:
        assert (row["data"] or {}).get("n") == (wanted.offset if wanted.value else None)
