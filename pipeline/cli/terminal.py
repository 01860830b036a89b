"""Job output: exit status, JSON, tables, progress.

Standard output has the answer, standard error the bar and the mistakes. Exit status: 0 all is
well, 10 an alarm (what the job looks for was found), else that of the error (`pipeline.errors`).
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

from pipeline.errors import PipelineError

FINE, ALARM = 0, 10
WIDTH = 110


@contextmanager
def named_errors() -> Iterator[None]:
    """Turns errors of other packages into errors of the pipeline, which the command line prints.
    Raises PipelineError.
    """
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
