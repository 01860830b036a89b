"""`horolog spark archive`: topics into Parquet, Delta or Iceberg, each record exactly once."""

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from config.quantities import number
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.durations import Duration
from pipeline.cli.options import client_settings, read_options, tier_options, tier_settings
from pipeline.cli.quick_import import loading
from pipeline.cli.terminal import FINE, named_errors, print_json, print_table, progress
from pipeline.engine.engine import NATIVE, SPARK
from pipeline.errors import BadOption

if TYPE_CHECKING:
    from pipeline.sinks.archive.run import ArchiveSource, ArchiveTarget, Wishes
    from pipeline.sinks.archive.values import Commit

PARQUET, DELTA, ICEBERG = "parquet", "delta", "iceberg"
FORMATS = (PARQUET, DELTA, ICEBERG)
COUNTS = ("offsets", "holes", "read", "records", "quarantine", "dead_letters", "written_before")


@click.command("archive", short_help="Archive topics to Parquet, Delta, Iceberg, exactly once.")
@click.option("--log-dirs", metavar="DIR[,DIR]", help="Data directories to read, comma-separated.")
@click.option("--bootstrap", metavar="HOST:PORT", help="Broker to read from.")
@client_settings()
@tier_settings
@click.option(
    "--topic", "topics", multiple=True, required=True, help="Topic to archive; may be repeated."
)
@click.option("--out", metavar="DIR", required=True, help="Folder of the archive.")
@click.option("--format", "kind", type=click.Choice(FORMATS), default=PARQUET, show_default=True)
@click.option(
    "--catalog", metavar="NAME", help="Catalog of pyiceberg (default: a file in the folder)."
)
@click.option(
    "--value-schema", metavar="FILE", help="Schema of values: a JSON file of names and types."
)
@click.option("--uncommitted", is_flag=True, help="Include open and aborted transactions.")
@click.option(
    "--oldest",
    type=Duration(),
    default="3650d",
    show_default=True,
    help="Quarantine records with older times.",
)
@click.option(
    "--ahead",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Quarantine records with times further ahead.",
)
@click.option(
    "--round-bytes",
    type=click.IntRange(min=1),
    default=512 << 20,
    show_default=True,
    help="Maximum bytes of a commit.",
)
@click.option(
    "--max-writers",
    type=click.IntRange(min=1),
    default=64,
    show_default=True,
    help="Maximum open files per worker.",
)
@click.option(
    "--plain-encodings", is_flag=True, help="Use encodings for old readers: Spark before 3.4."
)
@click.option(
    "--allow-loss", is_flag=True, help="Continue after records that retention removed unarchived."
)
@click.option(
    "--follow",
    type=Duration(),
    metavar="TIME",
    help="Keep running; interval between two looks for new records.",
)
@click.option("--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, out: str, kind: str, catalog: str | None, max_writers: int, plain_encodings: bool,
    follow: int | None, engine: str, master: str | None, as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Archive the new records of the topics exactly once, and verify that all are there.

    Three tables are kept in the folder: records, by topic and day of the record time; quarantine,
    for records with unbelievable times, with the reason; dead_letters, for values that do not fit
    the schema. Late records go to the day of their time. The tables store the next offsets: a later
    run continues there, and a killed run neither loses nor doubles records.

    Every commit is checked: offsets = holes (of compaction and transactions) + records + quarantine
    + dead_letters. A commit that fails the check is refused (exit status 3).
    """
    with named_errors():
        with loading():  # workers begin with it, too
            wishes = _wishes(options)
            source = source_of(
                options["log_dirs"], options["bootstrap"], options["topics"],
                is_committed=not options["uncommitted"], command_config=options["command_config"],
                **tier_options(options["tier"], allow_http=options["allow_http"]),
            )  # fmt: skip
        with (
            choose_engine(engine, "archive", master=master) as chosen,
            open_target(
                kind, out, wishes, catalog, max_writers=max_writers, is_plain=plain_encodings
            ) as target,
        ):
            while True:
                _tell(_run(source, target, chosen, wishes), as_json=as_json)
                if follow is None:
                    return FINE
                time.sleep(follow / 1000)


def source_of(
    log_dirs: str | None, bootstrap: str | None, topics: Iterable[str], *, is_committed: bool,
    command_config: str | None = None, **where: str,
) -> "ArchiveSource":  # fmt: skip
    """The source of an archive run, as the options say; `where`: of a tier. BadOption."""
    from pipeline.sinks.archive.log_source import LogSource

    level = "read_committed" if is_committed else "read_uncommitted"
    return LogSource(
        read_options(
            log_dirs, bootstrap, list(topics), command_config, isolationLevel=level, **where
        )
    )


def open_target(
    kind: str, out: str, wishes: "Wishes", catalog: str | None = None, *, max_writers: int = 64,
    is_plain: bool = False,
) -> Any:  # fmt: skip
    """The archive of that format, not opened yet; Iceberg's files are always plain."""
    schema = wishes.value_schema
    if kind == PARQUET:
        from pipeline.sinks.archive.parquet import ParquetArchive

        return ParquetArchive(out, max_writers=max_writers, value_schema=schema, is_plain=is_plain)
    if kind == DELTA:
        from pipeline.sinks.archive.delta import DeltaArchive

        return DeltaArchive(out, max_writers=max_writers, value_schema=schema, is_plain=is_plain)
    from pipeline.sinks.archive.iceberg import IcebergArchive

    return IcebergArchive(out, max_writers=max_writers, value_schema=schema, catalog=catalog)


def _wishes(options: dict[str, Any]) -> "Wishes":
    from pipeline.sinks.archive.run import Wishes
    from pipeline.transforms.json_values import read_schema

    schema = None
    if options["value_schema"] is not None:
        try:
            schema = read_schema(Path(options["value_schema"]).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise BadOption(f"--value-schema: {error}") from error
    return Wishes(
        options["round_bytes"], options["oldest"], options["ahead"], schema, options["allow_loss"]
    )


def _run(
    source: "ArchiveSource", target: "ArchiveTarget", engine: Any, wishes: "Wishes"
) -> "list[Commit]":
    from pipeline.sinks.archive.run import planned, run_once

    plan = planned(source, target, wishes)
    with progress("archive", plan.size_bytes, is_bytes=True) as done:
        return list(run_once(source, target, engine, wishes, done, plan=plan))


def _tell(commits: "list[Commit]", *, as_json: bool) -> None:
    proofs = [commit.as_json() for commit in commits]
    total = {name: sum(proof[name] for proof in proofs) for name in COUNTS}
    if as_json:
        print_json({**total, "commits": proofs})
    elif not proofs:
        click.echo("Nothing is new.")
    else:
        print_table([f">{name.replace('_', ' ')}" for name in COUNTS], [_numbers(total)])
        click.echo(
            f"{number(len(proofs))} commits. Every sum closes: {number(total['offsets'])} offsets ="
            f" {number(total['holes'])} holes + {number(total['read'])} records, each written once."
        )


def _numbers(total: dict[str, int]) -> list[str]:
    return [number(total[name]) for name in COUNTS]
