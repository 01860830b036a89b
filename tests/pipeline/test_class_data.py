"""Java's class-data archive: made once, used then, by the Java it was made by; never in the way."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from pipeline.spark.class_data import OTHER_CLASSES, SILENT, WRITTEN_SECONDS, class_data_options

USED, MADE = "-XX:SharedArchiveFile=", "-XX:ArchiveClassesAtExit="


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java and a Spark, as far as anything is asked of them."""
    home = tmp_path / "java"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").write_bytes(b"own")
    (home / "release").write_text("17.0.1")
    says(home, whole=True)
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "a.jar").write_bytes(b"jar")
    for name in OTHER_CLASSES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return home


def says(home: Path, *, whole: bool) -> None:
    """What this Java says of archives that it has to prove."""
    (home / "bin").mkdir(exist_ok=True)
    (home / "bin" / "java").write_text(f"#!/bin/sh\nexit {0 if whole else 134}\n")
    (home / "bin" / "java").chmod(0o755)


def written(options: str) -> Path:
    """Where Java is told to write the archive."""
    return Path(options.split(maxsplit=1)[0].removeprefix(MADE))


def write(options: str) -> None:
    """As Java does when it ends, a while ago."""
    made = written(options)
    made.write_bytes(b"classes")
    before = time.time() - WRITTEN_SECONDS - 1
    os.utime(made, (before, before))


def test_one_command_makes_it_and_the_next_ones_use_it(java: Path) -> None:
    first = class_data_options()
    assert first.startswith(MADE)
    assert class_data_options() == "", "one of them is enough"
    write(first)
    assert class_data_options().startswith(USED)
    assert class_data_options() == class_data_options()


def test_another_java_or_spark_has_its_own(java: Path, tmp_path: Path) -> None:
    seen = {class_data_options()}
    (java / "release").write_text("17.0.2")
    seen.add(class_data_options())
    (tmp_path / "spark" / "jars" / "b.jar").write_bytes(b"jar")
    seen.add(class_data_options())
    assert len(seen) == 3


def test_what_is_still_written_is_not_used(java: Path) -> None:
    written(class_data_options()).write_bytes(b"half")
    assert class_data_options() == ""


def test_one_that_java_does_not_prove_is_thrown_away(java: Path) -> None:
    first = class_data_options()
    write(first)
    says(java, whole=False)
    assert class_data_options() == ""
    assert not written(first).exists()


@pytest.mark.parametrize("why", ["no archive", "no cache", "blank", "classes", "jars"])
def test_where_it_cannot_be_there_is_none(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "no archive":
        (java / "lib" / "server" / "classes.jsa").unlink()
    if why == "no cache":
        (tmp_path / "cache").write_text("a file")
    if why == "blank":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    if why == "classes":
        monkeypatch.setenv("SPARK_CONF_DIR", "/conf")
    assert class_data_options(["spark.jars"] if why == "jars" else []) == ""


@pytest.mark.skipif(shutil.which("java") is None, reason="needs java")
@pytest.mark.parametrize("damage", ["missing", "garbage", "unfinished", "of other classes"])
def test_java_says_nothing_of_one_that_does_not_fit(tmp_path: Path, damage: str) -> None:
    archive = tmp_path / "x.jsa"
    if damage in {"unfinished", "of other classes"}:
        run(f"{MADE}{archive}", "-cp", str(tmp_path / "a.jar"))
        assert archive.exists()
    if damage == "unfinished":  # Java writes the header last
        archive.chmod(0o644)
        archive.write_bytes(bytes(4096) + archive.read_bytes()[4096 : archive.stat().st_size // 2])
    if damage == "garbage":
        archive.write_bytes(b"no archive" * 1000)
    said = run(f"{USED}{archive}", "-cp", str(tmp_path / "b.jar"))
    assert "cds" not in said
    assert "warning" not in said


def run(*options: str) -> str:
    done = subprocess.run(
        ["java", *options, *SILENT.split(), "-XshowSettings:vm", "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout + done.stderr
