"""`horolog spark verify`: proves whole data directories, a partition a process.

What is proved, and how, is `storage.verify.directory`'s, as in `horolog verify`; here it runs on
all cores, or as tasks of Spark where the directories are shared.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import click

from config.quantities import number, size
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.run import run_all
from pipeline.cli.terminal import FINE, named_errors, print_json, print_table
from pipeline.directories.log_files import refuse_stores
from pipeline.engine.engine import NATIVE, SPARK, Engine
from pipeline.errors import NothingThere
from storage.env import FileSystem
from storage.files.layout import parse_partition_dir
from storage.verify.directory import DirectorySurvey
from storage.verify.report import PartitionReport

FAULTY = 3
"""Exit status of `horolog verify`, too."""
COLUMNS = ("partition", ">segments", ">batches", ">records", ">size", ">offsets", "verdict")


class VerifiedPart(NamedTuple):
    """One partition to prove."""

    path: str
    whole: DirectorySurvey


@click.command("verify", short_help="Verify CRCs, offsets and indexes, on all cores.")
@click.option(
    "--log-dirs",
    metavar="DIR[,DIR]",
    required=True,
    help="Data directories to verify, comma-separated.",
)
@click.option("--topic", "topics", multiple=True, help="Verify this topic only; may be repeated.")
@click.option("--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, log_dirs: str, topics: tuple[str, ...], engine: str, master: str | None, as_json: bool
) -> int:
    """Verify every batch's CRC and place, and all files beside the logs; change nothing.

    As `horolog verify`, but on all cores, or with --engine spark on a cluster that sees the
    directories. Exit status: 0 when everything is sound, 3 when something is not.
    """
    from storage.posix import real_env

    with named_errors():
        refuse_stores(log_dirs.split(","))
        parts, damage = parts_of(real_env().fs, log_dirs.split(","), topics)
        with choose_engine(engine, "verify", master=master) as chosen:
            reports = prove(chosen, parts)
    rows = [_row(report) for report in reports]
    if as_json:
        print_json({"partitions": rows, "checkpoints": damage})
    else:
        _show(rows, damage)
    sound = not damage and all(row["verdict"] == "sound" for row in rows)
    return FINE if sound else FAULTY


def parts_of(
    fs: FileSystem, directories: Iterable[str], topics: Sequence[str]
) -> tuple[list[VerifiedPart], list[str]]:
    """The parts to verify, and checkpoint files that cannot be read. NothingThere, DiskError."""
    from storage.verify.directory import survey

    parts: list[VerifiedPart] = []
    damage: list[str] = []
    for directory in directories:
        whole = survey(fs, directory)
        damage += whole.damage
        bare = whole._replace(partitions=(), damage=())
        parts += [VerifiedPart(path, bare) for path in whole.partitions if _is_wanted(path, topics)]
    if topics and not parts:
        raise NothingThere(f"no partition of {', '.join(topics)} is in these directories")
    return parts, damage


def prove(engine: Engine, parts: Sequence[VerifiedPart]) -> list[PartitionReport]:
    """The report of each part that is still there, by name."""
    reports = run_all(engine, prove_part, parts, "partitions")
    return sorted(filter(None, reports), key=lambda report: report.path)


def prove_part(part: VerifiedPart) -> PartitionReport | None:
    """The report of one partition; None when a broker deleted it meanwhile. Runs in a worker."""
    from storage.errors import FileMissing
    from storage.posix import real_env
    from storage.verify.directory import verify_partition

    try:
        return verify_partition(real_env().fs, part.path, part.whole, lambda _: None)
    except FileMissing:
        if part.whole.is_clean:
            raise
        return None


def _is_wanted(path: str, topics: Sequence[str]) -> bool:
    name = parse_partition_dir(path.rpartition("/")[2])
    return not topics or (name is not None and name.topic in topics)


def _row(report: PartitionReport) -> dict[str, Any]:
    row = {"partition": report.name, "verdict": report.verdict, **asdict(report)}
    del row["name"]
    row["findings"] = [finding._asdict() for finding in report.findings]
    return row


def _show(rows: Sequence[dict[str, Any]], damage: Sequence[str]) -> None:
    print_table(COLUMNS, [_cells(row) for row in rows])
    for row in rows:
        for finding in row["findings"]:
            click.echo(f"{finding['severity']}: {row['path']}/{finding['file']}: {finding['what']}")
        for file, count in row["unlisted"].items():
            click.echo(f"... and {count} more like these in {row['path']}/{file}")
    for each in damage:
        click.echo(f"wrong: {each}")


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    proved = row["proved"]
    return (
        row["partition"],
        number(proved["segments"]),
        number(proved["batches"]),
        number(proved["records"]),
        size(proved["size_bytes"]),
        f"{row['start_offset']} to {row['end_offset']}",
        row["verdict"],
    )
