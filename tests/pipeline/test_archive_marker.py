"""An archive opened as what it is not: refused by name, and every file stays where it is."""

import json
from itertools import permutations
from pathlib import Path

import pyiceberg.catalog
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from broker.cli.main import main
from pipeline.errors import DataLost, PipelineError
from pipeline.sinks.archive.iceberg import NAMESPACE
from pipeline.sinks.archive.values import TableKind
from tests.support.spark.archives import FORMATS, archived, check, opened, run
from tests.support.spark.made_up_records import MadeUp
from tests.support.spark.pipeline_logs import directory_log, disordered

MARKER = "_archive.json"


def files(root: Path) -> set[Path]:
    """The data of an archive."""
    return set(root.rglob("*.parquet"))


def catalog_at(monkeypatch: pytest.MonkeyPatch, name: str, place: Path) -> None:
    """A catalog of pyiceberg's configuration."""
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__TYPE", "sql")
    monkeypatch.setenv(f"PYICEBERG_CATALOG__{name.upper()}__URI", f"sqlite:///{place}")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "of before"])
@pytest.mark.parametrize(("there", "asked"), [*permutations(FORMATS, 2)])
def test_a_wrong_format_is_refused_and_deletes_nothing(
    there: str, asked: str, tmp_path: Path, *, is_marked: bool
) -> None:
    archived(there, tmp_path, MadeUp({0: 900}))
    if not is_marked:
        (tmp_path / MARKER).unlink()
    before = files(tmp_path)

    with pytest.raises(PipelineError, match=there), opened(asked, tmp_path) as target:
        run(target, MadeUp({0: 900}, start=850))

    assert files(tmp_path) == before
    archived(there, tmp_path, MadeUp({0: 1200}))
    check(there, tmp_path, {0: 1200})
    assert json.loads((tmp_path / MARKER).read_text())["format"] == there


def test_the_command_says_what_the_folder_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = directory_log(tmp_path / "data")
    disordered(log, 1)
    log.close()
    asked = ["spark", "archive", "--log-dirs", str(tmp_path / "data"), "--topic", "t"]
    asked += ["--oldest", "36500d", "--out", str(tmp_path / "out")]
    assert main([*asked, "--format", "delta"]) == 0
    before = files(tmp_path)
    capsys.readouterr()
    for more in ([], ["--format", "iceberg"]):
        assert main([*asked, *more]) == 2
        assert "is an archive of --format delta, not of --format" in capsys.readouterr().err
    assert main(["spark", "compact", "--out", str(tmp_path / "out")]) == 2
    assert files(tmp_path) == before


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "of before"])
@pytest.mark.parametrize("asked", [None, "other"])
def test_a_forgotten_catalog_is_refused_and_deletes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str | None, *, is_marked: bool
) -> None:
    out = tmp_path / "out"
    catalog_at(monkeypatch, "prod", tmp_path / "prod.sqlite")
    catalog_at(monkeypatch, "other", tmp_path / "other.sqlite")
    with opened("iceberg", out, catalog="prod") as target:
        run(target, MadeUp({0: 900}))
    if not is_marked:
        (out / MARKER).unlink()
    before = files(out)

    with (
        pytest.raises(PipelineError, match="catalog"),
        opened("iceberg", out, catalog=asked) as target,
    ):
        run(target, MadeUp({0: 900}, start=850))

    assert files(out) == before
    assert not (out / "catalog.sqlite").exists()
    with opened("iceberg", out, catalog="prod") as target:
        run(target, MadeUp({0: 1200}))
        rows = target.table(TableKind.RECORDS).scan().to_arrow()
    assert rows.num_rows == len(set(rows.column("offset").to_pylist()))


def test_a_table_that_was_dropped_is_not_begun_again(tmp_path: Path) -> None:
    archived("iceberg", tmp_path, MadeUp({0: 900}))
    catalog = load_catalog(NAMESPACE, type="sql", uri=f"sqlite:///{tmp_path}/catalog.sqlite")
    catalog.drop_table((NAMESPACE, "records"))
    catalog.close()
    before = files(tmp_path)
    with pytest.raises(PipelineError, match="records is a table that the Iceberg catalog"):
        archived("iceberg", tmp_path, MadeUp({0: 1200}))
    assert files(tmp_path) == before


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_nothing_is_swept_of_a_table_that_is_not_there(kind: str, tmp_path: Path) -> None:
    """Whatever has become of it: its files may be wanted."""
    archived("parquet", tmp_path / "other", MadeUp({0: 700}))
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "other" / "records").rename(out / "records")
    before = files(out)
    assert before
    archived(kind, out, MadeUp({0: 900}))
    assert before <= files(out)
    check(kind, out, {0: 900})


def test_files_that_no_commit_has_are_not_taken_for_an_archive(tmp_path: Path) -> None:
    archived("parquet", tmp_path, MadeUp({0: 900}))
    for place in (MARKER, f"_commits/{1:020d}.json", f"_commits/{2:020d}.json"):
        (tmp_path / place).unlink(missing_ok=True)
    (tmp_path / "_commits").rmdir()
    with pytest.raises(PipelineError, match="files of no commit"):
        archived("parquet", tmp_path, MadeUp({0: 900}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 9}'])
def test_a_marker_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_text(text)
    with pytest.raises(DataLost, match=MARKER):
        archived("parquet", tmp_path, MadeUp({0: 900}))
