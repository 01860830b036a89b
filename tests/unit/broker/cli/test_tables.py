"""What commands print for people: a name that a client chose is no order to a terminal."""

import pytest

from broker.cli.tables import TablePage

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\u202eb"
WRITTEN = "a\\x1b]0;owned\\x07\\x1b[2J\\u202eb"


def test_names_that_a_terminal_would_obey_are_written_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = TablePage()
    page.table(("group", ">members"), [(HOSTILE, "1")])
    page.line(f"{HOSTILE}: stable")
    table, line = capsys.readouterr().out.split("\n", 2)[1:]
    assert WRITTEN in table
    assert line == f"{WRITTEN}: stable\n"


def test_names_in_any_script_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    TablePage().line("zähler \u65e5\u672c \U0001f552")
    assert capsys.readouterr().out == "zähler \u65e5\u672c \U0001f552\n"
