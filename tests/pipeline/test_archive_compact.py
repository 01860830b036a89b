"""Small files of an archive put together: the same rows, in order, and archiving goes on."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.engine.native import NativeEngine
from pipeline.sinks.archive import compact_iceberg as archive_compact_iceberg
from pipeline.sinks.archive.compact import (
    Compacted,
    compact_delta,
    compact_parquet,
    merges,
)
from pipeline.sinks.archive.compact_iceberg import compact_iceberg
from pipeline.sinks.archive.iceberg import IcebergArchive
from pipeline.sinks.archive.parquet import ParquetArchive
from pipeline.sinks.archive.values import TableKind, WrittenFile
from tests.support.spark.archives import FORMATS, archived, check, opened
from tests.support.spark.made_up_records import MadeUp

ENDS = {0: 1300, 1: 700}


def compacted(kind: str, root: Path) -> list[Compacted]:
    with NativeEngine(processes=1) as engine, opened(kind, root) as archive:
        if kind == "parquet":
            return compact_parquet(archive, engine)
        return list((compact_delta if kind == "delta" else compact_iceberg)(archive))


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_stay_and_files_become_few(kind: str, tmp_path: Path) -> None:
    archived(kind, tmp_path, MadeUp(ENDS))
    done = {each.table: each for each in compacted(kind, tmp_path)}
    records = done["records"]
    assert records.files_after < records.files_before
    check(kind, tmp_path, ENDS)
    archived(kind, tmp_path, MadeUp({0: 1900, 1: 700}))
    check(kind, tmp_path, {0: 1900, 1: 700})
    compacted(kind, tmp_path)
    check(kind, tmp_path, {0: 1900, 1: 700})
    again = {each.table: each for each in compacted(kind, tmp_path)}
    assert again["records"].files_before == again["records"].files_after


def test_files_are_sorted_by_partition_and_offset(tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp(ENDS))
    compacted("parquet", tmp_path)
    merged = list((tmp_path / "records").rglob("merged-*.parquet"))
    assert merged
    for path in merged:
        table = pq.read_table(path, partitioning=None)
        places = list(
            zip(*(table.column(n).to_pylist() for n in ("partition", "offset")), strict=True)
        )
        assert places == sorted(places)


def test_a_run_that_dies_in_the_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archived("parquet", tmp_path, MadeUp(ENDS))

    def dying(*_: Any) -> None:
        raise KeyboardInterrupt

    with ParquetArchive(str(tmp_path)) as archive, NativeEngine(processes=1) as engine:
        monkeypatch.setattr(ParquetArchive, "_settle", dying)
        with pytest.raises(KeyboardInterrupt):
            compact_parquet(archive, engine)
    monkeypatch.undo()
    assert not list((tmp_path / "records").rglob("merged-*")), "it counts, and nothing has moved"
    with ParquetArchive(str(tmp_path)):
        pass
    assert list((tmp_path / "records").rglob("merged-*"))
    check("parquet", tmp_path, ENDS)


def test_what_is_large_stays_and_nothing_is_merged_alone() -> None:
    def file(name: str, size: int) -> WrittenFile:
        return WrittenFile(TableKind.RECORDS, name, 1, size, 0, 0, 0, 0, {})

    found = merges(
        [file("a/0-x", 90), file("a/0-y", 10), file("b/0-x", 10), file("a/1-x", 10)], 100, 7
    )
    assert [[each.path for each in merge.files] for merge in found] == [["a/0-y", "a/1-x"]]
    many = merges([file(f"a/0-{n:02d}", 30) for n in range(10)], 100, 7)
    assert [len(merge.files) for merge in many] == [3, 3, 3]


@pytest.mark.parametrize("bound", [1 << 30, 0], ids=["fits", "does not"])
def test_files_that_others_have_written_go_through_memory_where_they_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    archived("iceberg", tmp_path, MadeUp(ENDS))
    with opened("iceberg", tmp_path) as archive:
        table = archive.table(TableKind.RECORDS)
        table.overwrite(table.scan().to_arrow())
    archived("iceberg", tmp_path, MadeUp({0: 1900, 1: 700}))
    monkeypatch.setattr(archive_compact_iceberg, "IN_MEMORY_BYTES", bound)

    original, calls = IcebergArchive.rewrite, []

    def counted(*given: Any) -> None:
        calls.append(given)
        original(*given)

    monkeypatch.setattr(IcebergArchive, "rewrite", counted)
    compacted("iceberg", tmp_path)

    assert bool(calls) == bool(bound)
    check("iceberg", tmp_path, {0: 1900, 1: 700})
    archived("iceberg", tmp_path, MadeUp({0: 2100, 1: 700}))
    check("iceberg", tmp_path, {0: 2100, 1: 700})
