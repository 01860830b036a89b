"""Job output: exit status, JSON, tables, progress.

Standard output has the answer, standard error the bar and the mistakes. Exit status: 0 all is
well, 10 an alarm (what the job looks for was found), else that of the error (`pipeline.errors`).
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from pipeline.errors import PipelineError

FINE, ALARM = 0, 10
WIDTH = 110
_SECOND_MS = 1000
_UNITS = (("y", 31_557_600_000), ("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
_SIZES = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))


@contextmanager
def named_errors() -> Iterator[None]:
    """Turns errors of other packages into errors of the pipeline, which the command line prints."""
    from config.errors import ConfigError
    from storage.errors import StorageError

    try:
        yield
    except (StorageError, ConfigError, OSError) as error:
        raise PipelineError(str(error)) from error


def print_json(answer: object) -> None:
    """The exact answer, one object."""
    click.echo(json.dumps(answer, indent=2, default=str))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Rows under their columns; a column named with a leading `>` is set to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(
            Text(name.lstrip(">")),
            justify="right" if name.startswith(">") else "left",
            overflow="fold",
        )
    for row in rows:
        made.add_row(*map(Text, row))
    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDTH
    console.print(made)


@contextmanager
def progress(what: str, total: int, *, is_bytes: bool = False) -> Iterator[Callable[[int], object]]:
    """A bar on standard error while that is a terminal; named_errors how much more is done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    amount = DownloadColumn(binary_units=True) if is_bytes else MofNCompleteColumn()
    columns = TextColumn(what), BarColumn(), amount, TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


def span(ms: int) -> str:
    """A stretch of time in its two largest units: `6 d 23 h`; below a second in ms."""
    sign, left = "-" if ms < 0 else "", abs(ms)
    if left < _SECOND_MS:
        return f"{sign}{left} ms"
    parts: list[str] = []
    for unit, one in _UNITS:
        count, left = divmod(left, one)
        if count or parts:
            parts.append(f"{count} {unit}" if count else "")
    return sign + " ".join(each for each in parts[:2] if each)


def size(count: int) -> str:
    """Bytes as people read them: `1.4 GiB`."""
    for unit, one in _SIZES:
        if abs(count) >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count} B"


def number(count: int) -> str:
    """With the thousands set apart: `1 234 567`."""
    return f"{count:_}".replace("_", " ")


def instant(ms: int | None) -> str:
    """In UTC to the second; milliseconds beyond the calendar; a dash for none."""
    if ms is None:
        return "-"
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (OverflowError, ValueError, OSError):
        return f"{ms} ms"
