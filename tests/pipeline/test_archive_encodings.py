"""How the columns of an archive lie in its files, and that Spark's own reader takes them so."""

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from pipeline.sinks.archive.values import TableKind
from tests.support.spark.archives import FORMATS, archived, opened, run, table_of
from tests.support.spark.made_up_records import MadeUp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDS = {0: 1300, 1: 700}
PACKED, LENGTHS = "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY"


def encodings(root: Path) -> dict[str, set[str]]:
    """By column: what begins with DELTA in any file."""
    found = defaultdict(set)
    for path in root.rglob("*.parquet"):
        file = pq.read_metadata(path)
        for group in range(file.num_row_groups):
            for number in range(file.num_columns):
                column = file.row_group(group).column(number)
                found[column.path_in_schema] |= {
                    name for name in column.encodings if name.startswith("DELTA")
                }
    return {name: kinds for name, kinds in found.items() if kinds}


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_numbers_and_bytes_are_in_delta_encodings(kind: str, tmp_path: Path) -> None:
    archived(kind, tmp_path, MadeUp(ENDS))
    found = encodings(tmp_path)
    for name in ("offset", "timestamp", "timestampMs", "appendTime"):
        assert found.pop(name) == {PACKED}
    for name in ("key", "value"):
        assert found.pop(name) == {LENGTHS}
    assert not found


@pytest.mark.parametrize("kind", FORMATS)
def test_who_asks_for_plain_ones_gets_them_and_iceberg_always(kind: str, tmp_path: Path) -> None:
    options = {} if kind == "iceberg" else {"is_plain": True}
    with opened(kind, tmp_path, **options) as target:
        run(target, MadeUp(ENDS))
    assert not encodings(tmp_path)


def test_spark_reads_what_arrow_reads(spark: "SparkSession", tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp(ENDS))
    assert spark.conf.get("spark.sql.parquet.enableVectorizedReader") == "true"
    names = ["partition", "offset", "key", "value"]
    rows = spark.read.parquet(str(tmp_path / TableKind.RECORDS)).select(*names).collect()
    ours = table_of("parquet", tmp_path, TableKind.RECORDS).select(names).to_pylist()
    assert len(rows) == len(ours) > 0

    def place(row: dict[str, object]) -> tuple[object, object]:
        return row["partition"], row["offset"]

    theirs = [
        {name: bytes(v) if isinstance(v, bytearray) else v for name, v in row.asDict().items()}
        for row in rows
    ]
    assert sorted(theirs, key=place) == sorted(ours, key=place)
