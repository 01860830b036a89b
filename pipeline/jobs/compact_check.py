"""`horolog spark compact-check`: the cleaner's work compared with a model of compaction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from config.quantities import number
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.run import run_all
from pipeline.cli.terminal import FINE, named_errors, print_json, print_table
from pipeline.engine.engine import NATIVE, SPARK
from pipeline.errors import NothingThere

if TYPE_CHECKING:
    from pipeline.sources.partition_view import PartitionView

WRONG = 3
COLUMNS = (
    "partition", ">clean below", ">before", ">after", ">lost", ">left over", ">strange", ">changed",
)  # fmt: skip


class CheckedPart(NamedTuple):
    """One partition, before and after."""

    before: "PartitionView"
    after: "PartitionView"
    clean_below: int


@click.command("compact-check", short_help="Compare compacted logs with a model of compaction.")
@click.option(
    "--before",
    metavar="DIR[,DIR]",
    required=True,
    help="Copy of the data directories from before compaction.",
)
@click.option(
    "--after", metavar="DIR[,DIR]", required=True, help="Data directories after compaction."
)
@click.option(
    "--topic", "topics", multiple=True, required=True, help="Topic to check; may be repeated."
)
@click.option("--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, before: str, after: str, topics: tuple[str, ...], engine: str, master: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Check that compaction kept the last record of each key, and nothing else.

    The log from before is compacted by a model that knows nothing of the cleaner, up to the offset
    that the cleaner has noted in the directory, and compared with the log of now. Reported are
    records that are lost, that should have been removed, that were never there, or whose value,
    time or headers changed. A tombstone may be removed. A topic that was created again since the
    copy is refused. Records appended since the copy are ignored.

    Exit status: 3 when they differ.
    """
    with named_errors():
        parts = parts_of(before.split(","), after.split(","), topics)
        with choose_engine(engine, "compact-check", master=master) as chosen:
            rows = run_all(chosen, check_part, parts, "partitions")
    rows.sort(key=lambda row: (row["topic"], row["partition"]))
    if as_json:
        print_json({"partitions": rows})
    else:
        print_table(COLUMNS, [_cells(row) for row in rows])
        for row in rows:
            for example in row["examples"]:
                click.echo(f"{row['topic']}-{row['partition']}: {example}")
    return FINE if all(row["is_right"] for row in rows) else WRONG


def parts_of(
    before: Sequence[str], after: Sequence[str], topics: Sequence[str]
) -> list[CheckedPart]:
    """The partitions of both. NothingThere, DiskError."""
    from pipeline.directories.compaction_facts import clean_below
    from pipeline.directories.partitions import partitions_in
    from pipeline.sources.log_views import views_in
    from storage.posix import real_env

    fs = real_env().fs
    old = {(view.topic, view.partition): view for view in views_in(before, topics)}
    new = {(view.topic, view.partition): view for view in views_in(after, topics)}
    parts = []
    for each in partitions_in(fs, after, topics):
        if each.name not in old:
            raise NothingThere(f"{each.name.topic}-{each.name.partition} is not in the copy")
        below = clean_below(fs, each)
        if below is not None:
            parts.append(_same_topic(CheckedPart(old[each.name], new[each.name], below)))
    if not parts:
        raise NothingThere(f"no cleaner has noted a run over {', '.join(topics)}")
    return parts


def _same_topic(part: CheckedPart) -> CheckedPart:
    """NothingThere when the topic was deleted and made again behind the copy."""
    was, is_now = part.before.topic_id, part.after.topic_id
    if was and is_now and was != is_now:
        raise NothingThere(f"{part.after} was made again since the copy: topic id {was}, {is_now}")
    return part


def check_part(part: CheckedPart) -> dict[str, Any]:
    """Compare one partition. Runs in a worker."""
    import pyarrow.compute as pc

    from pipeline.jobs.compact_plan import read_keys
    from pipeline.transforms.compaction import check

    before, after = (read_keys(each, with_content=True) for each in (part.before, part.after))
    end = part.before.end_offset
    start = part.after.start_offset
    before = before.filter(pc.field("offset") >= start)
    after = after.filter(pc.field("offset") < end)
    checked = check(before, after, part.clean_below)
    return {
        "topic": part.after.topic,
        "partition": part.after.partition,
        "clean_below": part.clean_below,
        "before": before.num_rows,
        "after": after.num_rows,
        **checked._asdict(),
        "is_right": checked.is_right,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    names = ("clean_below", "before", "after", "lost", "left_over", "strange", "changed")
    return (f"{row['topic']}-{row['partition']}", *(number(row[name]) for name in names))
