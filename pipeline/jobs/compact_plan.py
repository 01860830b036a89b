"""`horolog spark compact-plan`: what compaction is due, why, since when, and what it would free."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from config.quantities import number, second, size, span
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.run import run_all
from pipeline.cli.terminal import ALARM, FINE, named_errors, print_json, print_table
from pipeline.directories.partitions import LocalPartition, partitions_in
from pipeline.directories.topic_settings import TopicSettings
from pipeline.engine.engine import NATIVE, SPARK

if TYPE_CHECKING:
    from pipeline.sources.partition_view import PartitionView
    from storage.retention.cleanability import CleaningLimits

COLUMNS = (
    "partition", ">dirty", ">overdue", "by", ">records", ">kept", ">tombstones", ">frees", "why",
)  # fmt: skip


class PlannedPart(NamedTuple):
    """One compacted partition."""

    partition: LocalPartition
    view: "PartitionView"
    limits: "CleaningLimits"
    now_ms: int


@click.command(
    "compact-plan", short_help="Show which compaction is due, since when, what it frees."
)
@click.option(
    "--log-dirs",
    metavar="DIR[,DIR]",
    required=True,
    help="Data directories to read, comma-separated.",
)
@click.option("--topic", "topics", multiple=True, help="Show this topic only; may be repeated.")
@click.option(
    "--set",
    "flags",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting of the broker by its key; may be repeated.",
)
@click.option("--config", metavar="FILE", help="Settings file of the broker.")
@click.option("--now", "now_ms", type=int, metavar="MS", help="Time to judge by (default: now).")
@click.option("--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, log_dirs: str, topics: tuple[str, ...], flags: tuple[str, ...], config: str | None,
    now_ms: int | None, engine: str, master: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Show for each compacted partition how dirty it is, what is overdue, what a run would leave.

    Dirty ratio, deadline of max.compaction.lag.ms and the reason are those that the broker's
    cleaner would come to; how many records and bytes stay is counted by their keys.

    Exit status: 10 when a record has waited longer than max.compaction.lag.ms.
    """
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    with named_errors():
        parts = parts_of(log_dirs.split(","), topics, flags, config, moment)
        with choose_engine(engine, "compact-plan", master=master) as chosen:
            rows = run_all(chosen, plan_part, parts, "partitions")
    rows.sort(key=lambda row: (-row["delay_ms"], -row["dirty_ratio"]))
    if as_json:
        print_json({"now_ms": moment, "partitions": rows})
    else:
        print_table(COLUMNS, [_cells(row) for row in rows])
    return ALARM if any(row["delay_ms"] for row in rows) else FINE


def parts_of(
    directories: Sequence[str], topics: Sequence[str], flags: Sequence[str], config: str | None,
    now_ms: int,
) -> list[PlannedPart]:  # fmt: skip
    """The compacted partitions. NothingThere, ConfigError, DiskError."""
    from pipeline.sources.log_views import views_in
    from storage.posix import real_env
    from storage.retention.limits import cleaning_limits_of

    fs = real_env().fs
    found = partitions_in(fs, directories, topics)
    folders = {each.directory for each in found}
    settings = {each: TopicSettings(fs, each, flags, config) for each in folders}
    views = {view.directory: view for view in views_in(directories, topics)}
    parts = []
    for each in found:
        topic = settings[each.directory].of(each.name.topic)
        if "compact" in topic.cleanup_policy:
            parts.append(PlannedPart(each, views[each.path], cleaning_limits_of(topic), now_ms))
    return parts


def plan_part(part: PlannedPart) -> dict[str, Any]:
    """The work that is due in one partition. Runs in a worker."""
    from pipeline.directories.compaction_facts import cleaning_facts
    from pipeline.transforms.compaction import survivors
    from storage.posix import real_env
    from storage.retention.cleanability import judge

    verdict = judge(cleaning_facts(real_env().fs, part.partition), part.limits, part.now_ms)
    stays = survivors(read_keys(part.view), verdict.first_uncleanable)
    return {
        "topic": part.view.topic,
        "partition": part.view.partition,
        "dirty_ratio": round(verdict.dirty_ratio, 4),
        "is_due": verdict.is_eligible,
        "because": str(verdict.because),
        "delay_ms": verdict.delay_ms,
        "deadline_ms": None if verdict.deadline_ms < 0 else verdict.deadline_ms,
        "first_dirty": verdict.first_dirty,
        "first_uncleanable": verdict.first_uncleanable,
        **stays.as_json(),
    }


def read_keys(
    view: "PartitionView", *, is_committed: bool = True, with_content: bool = False
) -> Any:
    """Offset, key and size of every record of a partition, as a table; `with_content`: digests."""
    from pipeline.sources.bounds import EVERYTHING, OffsetBounds, Range
    from pipeline.sources.file_plan import plan_partition
    from pipeline.sources.reading import read_task
    from pipeline.transforms.compaction import CONTENT, READ, keyed

    assert view.directory is not None
    bounds: OffsetBounds = replace(
        EVERYTHING, offsets=Range(view.start_offset, view.end_offset - 1)
    )
    chunks = plan_partition(view, bounds, is_committed=is_committed)
    return keyed(read_task(tuple(chunks), CONTENT if with_content else READ))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    deadline = row["deadline_ms"]
    return (
        f"{row['topic']}-{row['partition']}",
        f"{row['dirty_ratio']:.0%}",
        span(row["delay_ms"]) if row["delay_ms"] else "-",
        "-" if deadline is None else second(deadline),
        number(row["records"]),
        number(row["kept"]),
        number(row["tombstones"]),
        size(row["freed_bytes"]),
        row["because"],
    )
