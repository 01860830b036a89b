"""`horolog verify`: proves the files of a data directory against each other, and changes nothing.

The proof is `storage.verify.directory`'s; here it becomes a table, or one JSON object for each
partition.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from broker.runtime.exit_status import CORRUPT, NOT_USABLE

if TYPE_CHECKING:
    from rich.console import RenderableType

    from storage.verify.directory import DirectorySurvey
    from storage.verify.report import PartitionReport

COLUMNS = (
    "partition", ">segments", ">records", ">size", ">offsets", ">times", ">zones", ">aborts",
    "verdict",
)  # fmt: skip


@click.command("verify", short_help="Verify that the files agree; change nothing.")
@click.argument("directory", metavar="DIR")
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object a line for each partition."
)
def command(directory: str, *, as_json: bool) -> int:
    """Verify that the files in DIR agree, and change nothing.

    DIR is a data directory, or the directory of one partition in it. Every batch is read: its CRC,
    its place, its records and their times. Every entry of offset index, time index (in both its
    meanings), zone map, index of aborted transactions, producer snapshots and leader epochs is
    compared with them. The table counts what was verified (--json has more).

    \b
    sound    everything agrees
    wrong    a file beside a log contradicts it: the broker rebuilds it when
             it opens the log after a crash, or notices
    damaged  bytes of a log itself are not what was written

    Exit status: 0 when everything is sound, 3 when something is not, 2 when DIR cannot be read.
    A broker may be at work in DIR (or may have been killed): what is being written is then judged
    as far as it goes.
    """
    from storage.errors import FileMissing, StorageError
    from storage.posix import real_env
    from storage.verify.directory import survey, verify_partition

    fs = real_env().fs
    reports: list[PartitionReport] = []
    try:
        whole = survey(fs, directory)
        with _progress(whole.size_bytes) as progress:
            for path in whole.partitions:
                try:
                    reports.append(verify_partition(fs, path, whole, progress))
                except FileMissing as error:
                    if whole.is_clean:
                        raise
                    click.echo(f"horolog verify: {error}: it was deleted meanwhile", err=True)
    except StorageError as error:
        click.echo(f"horolog verify: {error}", err=True)
        return NOT_USABLE
    (_print_json if as_json else _print_table)(whole, reports)
    sound = not whole.damage and all(report.verdict == "sound" for report in reports)
    return 0 if sound else CORRUPT


@contextmanager
def _progress(total_bytes: int) -> "Iterator[Callable[[int], object]]":
    """A bar on standard error while that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total_bytes)
        yield lambda count: bar.advance(task, count)


def _print_json(whole: "DirectorySurvey", reports: "list[PartitionReport]") -> None:
    for report in reports:
        content = {"partition": report.name, "verdict": report.verdict, **asdict(report)}
        del content["name"]
        content["findings"] = [each._asdict() for each in report.findings]
        print(json.dumps({**content, "is_clean": whole.is_clean}))
    for damage in whole.damage:
        print(json.dumps({"verdict": "wrong", "checkpoint": damage}))


def _print_table(whole: "DirectorySurvey", reports: "list[PartitionReport]") -> None:
    from broker.cli.tables import TablePage

    page = TablePage()
    if reports:
        page.table(COLUMNS, map(_row, reports))
    else:
        page.line("There is no partition.")
    if not whole.is_clean:
        page.line(
            "The directory was not closed: a broker is at work in it, or was killed. What it has "
            "not finished does not count as a fault."
        )
    for report in reports:
        for finding in report.findings:
            line = f"{finding.severity}: {report.name}/{finding.file}: {finding.what}"
            page.line(line)
        for file, count in report.unlisted.items():
            page.line(f"... and {count} more like these in {report.name}/{file}")
    for damage in whole.damage:
        page.line(f"wrong: {damage}")


def _row(report: "PartitionReport") -> "tuple[RenderableType, ...]":
    from rich.text import Text

    from config.quantities import number, size

    proved = report.proved
    times = proved.time_entries_max + proved.time_entries_next
    style = "" if report.verdict == "sound" else "bold red"
    return (
        report.name,
        number(proved.segments),
        number(proved.records),
        size(proved.size_bytes),
        number(proved.offset_entries),
        number(times),
        number(proved.zones),
        number(proved.aborted_transactions),
        Text(report.verdict, style=style),
    )
