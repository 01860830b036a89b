"""What executors are sent: all that is imported of ours, nothing else, the same bytes each time."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from pipeline.spark import shipped
from pipeline.spark.shipped import code_archive, is_local

LARGEST_BYTES = 2_000_000


def names_in(archive: Path) -> list[str]:
    with tarfile.open(archive) as opened:
        return opened.getnames()


def test_it_is_small_and_has_our_packages_alone(tmp_path: Path) -> None:
    archive = code_archive(tmp_path)
    names = names_in(archive)
    assert archive.stat().st_size < LARGEST_BYTES
    roots = {each.partition(".")[0] for each in shipped.PACKAGES}
    assert {name.split("/")[0] for name in names} == roots
    of_broker = {name for name in names if name.startswith("broker/")}
    assert {"/".join(name.split("/")[:2]) for name in of_broker} == {
        "broker/__init__.py",
        "broker/access",
    }
    assert {"pipeline/spark/source.py", "protocol/records/walk.py"} <= set(names)
    assert not [name for name in names if "__pycache__" in name or "test" in name]
    here = {
        path.name for path in Path(shipped.__file__).parents[2].glob("protocol/records/**/*.so")
    }
    assert {Path(name).name for name in names if name.endswith(".so")} <= here


def test_it_is_made_once_for_a_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = code_archive(tmp_path / "one")
    again = code_archive(tmp_path / "two")
    assert first.name == again.name
    assert first.read_bytes() == again.read_bytes()
    made = first.stat().st_mtime_ns
    assert code_archive(tmp_path / "one").stat().st_mtime_ns == made
    assert code_archive(tmp_path / "one", ["config"]).name != first.name


def test_where_nothing_can_be_kept_it_is_made_for_the_session(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    assert names_in(code_archive(tmp_path / "file" / "code"))


def test_code_runs_from_the_unpacked_archive(tmp_path: Path) -> None:
    with tarfile.open(code_archive(tmp_path)) as opened:
        opened.extractall(tmp_path / "code", filter="data")
    program = "import pipeline.spark.source as s, protocol.records.walk as w; print(s.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print(w.__file__)"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": "./code"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert all(Path(tmp_path, line).is_relative_to(tmp_path) for line in done.stdout.split())
    assert len(done.stdout.split()) == 2


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True), ("local[*]", True), ("local[2,4]", True), ("spark://host:7077", False),
        ("local-cluster[2,1,1024]", False), ("yarn", False), ("k8s://https://host", False),
    ],
)  # fmt: skip
def test_code_is_sent_where_tasks_run_elsewhere(master: str, local: bool) -> None:
    assert is_local(master) is local
