"""`horolog spark reindex`: index files rebuilt from the logs, into another folder."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from config.quantities import number
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.run import run_all
from pipeline.cli.terminal import FINE, named_errors, print_json, print_table
from pipeline.directories.partitions import partitions_in
from pipeline.directories.topic_settings import TopicSettings
from pipeline.engine.engine import NATIVE, SPARK

if TYPE_CHECKING:
    from pipeline.directories.rebuilt_indexes import Rebuilt
    from storage.env import FileSystem
    from storage.segment.segment import IndexRules

DAMAGED = 3
COLUMNS = ("partition", ">segments", ">same", ">different", ">missing", ">damaged logs")


class ReindexedPart(NamedTuple):
    """A segment to be indexed."""

    directory: str
    name: str
    base_offset: int
    target: str
    rules: "IndexRules"
    is_active: bool


@click.command("reindex", short_help="Rebuild index files into another folder.")
@click.option(
    "--log-dirs",
    metavar="DIR[,DIR]",
    required=True,
    help="Data directories to read, comma-separated.",
)
@click.option(
    "--out", metavar="DIR", required=True, help="Output folder; gets a folder for each partition."
)
@click.option("--topic", "topics", multiple=True, help="Rebuild this topic only; may be repeated.")
@click.option(
    "--set",
    "flags",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting of the broker by its key; may be repeated.",
)
@click.option("--config", metavar="FILE", help="Settings file of the broker.")
@click.option("--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, log_dirs: str, out: str, topics: tuple[str, ...], flags: tuple[str, ...],
    config: str | None, engine: str, master: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Rebuild offset index, time index and zone map of every segment from its log alone.

    They are written to a folder of the partition's name in --out, byte for byte as the broker makes
    them, and compared with the files beside the log. A log has no times of arrival: they are taken
    from an existing zone map, and estimated where there is none. Copy the files to their place
    while no broker is at work there, or leave it to the broker, which rebuilds files that it finds
    wrong.

    Exit status: 3 when a log itself is damaged.
    """
    with named_errors():
        parts = parts_of(log_dirs.split(","), topics, out, flags, config)
        with choose_engine(engine, "reindex", master=master) as chosen:
            found = run_all(chosen, reindex_part, parts, "segments")
    damaged = [each for _, each in found if each.fault]
    if as_json:
        rows = [{"partition": name, **each._asdict()} for name, each in sorted(found)]
        print_json({"segments": rows})
    else:
        _show(found)
        for each in damaged:
            click.echo(f"damaged: {each.path} {each.fault}")
    return DAMAGED if damaged else FINE


def parts_of(
    directories: Sequence[str], topics: Sequence[str], out: str, flags: Sequence[str] = (),
    config: str | None = None,
) -> list[ReindexedPart]:  # fmt: skip
    """The segments that there are. NothingThere, ConfigError, DiskError."""
    from storage.files.partition_listing import look_at
    from storage.posix import real_env
    from storage.segment.segment import IndexRules

    fs = real_env().fs
    found = partitions_in(fs, directories, topics)
    folders = {each.directory for each in found}
    settings = {each: TopicSettings(fs, each, flags, config) for each in folders}
    at_work = {each for each in folders if _is_at_work(fs, each)}
    parts = []
    for each in found:
        name = each.path.rpartition("/")[2]
        fs.make_dir(f"{out}/{name}")
        rules = IndexRules.of(settings[each.directory].of(each.name.topic))
        bases = look_at(fs, each.path).bases
        parts += [
            ReindexedPart(
                each.path,
                name,
                base,
                f"{out}/{name}",
                rules,
                base == bases[-1] and each.directory in at_work,
            )
            for base in bases
        ]
    return parts


def _is_at_work(fs: "FileSystem", directory: str) -> bool:
    """A broker writes there, or was killed: there is no mark of a clean stop."""
    from storage.files.layout import CLEAN_SHUTDOWN_FILE, HIGH_WATERMARKS_FILE

    is_clean = fs.exists(f"{directory}/{CLEAN_SHUTDOWN_FILE}")
    return not is_clean and fs.exists(f"{directory}/{HIGH_WATERMARKS_FILE}")


def reindex_part(part: ReindexedPart) -> "tuple[str, Rebuilt]":
    """Index one segment. Runs in a worker."""
    from pipeline.directories.rebuilt_indexes import rebuild_segment
    from storage.posix import real_env

    return part.name, rebuild_segment(
        real_env().fs, part.directory, part.base_offset, part.target, part.rules,
        is_active=part.is_active,
    )  # fmt: skip


def _show(found: "Sequence[tuple[str, Rebuilt]]") -> None:
    rows = []
    for name in sorted({name for name, _ in found}):
        mine = [each for other, each in found if other == name]
        counts = [
            len(mine),
            sum(len(each.same) for each in mine),
            sum(len(each.different) for each in mine),
            sum(len(each.missing) for each in mine),
            sum(bool(each.fault) for each in mine),
        ]
        rows.append((name, *map(number, counts)))
    print_table(COLUMNS, rows)
