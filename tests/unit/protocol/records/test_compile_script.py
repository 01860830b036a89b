"""`scripts/compile` on a machine without a C compiler, and after the source has changed."""

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
WALKERS = runpy.run_path(str(ROOT / "scripts" / "compile"))["walkers"]()
MODULES = [walker["name"].replace(".", "/") for walker in WALKERS]
SMALLEST = {"protocol/records/gaps", "protocol/records/mistimed"}
"""What Cython turns into C in a moment."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "compile", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    folder = ROOT / "protocol" / "records"
    for source in [*folder.rglob("*.py"), *folder.rglob("*.pxd")]:
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    return tmp_path


def compile_in(checkout: Path, cc: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(checkout / "scripts" / "compile")],
        capture_output=True, text=True, check=True, env={**os.environ, "CC": cc},
    )  # fmt: skip


def built_in(checkout: Path) -> list[Path]:
    return sorted((checkout / "protocol" / "records").rglob("*" + SUFFIX))


def test_what_is_compiled_are_the_modules_that_import_cython() -> None:
    sources = (ROOT / "protocol" / "records").rglob("*.py")
    walkers = [each for each in sources if "\nimport cython\n" in each.read_text()]
    assert {str(each.relative_to(ROOT).with_suffix("")) for each in walkers} == {*MODULES}


def test_what_is_compiled_names_what_it_inlines() -> None:
    for walker in WALKERS:
        seen = set(inlined(ROOT / walker["sources"][0]))
        assert {ROOT / name for name in walker.get("depends", ())} == seen, walker["name"]


def inlined(source: Path) -> Iterator[Path]:
    """The .pxd files that a source has inlined, and theirs."""
    cimport = r"from (?:cython\.cimports\.)?(protocol[\w.]+) (?:c?import)"
    text = "\n".join(line for line in source.read_text().splitlines() if "cimport" in line)
    for name in re.findall(cimport, text):
        declared = (ROOT / name.replace(".", "/")).with_suffix(".pxd")
        yield declared
        yield from inlined(declared)


def test_what_is_compiled_has_one_set_of_options_and_may_fail() -> None:
    assert all(each["sources"] == [each["name"].replace(".", "/") + ".py"] for each in WALKERS)
    assert len({tuple(each["extra-compile-args"]) for each in WALKERS}) == 1
    assert all(each["optional"] for each in WALKERS), "pip has to go on without a compiler"


def test_without_a_compiler_it_says_so_in_one_line_and_succeeds(checkout: Path) -> None:
    ran = compile_in(checkout, "no-such-compiler")

    assert ran.stdout == ""
    assert ran.stderr.splitlines() == [
        "scripts/compile: record walkers run uncompiled: no C compiler (no-such-compiler)"
    ]
    assert not built_in(checkout)


def test_a_compiler_that_fails_is_no_failure_either(checkout: Path) -> None:
    current = [module for module in MODULES if module not in SMALLEST]
    for module in current:
        (checkout / f"{module}{SUFFIX}").write_bytes(b"newer")

    ran = compile_in(checkout, "false")

    assert len(ran.stderr.splitlines()) == 1
    assert "record walkers run uncompiled" in ran.stderr
    assert {*built_in(checkout)} == {checkout / f"{module}{SUFFIX}" for module in current}


def test_compiled_files_older_than_their_source_are_removed(checkout: Path) -> None:
    for module in MODULES:
        compiled = checkout / f"{module}{SUFFIX}"
        compiled.write_bytes(b"stale")
        os.utime(compiled, (1, 1))

    compile_in(checkout, "no-such-compiler")

    assert not built_in(checkout)


def test_compiled_files_newer_than_their_source_are_left_alone(checkout: Path) -> None:
    for module in MODULES:
        (checkout / f"{module}{SUFFIX}").write_bytes(b"newer")

    ran = compile_in(checkout, "no-such-compiler")

    assert ran.stderr == ""
    assert [path.read_bytes() for path in built_in(checkout)] == [b"newer"] * len(MODULES)
