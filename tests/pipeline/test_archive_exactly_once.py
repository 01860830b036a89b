"""Archives of each format: every record once, where it belongs; sums close; nothing is doubled."""

import errno
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import DataLost
from pipeline.sinks.archive import run as archive_run
from pipeline.sinks.archive.files import ArchiveBusy, take_names
from pipeline.sinks.archive.run import Wishes
from pipeline.sinks.archive.values import (
    CountsDoNotClose,
    Done,
    SchemaDiffers,
    TableChanged,
    TableKind,
    TableStanding,
    Unit,
    joined,
)
from pipeline.sinks.archive.writer import STAGING, UNFINISHED, DiskFull, OpenFile, Read, write_unit
from pipeline.transforms.json_values import read_schema
from tests.support.spark.archives import (
    FORMATS,
    WISHES,
    archived,
    check,
    opened,
    rows_of,
    run,
    table_of,
)
from tests.support.spark.made_up_records import MadeUp, read_made_up, rows_between

ENDS = {0: 1300, 1: 700}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_record_is_once_in_its_table(kind: str, tmp_path: Path) -> None:
    commits = archived(kind, tmp_path, MadeUp(ENDS))
    check(kind, tmp_path, ENDS)
    assert len(commits) == 2, "rounds are bounded"
    records = sum(len(rows_between(0, end)) for end in ENDS.values())
    assert sum(each.read for each in commits) == records
    assert sum(each.holes for each in commits) == sum(ENDS.values()) - records
    for each in commits:
        assert sum(each.rows.values()) == each.read
    assert not archived(kind, tmp_path, MadeUp(ENDS)), "a second run finds nothing new"
    archived(kind, tmp_path, MadeUp({0: 1850, 1: 700, 2: 10}))
    check(kind, tmp_path, {0: 1850, 1: 700, 2: 10})


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("table", list(TableKind))
def test_a_run_that_dies_between_two_tables(
    kind: str, table: TableKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some tables have the round and others do not: the next run evens that out."""
    archived(kind, tmp_path, MadeUp({0: 600}))
    died = _dies_at(kind, table, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        archived(kind, tmp_path, MadeUp({0: 1200}))
    assert died
    monkeypatch.undo()
    archived(kind, tmp_path, MadeUp({0: 1400}))
    check(kind, tmp_path, {0: 1400})


def _dies_at(kind: str, table: TableKind, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The commit of that table (of Parquet: the moving of its files) never happens."""
    died: list[int] = []
    archive = type(opened(kind, Path()))
    name = "_settle" if kind == "parquet" else "_append"
    original = getattr(archive, name)

    def dying(self: Any, first: Any, *rest: Any) -> Any:
        if kind == "parquet" and first["number"] > 1:
            first = {**first, "added": [e for e in first["added"] if e["kind"] != table]}
            original(self, first)
        elif kind == "parquet" or first is not table or self.table(table) is None:
            return original(self, first, *rest)
        died.append(1)
        raise KeyboardInterrupt

    monkeypatch.setattr(archive, name, dying)
    return died


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("has_names", [False, True])
def test_what_a_dead_run_has_written_goes(kind: str, has_names: bool, tmp_path: Path) -> None:
    archived(kind, tmp_path, MadeUp({0: 500}))
    with opened(kind, tmp_path) as target:
        place = tmp_path / STAGING if target.layout.staged else tmp_path

        def dying(commit: Any) -> None:
            if has_names:
                take_names(place, commit)
            raise KeyboardInterrupt

        target.commit = dying
        with pytest.raises(KeyboardInterrupt):
            run(target, MadeUp({0: 1000}))
    check(kind, tmp_path, {0: 500})
    before = set(tmp_path.rglob("*.parquet*"))
    archived(kind, tmp_path, MadeUp({0: 500}))
    assert set(tmp_path.rglob("*.parquet*")) < before
    archived(kind, tmp_path, MadeUp({0: 1000}))
    check(kind, tmp_path, {0: 1000})


@pytest.mark.parametrize("kind", FORMATS)
def test_an_attempt_that_ends_behind_the_commit_touches_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a task that Spark ran twice; the log was compacted before the slower one read it."""
    units: list[Unit] = []

    def noting(unit: Unit, read: Read) -> Done:
        units.append(unit)
        return write_unit(unit, read)

    monkeypatch.setattr(archive_run, "write_unit", noting)
    archived(kind, tmp_path, MadeUp(ENDS))
    for unit in units:
        assert write_unit(unit, _thinned).read < unit.until - unit.first
    check(kind, tmp_path, ENDS)
    archived(kind, tmp_path, MadeUp(ENDS))
    check(kind, tmp_path, ENDS)
    assert not [path for path in tmp_path.rglob("*") if UNFINISHED in path.name]


def _thinned(work: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    yield from islice(read_made_up(work, schema), 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_two_archivers_do_not_meet(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path), pytest.raises(ArchiveBusy), opened(kind, tmp_path):
        pass


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_table_that_somebody_else_changed(kind: str, tmp_path: Path) -> None:
    archived(kind, tmp_path, MadeUp({0: 500}))
    with opened(kind, tmp_path) as target:
        target.standing([MadeUp({0: 0}).extents()[0].stream])
        target._known = {each: {"t/made/0": 100} for each in TableKind}
        target.standing = lambda _: TableStanding({"t/made/0": 100})
        with pytest.raises(TableChanged):
            run(target, MadeUp({0: 900}))
    check(kind, tmp_path, {0: 500})


def test_somebody_else_wrote_the_next_manifest(tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp({0: 500}))
    with opened("parquet", tmp_path) as target:
        (tmp_path / "_commits" / f"{2:020d}.json").write_text("{}")
        with pytest.raises(TableChanged):
            run(target, MadeUp({0: 900}))
    with pytest.raises(DataLost, match="cannot be read"):
        archived("parquet", tmp_path, MadeUp({0: 500}))


@pytest.mark.parametrize("kind", FORMATS)
def test_values_of_another_schema_are_refused(kind: str, tmp_path: Path) -> None:
    archived(kind, tmp_path, MadeUp({0: 500}))
    other = read_schema('{"n": "long", "words": "string"}')
    wishes = WISHES._replace(value_schema=other)
    with opened(kind, tmp_path, value_schema=other) as target, pytest.raises(SchemaDiffers):
        run(target, MadeUp({0: 900}), wishes)
    archived(kind, tmp_path, MadeUp({0: 900}))
    check(kind, tmp_path, {0: 900})


@pytest.mark.parametrize("is_full_to_the_end", [False, True])
def test_a_full_disk_has_a_name_and_leaves_nothing(
    is_full_to_the_end: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the end: it does not take the end of a file that is given up, either."""
    archived("parquet", tmp_path, MadeUp({0: 500}))
    monkeypatch.setattr(OpenFile, "write", _full)
    if is_full_to_the_end:
        monkeypatch.setattr(pq.ParquetWriter, "close", _full_once(pq.ParquetWriter.close))
    with pytest.raises(DiskFull, match="nothing was committed"):
        archived("parquet", tmp_path, MadeUp({0: 900}))
    monkeypatch.undo()
    assert not [path for path in tmp_path.rglob("*") if UNFINISHED in path.name]
    check("parquet", tmp_path, {0: 500})
    archived("parquet", tmp_path, MadeUp({0: 900}))
    check("parquet", tmp_path, {0: 900})


def _full(_: OpenFile) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def _full_once(close: Callable[[Any], None]) -> Callable[[Any], None]:
    """Refuses the first end of each file."""
    refused: set[int] = set()

    def closing(writer: Any) -> None:
        if id(writer) not in refused:
            refused.add(id(writer))
            raise OSError(errno.ENOSPC, "No space left on device")
        close(writer)

    return closing


def test_a_topic_made_again_is_another_stream(tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp({0: 500}))
    archived("parquet", tmp_path, MadeUp({0: 300}, topic_id="again"))
    offsets = [row["offset"] for _, row in rows_of("parquet", tmp_path)]
    assert len(offsets) == len(rows_between(0, 500)) + len(rows_between(0, 300))


def test_retention_that_was_quicker_is_told(tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp({0: 500}))
    with pytest.raises(DataLost, match="retention was quicker"):
        archived("parquet", tmp_path, MadeUp({0: 2000}, start=900))
    archived("parquet", tmp_path, MadeUp({0: 2000}, start=900), WISHES._replace(allows_loss=True))
    offsets = {row["offset"] for _, row in rows_of("parquet", tmp_path)}
    assert not offsets & set(range(500, 900))
    assert max(offsets) == 1999
    with pytest.raises(DataLost, match="the log ends at 100"):
        archived("parquet", tmp_path, MadeUp({0: 100}))


def test_few_writers_are_enough_for_many_days(tmp_path: Path) -> None:
    with opened("parquet", tmp_path, max_writers=2) as target:
        run(target, MadeUp({0: 1000}))
        files = target.files()
    assert len(files) > len({each.path.rpartition("/")[0] for each in files}), "a day in parts"
    check("parquet", tmp_path, {0: 1000})


def test_days_are_folders_and_reasons_are_named(tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp({0: 3000}), Wishes())
    folders = {path.name for path in (tmp_path / "records" / "topic=t").iterdir()}
    days = {row.day for row in rows_between(0, 3000) if row.time_ms > 0 and row.day}
    assert len(folders) == len(days)
    reasons = set(table_of("parquet", tmp_path, TableKind.QUARANTINE).column("reason").to_pylist())
    assert reasons == {
        "none", "past: zero", "past: seconds", "future: bound", "future: microseconds",
        "past: negative",
    }  # fmt: skip


def test_sums_that_do_not_close_stop_the_commit(tmp_path: Path) -> None:
    with pytest.raises(CountsDoNotClose, match="5 records were read"):
        joined({"t/i/0": 0}, [Done("t/i/0", 0, 10, 5, 0, ())])
    with pytest.raises(CountsDoNotClose, match="after offset 10"):
        joined({"t/i/0": 0}, [Done("t/i/0", 0, 10, 0, 0, ()), Done("t/i/0", 11, 20, 0, 0, ())])
    with pytest.raises(CountsDoNotClose, match="from 2 offsets"):
        joined({"t/i/0": 0}, [Done("t/i/0", 0, 2, 3, 3, ())])
    with pytest.raises(CountsDoNotClose, match="do not rise"):
        archived("parquet", tmp_path, _Disordered({0: 500}))
    assert not list(tmp_path.rglob("*.parquet"))


class _Disordered(MadeUp):
    @property
    def read(self) -> Any:
        return _read_twice


def _read_twice(work: Any, schema: pa.Schema) -> Any:
    for batch in MadeUp({}).read(work, schema):
        yield batch
        yield batch
