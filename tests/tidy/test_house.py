"""The house as architecture.md draws it: sizes, names and habits, read from the tree itself."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "config", "broker", "pipeline")
TOP_LEVEL = {
    "pyproject.toml", "broker", "protocol", "storage", "config", "scripts", "tests", "pipeline",
    "Dockerfile", "docker-compose.yml", "README.md", "data", "build",
}  # fmt: skip
FILE_WALL, FUNCTION_WALL = 500, 70
# Tables: one row per error code, setting or metric. Their length is Kafka's, not ours.
TABLES = {"protocol/errors.py", "config/topic.py", "config/broker.py"}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "data2", "core", "base"}


@functools.cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_file_fits_the_head(path: Path) -> None:
    if name_of(path) not in TABLES:
        assert len(path.read_text().splitlines()) <= FILE_WALL


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_function_fits_the_screen(path: Path) -> None:
    long = [
        f.name for f in functions(path) if (f.end_lineno or f.lineno) - f.lineno + 1 > FUNCTION_WALL
    ]
    assert not long


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_says_what_it_owns(path: Path) -> None:
    source = path.read_text()
    if path.name != "__init__.py" or source.strip():
        assert ast.get_docstring(ast.parse(source)), f"{name_of(path)} opens without a docstring"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_names_say_something(path: Path) -> None:
    assert path.stem not in VAGUE_NAMES


def test_nothing_else_stands_at_the_top() -> None:
    strange = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")} - TOP_LEVEL
    assert not {name for name in strange if not name.endswith(".egg-info")}


def test_nothing_unfinished_is_left_behind() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "XX" + "X ", "NotImplemented" + "Error")
    found = [f"{name_of(p)}: {m}" for p in modules() for m in marks if m in p.read_text()]
    assert not found


def test_every_handler_serves_an_api_and_carries_its_name() -> None:
    handlers = {p.stem for p in (ROOT / "broker" / "handlers").glob("*.py")} - {"__init__"}
    apis = {p.stem for p in (ROOT / "protocol" / "apis").glob("*.py")} - {"__init__"}
    assert handlers <= apis
    assert not apis - handlers, "a schema without a handler is dead weight until it is served"
