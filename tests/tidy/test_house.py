"""The house of docs/architecture.md: sizes, names and habits, read from the tree itself."""

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "config", "broker", "pipeline")
TOP_LEVEL = {
    "pyproject.toml", "broker", "protocol", "storage", "config", "scripts", "tests", "pipeline",
    "Dockerfile", "docker-compose.yml", "README.md", "docs", "data", "build",
}  # fmt: skip
FILE_WALL, FUNCTION_WALL, ROOM_WALL = 500, 70, 25
ONE_FILE_AN_API = {"broker/handlers", "protocol/apis"}
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


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_a_file_fits_the_head() -> None:
    files = {name_of(path): lines_of(path) for path in modules() if name_of(path) not in TABLES}
    assert {name: lines for name, lines in files.items() if lines > FILE_WALL} == {}


def test_a_function_fits_the_screen() -> None:
    long = [
        f"{name_of(path)}:{f.lineno} {f.name}"
        for path in modules()
        for f in functions(path)
        if (f.end_lineno or f.lineno) - f.lineno + 1 > FUNCTION_WALL
    ]
    assert long == []


def test_a_room_holds_what_an_eye_takes_in() -> None:
    rooms = Counter(
        Path(name_of(path)).parent.as_posix() for path in modules() if not is_room(path)
    )
    assert {
        room: n for room, n in rooms.items() if n > ROOM_WALL and room not in ONE_FILE_AN_API
    } == {}


def is_room(path: Path) -> bool:
    return path.name == "__init__.py"


def test_a_module_says_what_it_owns() -> None:
    sources = {name_of(path): path.read_text() for path in modules()}
    silent = [
        name
        for name, source in sources.items()
        if source.strip() and not ast.get_docstring(ast.parse(source))
    ]
    assert silent == []


def test_a_class_has_a_name_of_its_own() -> None:
    """Messages are named by Kafka, and each handler has its own `Services`: these rooms aside."""
    places: dict[str, list[str]] = {}
    for path in modules():
        if not ONE_FILE_AN_API & {path.parent.relative_to(ROOT).as_posix()}:
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef):
                    places.setdefault(node.name, []).append(name_of(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_names_say_something() -> None:
    assert [name_of(path) for path in modules() if path.stem in VAGUE_NAMES] == []


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
    assert handlers == apis, "a schema without a handler is dead weight until it is served"
