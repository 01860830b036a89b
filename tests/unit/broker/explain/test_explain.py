"""Every code that the source can write has a page, and every page a code that can be written."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.cli.main import main
from broker.daemon.serve import FORCED_EXIT
from broker.explain.pages import CURRENT_CODES, PAGES, SUBJECTS
from broker.runtime import exit_status
from broker.security.audit.lines import EVENTS

ROOT = Path(__file__).resolve().parents[4] / "broker"
HANDED_ON = {"_begin_hold", "_release"}
"""Functions that hand their first argument on to `event`."""
STATUSES = (
    0, exit_status.BAD_SETTINGS, exit_status.NOT_USABLE, exit_status.CORRUPT,
    exit_status.NOT_DURABLE, exit_status.WRONG_CLOCK, FORCED_EXIT,
)  # fmt: skip


def calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and node.args:
            yield node


def constants(node: ast.expr) -> list[str]:
    """The texts that an expression can be: a literal, or one of two."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.IfExp):
        return [*constants(node.body), *constants(node.orelse)]
    return []


def written_in(path: Path) -> Iterator[tuple[str, int]]:
    """The codes that a module can write. One that cannot be read off the source is refused."""
    hands_on = False
    for call in calls(path):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        if name != "event" and name not in HANDED_ON:
            continue
        codes = constants(call.args[0])
        hands_on |= name in HANDED_ON and bool(codes)
        if not codes and path.name != "event_log.py":
            handed = isinstance(call.args[0], ast.Name) and call.args[0].id == "what"
            assert handed, f"{path.name}:{call.lineno}: which code is this?"
        for code in codes:
            yield code, call.lineno
    assert hands_on or not any(f"def {name}" in path.read_text() for name in HANDED_ON)


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """Code: where it is written."""
    found: dict[str, str] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for code, line in written_in(path):
            found[code] = f"{path.relative_to(ROOT)}:{line}"
    return found


def test_every_line_of_the_security_audit_has_a_page() -> None:
    assert set(EVENTS) <= PAGES.keys()


def test_every_code_has_a_page(written: dict[str, str]) -> None:
    missing = {code: where for code, where in written.items() if code not in PAGES}
    assert not missing, "add a page to broker/explain for each"


def test_every_page_has_a_code(written: dict[str, str]) -> None:
    events = {code for code in PAGES if not code.startswith("exit-")}
    assert events <= {*written, *EVENTS}
    assert {code for code in PAGES if code.startswith("exit-")} == {f"exit-{n}" for n in STATUSES}


def test_no_code_has_two_pages() -> None:
    assert len(PAGES) == sum(len(pages) for pages in SUBJECTS.values())


@pytest.mark.parametrize("code", PAGES)
def test_a_page_is_written_in_sentences(code: str) -> None:
    page = PAGES[code]
    for text in (page.means, page.advice):
        assert text.rstrip()[-1] in ".?!"
        assert "  " not in text


@pytest.mark.parametrize("asked", ["disk_low", "event=disk_low", " disk_low "])
def test_a_code_is_explained(capsys: pytest.CaptureFixture[str], asked: str) -> None:
    assert main(["explain", asked]) == 0
    output = capsys.readouterr().out
    assert output.startswith("disk_low\n")
    assert "What to do:" in output
    assert max(map(len, output.splitlines())) <= 88


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    output = capsys.readouterr().out
    assert all(f"  {code} " in output for code in PAGES)


def test_an_unknown_one_names_its_neighbour(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "disk_slow"]) == 2
    assert "disk_low" in capsys.readouterr().err


def test_a_code_of_an_earlier_release_leads_to_the_one_of_today(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for former, code in CURRENT_CODES.items():
        assert main(["explain", former]) == 0
        output = capsys.readouterr().out
        assert output.startswith(f"{code}\n")
        assert f"Formerly {former}." in " ".join(output.split())


def test_codes_of_earlier_releases_are_written_no_more(written: dict[str, str]) -> None:
    assert CURRENT_CODES == {
        "damage_found": "sidecar_file_unreadable",
        "old_segments_written_anew": "old_segments_upgraded",
    }
    assert not CURRENT_CODES.keys() & written.keys()
