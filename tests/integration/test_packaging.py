"""pip: a source archive, wheels from it with and without a compiler, and a broker of each."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.clients.container_clients import read_all, written
from tests.support.worlds.broker_process import own_environment
from tests.support.worlds.node_process import NodeProcess

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "config", "broker", "pipeline")
DATA = (
    "config/server.yaml", "config/container/*", "config/prometheus/**/*", "config/grafana/**/*",
    "broker/http/timeline/page/*", "pipeline/spark/*.properties",
)  # fmt: skip
BUILD_SECONDS = 600
READY_SECONDS = 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_SECONDS)]


def run(*command: str | Path, within: Path, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in command], cwd=within, env={**own_environment(), **environment},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def python_files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder)) for name in PACKAGES for path in (folder / name).rglob("*.py")
    }


def data_files() -> set[str]:
    found = {path for pattern in DATA for path in ROOT.glob(pattern) if path.is_file()}
    assert len(found) > 25
    return {str(path.relative_to(ROOT)) for path in found if path.suffix != ".lock"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source archive, made from a copy of the packages that is no repository."""
    checkout = tmp_path_factory.mktemp("checkout")
    left_out = shutil.ignore_patterns("__pycache__", "*.so")
    for name in PACKAGES:
        shutil.copytree(ROOT / name, checkout / name, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", checkout)
    shutil.copy(ROOT / "README.md", checkout)
    assert not (checkout / ".git").exists()
    build = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    run(sys.executable, "-c", build, within=checkout)
    (made,) = (checkout / "dist").iterdir()
    return made


def wheel_from(archive: Path, folder: Path, **environment: str) -> Path:
    command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", archive)
    run(*command, "--wheel-dir", folder, within=archive.parent, **environment)
    (made,) = folder.glob("*.whl")
    return made


def installed(wheel: Path, place: Path) -> Path:
    """`horolog` in an environment of its own, whose libraries are those of ours."""
    run(sys.executable, "-m", "venv", "--without-pip", place, within=wheel.parent)
    (packages,) = place.glob("lib/python*/site-packages")
    ours = (path for path in sys.path if path.endswith("site-packages"))
    (packages / "libraries.pth").write_text("\n".join(ours))
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python")
    run(*pip, "install", "--no-deps", "--no-index", wheel, within=place)
    return place / "bin" / "horolog"


def serves(horolog: Path, folder: Path) -> None:
    """Records that a client writes come back, also after a restart."""
    command = [str(horolog), "serve", "--data-dir", str(folder / "data")]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    values = [b"one", b"two", b"three"]

    def start() -> NodeProcess:
        return NodeProcess(
            command, folder / "log", ready_within_seconds=READY_SECONDS,
            environment=own_environment(),
        )  # fmt: skip

    (folder / "data").mkdir()
    with start() as broker:
        written(broker.bootstrap, "orders", values)
        assert read_all(broker.bootstrap, "orders") == values
        assert broker.stop() == 0
    with start() as broker:
        assert read_all(broker.bootstrap, "orders") == values


def test_the_archive_has_all_sources_and_their_data_and_nothing_built(
    archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert python_files(unpacked) == python_files(ROOT)
    assert all((unpacked / name).is_file() for name in data_files())
    assert not [path for path in unpacked.rglob("*") if path.suffix in {".so", ".c", ".pyc"}]


def hasty_compiler(folder: Path) -> Path:
    """The C compiler without its optimisations, which take most of a build's time."""
    script = folder / "cc"
    script.write_text(f'#!/bin/sh\nexec {sysconfig.get_config_var("CC")} "$@" -O0\n')
    script.chmod(0o755)
    return script


def test_a_wheel_carries_compiled_walkers_and_serves(archive: Path, tmp_path: Path) -> None:
    wheel = wheel_from(archive, tmp_path / "wheels", CC=str(hasty_compiler(tmp_path)))
    names = set(zipfile.ZipFile(wheel).namelist())
    assert python_files(ROOT) | data_files() <= names
    assert not [name for name in names if name.endswith((".c", ".lock"))]
    horolog = installed(wheel, tmp_path / "venv")
    assert run(horolog, "--version", within=tmp_path).endswith(" (compiled)\n")
    serves(horolog, tmp_path)


def test_without_a_compiler_the_wheel_runs_the_sources_and_serves(
    archive: Path, tmp_path: Path
) -> None:
    compiler = shutil.which("false")
    assert compiler
    wheel = wheel_from(archive, tmp_path / "wheels", CC=compiler, LDSHARED=compiler)
    names = set(zipfile.ZipFile(wheel).namelist())
    assert python_files(ROOT) | data_files() <= names
    assert not [name for name in names if name.endswith(".so")]
    horolog = installed(wheel, tmp_path / "venv")
    assert run(horolog, "--version", within=tmp_path).endswith(" (pure)\n")
    serves(horolog, tmp_path)


def test_a_source_that_changed_is_compiled_in_place_by_the_script(tmp_path: Path) -> None:
    records = tmp_path / "protocol" / "records"
    shutil.copytree(ROOT / "protocol", tmp_path / "protocol")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "compile", tmp_path / "scripts")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    compiled = records / f"gaps{sysconfig.get_config_var('EXT_SUFFIX')}"
    assert compiled.exists()
    os.utime(compiled, (1, 1))
    script = (sys.executable, tmp_path / "scripts" / "compile")

    assert run(*script, within=tmp_path) == ""

    module = "import protocol.records.gaps as gaps; print(gaps.__file__)"
    assert run(sys.executable, "-c", module, within=tmp_path) == f"{compiled}\n"
    assert compiled.stat().st_mtime > (records / "gaps.py").stat().st_mtime
    assert not list(tmp_path.rglob("*.c"))
