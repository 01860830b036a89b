"""The README's first minute works as it is written, against a broker started by its own command."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.cli.main import main
from tests.support.worlds.node_process import NodeProcess
from tests.support.worlds.sensor_story import sensor_broker

ROOT = Path(__file__).resolve().parents[2]
EXECUTED = re.compile(
    r"<!-- executed by tests/integration/test_readme.py -->\n```(\w+)\n(.*?)```", re.DOTALL
)
BLOCKS = dict(EXECUTED.findall((ROOT / "README.md").read_text()))


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    where = tmp_path_factory.mktemp("readme")
    command = [str(ROOT / "scripts" / "run"), "--data-dir", str(where / "data")]
    command += ["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    with NodeProcess(command, where / "log", ready_within_seconds=110) as node:
        yield node.bootstrap


def run(command: list[str], text: str, bootstrap: str) -> str:
    done = subprocess.run(
        command,
        input=text.replace("127.0.0.1:9092", bootstrap),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("kcat"), reason="kcat is not installed")
def test_the_first_minute_with_kcat(bootstrap: str) -> None:
    printed = run(["sh", "-eu"], BLOCKS["sh"], bootstrap)
    assert printed.splitlines() == [
        "0 key-1 first",
        "1 key-2 second",
        "hello [0] offset 0",
        "first",
        "second",
    ]


def test_the_first_minute_with_python(bootstrap: str) -> None:
    assert run([sys.executable, "-W", "error", "-"], BLOCKS["python"], bootstrap) == "1 21.7\n"


def test_why_it_is_still_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the README shows is what the commands print, to the letter."""
    with sensor_broker(tmp_path / "data") as node:
        monkeypatch.setenv("HOROLOG_HTTP", node.facts["http"])
        assert main(["clock", "step", "8d"]) == 0
        capsys.readouterr()
        for line in re.findall(r"^\$ (horolog .*)$", BLOCKS["console"], re.MULTILINE):
            print(f"$ {line}")
            assert main(line.split()[1:]) == 0
    assert capsys.readouterr().out == BLOCKS["console"]


def test_the_commands_of_the_readme_are_there() -> None:
    for verb in ("run", "test"):
        assert (ROOT / "scripts" / verb).stat().st_mode & 0o111
