"""A topic that was deleted and made again: in the archive its records are told apart by its id."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.engine.native import NativeEngine
from pipeline.sinks.archive import rows as archive_rows
from pipeline.sinks.archive.compact import compact_delta, compact_parquet
from pipeline.sinks.archive.compact_iceberg import compact_iceberg
from pipeline.sinks.archive.rows import TOPIC_ID
from pipeline.sinks.archive.values import TableKind
from tests.support.spark.archives import FORMATS, archived, check, opened, rows_of
from tests.support.spark.made_up_records import MadeUp, rows_between

Place = tuple[str | None, int]


def places(kind: str, root: Path) -> Counter[Place]:
    """How often each offset of each topic is there."""
    return Counter((row.get(TOPIC_ID), row["offset"]) for _, row in rows_of(kind, root))


def made_up(topic_id: str | None, end: int) -> Counter[Place]:
    return Counter((topic_id, row.offset) for row in rows_between(0, end))


def compacted(kind: str, root: Path) -> None:
    with NativeEngine(processes=1) as engine, opened(kind, root) as target:
        if kind == "parquet":
            compact_parquet(target, engine)
        else:
            list((compact_delta if kind == "delta" else compact_iceberg)(target))


def without_topic_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives as they were before they had the column."""
    for name in ("RECORDS", "QUARANTINE", "DEAD"):
        schema: pa.Schema = getattr(archive_rows, name)
        monkeypatch.setattr(archive_rows, name, schema.remove(schema.get_field_index(TOPIC_ID)))


@pytest.mark.parametrize("kind", FORMATS)
def test_records_of_both_are_told_apart(kind: str, tmp_path: Path) -> None:
    first, second = "a" * 32, "b" * 32
    archived(kind, tmp_path, MadeUp({0: 500}, topic_id=first))
    archived(kind, tmp_path, MadeUp({0: 700}, topic_id=second))
    wanted = made_up(first, 500) + made_up(second, 700)
    assert places(kind, tmp_path) == wanted
    compacted(kind, tmp_path)
    assert places(kind, tmp_path) == wanted
    archived(kind, tmp_path, MadeUp({0: 900}, topic_id=second))
    assert places(kind, tmp_path) == made_up(first, 500) + made_up(second, 900)


@pytest.mark.parametrize("kind", FORMATS)
def test_an_archive_of_before_the_column_goes_on(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        without_topic_id(before)
        archived(kind, tmp_path, MadeUp({0: 500}))
    archived(kind, tmp_path, MadeUp({0: 900}))
    check(kind, tmp_path, {0: 900})
    compacted(kind, tmp_path)
    check(kind, tmp_path, {0: 900})
    archived(kind, tmp_path, MadeUp({0: 1200}))
    check(kind, tmp_path, {0: 1200})
    if kind != "parquet":
        ids = {row[TOPIC_ID] for _, row in rows_of(kind, tmp_path) if row["offset"] >= 500}
        assert ids == {"made"}


def test_files_of_before_the_column_are_not_mixed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction notes in the rows what their file's name and the commits say."""
    first, second = "a" * 32, "b" * 32
    with monkeypatch.context() as before:
        without_topic_id(before)
        archived("parquet", tmp_path, MadeUp({0: 500}, topic_id=first))
        archived("parquet", tmp_path, MadeUp({0: 300}, topic_id=second))
    compacted("parquet", tmp_path)
    assert places("parquet", tmp_path) == made_up(first, 500) + made_up(second, 300)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_is_ahead_is_so_for_one_of_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offsets of the one are not taken for the other's, also in files that others wrote anew."""
    archived(kind, tmp_path, MadeUp({0: 500}, topic_id="a" * 32))
    stream = MadeUp({0: 0}, topic_id="b" * 32).extents()[0].stream
    with opened(kind, tmp_path) as target:
        original = target._following

        def ahead(table: Any, streams: Any) -> dict[str, int]:
            known: dict[str, int] = original(table, streams)
            return known | ({} if table_is_records(table) else {stream.key: 400})

        def table_is_records(table: Any) -> bool:
            place = table.location() if kind == "iceberg" else table.table_uri
            return "records" in place.rstrip("/").rpartition("/")[2]

        monkeypatch.setattr(target, "_following", ahead)
        assert not len(target.standing([stream]).stored[stream.key])
        if kind == "delta":
            target.table(TableKind.QUARANTINE).optimize.compact()
        else:
            target.rewrite(TableKind.QUARANTINE, "topic == 't'", [("offset", "ascending")])
        assert not len(target.standing([stream]).stored[stream.key])
