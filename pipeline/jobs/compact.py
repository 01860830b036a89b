"""`horolog spark compact`: the small files of an archive become few large ones."""

from typing import Any

import click

from config.quantities import number
from pipeline.cli.terminal import FINE, named_errors, print_json, print_table
from pipeline.engine.native import NativeEngine
from pipeline.jobs.archive import DELTA, FORMATS, PARQUET, open_target
from pipeline.sinks.archive.compact import (
    TARGET_BYTES,
    Compacted,
    compact_delta,
    compact_parquet,
)
from pipeline.sinks.archive.run import Wishes

COLUMNS = ("table", ">files before", ">files after", ">rows")


@click.command("compact", short_help="Merge small files of an archive into large ones.")
@click.option("--out", metavar="DIR", required=True, help="Folder of the archive.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default=PARQUET, show_default=True)
@click.option(
    "--catalog", metavar="NAME", help="Catalog of pyiceberg (default: a file in the folder)."
)
@click.option(
    "--target-bytes",
    type=click.IntRange(min=1),
    default=TARGET_BYTES,
    show_default=True,
    help="Target size of an output file, in bytes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(*, out: str, kind: str, catalog: str | None, target_bytes: int, as_json: bool) -> int:
    """Merge small files of the same topic and day, sorted by partition and offset.

    Rows are counted before and after; nothing changes when they differ. Delta and Iceberg keep the
    old files for readers of old versions: their own vacuum and expiry remove them.
    """
    with named_errors(), open_target(kind, out, Wishes(), catalog) as archive:
        done = _compacted(kind, archive, target_bytes)
    if as_json:
        print_json({"tables": [each._asdict() for each in done]})
    else:
        print_table(COLUMNS, [_cells(each) for each in done])
    return FINE


def _compacted(kind: str, archive: Any, target_bytes: int) -> list[Compacted]:
    if kind == PARQUET:
        with NativeEngine() as engine:
            return compact_parquet(archive, engine, target_bytes)
    if kind == DELTA:
        return list(compact_delta(archive, target_bytes))
    from pipeline.sinks.archive.compact_iceberg import compact_iceberg

    return list(compact_iceberg(archive, target_bytes))


def _cells(done: Compacted) -> tuple[str, ...]:
    return done.table, number(done.files_before), number(done.files_after), number(done.rows)
