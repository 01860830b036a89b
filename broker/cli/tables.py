"""Output of commands for people: tables of at most 100 columns, numbers in human units.

Colour and live progress only on a terminal. Exact numbers are for `--json`. In names that clients
chose, control characters are escaped."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

WIDTH = 100
MS_OF_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000}
BYTES_OF_UNITS = {"TiB": 2**40, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


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


def size(count: int) -> str:
    """Bytes as people read them: `1.4 GiB`."""
    for unit, one in BYTES_OF_UNITS.items():
        if abs(count) >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} B"


def number(count: int) -> str:
    """With the thousands set apart: `1 234 567`."""
    return f"{count:_}".replace("_", " ")


def counted(count: int, one: str) -> str:
    """`1 segment`, `2 segments`."""
    return f"{number(count)} {one}{'' if count == 1 else 's'}"


def span(ms: int) -> str:
    """A stretch of time in its two largest units: `6 d 23 h`; below a second in ms."""
    sign, left = "-" if ms < 0 else "", abs(ms)
    if left < MS_OF_UNITS["s"]:
        return f"{sign}{left} ms"
    parts = []
    for unit, one in MS_OF_UNITS.items():
        count, left = divmod(left, one)
        parts.append((count, unit))
    first = next(at for at, (count, _) in enumerate(parts) if count)
    return sign + " ".join(f"{count} {unit}" for count, unit in parts[first : first + 2] if count)
