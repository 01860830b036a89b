"""Output of commands for people: tables of at most 100 columns, numbers in human units.

Colour and live progress only on a terminal. Exact numbers are for `--json`. In names that clients
chose, control characters are escaped."""

import sys
from collections.abc import Iterable, Sequence
from enum import Enum

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

WIDTH = 100


class TablePage:
    """Standard output for people."""

    def __init__(self) -> None:
        """Uses the full table width where the output is no terminal."""
        self._console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
        width = self._console.width if self._console.is_terminal else WIDTH
        self._console.width = min(width, WIDTH)

    def line(self, text: str = "", style: str = "") -> None:
        """A line of text, however long."""
        self._console.print(Text(shown(text), style), soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> None:
        """Rows under their columns; a column named with a leading `>` is set to the right."""
        with self._console.capture() as capture:
            self._console.print(_table(columns, rows))
        self._console.file.write(
            "".join(f"{each.rstrip()}\n" for each in capture.get().splitlines())
        )


def show_proof(
    columns: Sequence[str],
    rows: Iterable[Sequence[RenderableType]],
    findings: Sequence[tuple[str, Enum]],
    proof: str,
) -> None:
    """A table; lines of what is damaged, and what of each kind follows; `proof` without damage."""
    page = TablePage()
    page.table(columns, rows)
    for line, _ in findings:
        page.line(line)
    for fault in dict.fromkeys(fault for _, fault in findings):
        page.line(f"{fault.name.lower()}: {fault.value}")
    if not findings:
        page.line(proof)


def _table(columns: Sequence[str], rows: Iterable[Sequence[RenderableType]]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        is_number = name.startswith(">")
        made.add_column(
            Text(name.lstrip(">")), justify="right" if is_number else "left", overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text(shown(each)) if isinstance(each, str) else each for each in row))
    return made


def shown(text: str) -> str:
    """A text as it may stand on a terminal: what is not printable is escaped."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
