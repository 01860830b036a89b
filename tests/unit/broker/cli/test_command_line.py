"""`horolog` itself: help, mistakes in one line, statuses, and what a start does not load."""

import re
import subprocess
import sys
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from pathlib import Path

import pytest

from broker.cli.main import COMMANDS, main
from broker.cli.version import version_line

RECORDS = Path(__file__).resolve().parents[4] / "protocol" / "records"


def test_without_a_command_there_is_help_and_a_status_that_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 2
    out = capsys.readouterr().out
    assert "gets time right" in out
    assert all(f"\n  {name} " in out for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"Usage: horolog {name}")
    assert all(len(line) <= 80 for line in out.splitlines())


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("sreve", "horolog: there is no command 'sreve'; did you mean serve? (see horolog --help)"),
        ("serve --prot 1", "horolog serve: No such option"),
        ("serve --log-level loud", "'loud' is not one of"),
        ("config", "horolog config: Missing command. (see horolog config --help)"),
        ("serve --listen", "horolog: Option '--listen' requires an argument."),
    ],
)
def test_a_command_line_that_cannot_be_read_is_one_line(
    line: str, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.split()) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert error in output.err
    assert output.err.count("\n") == 1


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    line = capsys.readouterr().out
    assert re.fullmatch(r"horolog \d+\.\d+\.\d+ \((compiled|pure)\)\n", line)


def test_the_version_says_which_walkers_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps, walk = (SourceFileLoader(name, f"{RECORDS}/{name}.py") for name in ("gaps", "walk"))
    built = ExtensionFileLoader("scan", "scan.so")
    found = {"gaps": gaps, "walk": walk, "scan": built}
    monkeypatch.setattr("broker.cli.version._loader", found.get)
    assert version_line().endswith("(compiled except gaps, walk)")
    found["scan"] = None
    assert version_line().endswith("(pure)")
    found.update(gaps=built, walk=built)
    assert version_line().endswith("(compiled)")


def test_serve_loads_nothing_that_other_commands_need() -> None:
    """A start must stay fast: no tables, no HTTP client, no mail, no module of another command."""
    code = (
        "import sys, broker.daemon.serve; from broker.cli.main import main; "
        "main(['serve', '--help']); import broker.daemon.app; "
        "print(*sorted(n for n in sys.modules if n.split('.')[0] in ('rich', 'http', 'urllib3', "
        "'email', 'zipfile') "
        "or n.startswith('broker.cli.') and n not in ('broker.cli.main', 'broker.cli.serve')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""


def test_a_reader_who_leaves_early_ends_the_command_quietly() -> None:
    """As `horolog ... | head -1` does; the output is larger than a pipe."""
    writes = "import sys, broker.cli.main as c; sys.exit(c.main(['config', 'docs']))"
    done = subprocess.run(
        ["sh", "-c", f'{{ "{sys.executable}" -c "{writes}"; echo $? >&2; }} | head -1'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == "0\n"
