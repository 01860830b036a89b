"""`horolog spark pinned`: which segments are past their time and still here, and until when.

Needs neither Spark nor Java nor a broker: a few bytes of each segment say it all.
"""

import time
from collections.abc import Sequence
from typing import Any

import click

from config.quantities import number, second, size, span
from pipeline.cli.terminal import ALARM, FINE, named_errors, print_json, print_table, progress
from pipeline.directories.partitions import LocalPartition, partitions_in
from pipeline.directories.segment_facts import find_record, partition_facts
from pipeline.directories.topic_settings import TopicSettings
from pipeline.transforms.pinned import Pinned, judge_pinned
from storage.env import FileSystem
from storage.retention.limits import limits_of
from storage.retention.plan import RetentionClock, RetentionLimits

COLUMNS = ("partition", ">pinned", ">bytes", ">overdue", "behind", "record", "until", ">by arrival")
SHOWN_KEY = 40


@click.command("pinned", short_help="Show segments past retention that an older one retains.")
@click.option(
    "--log-dirs",
    metavar="DIR[,DIR]",
    required=True,
    help="Data directories to read, comma-separated.",
)
@click.option("--topic", "topics", multiple=True, help="Show this topic only; may be repeated.")
@click.option(
    "--clock",
    type=click.Choice([each.value for each in RetentionClock]),
    help="Clock to judge by, in place of the topic's horolog.retention.clock.",
)
@click.option(
    "--set",
    "flags",
    metavar="KEY=VALUE",
    multiple=True,
    help="Setting of the broker by its key; may be repeated.",
)
@click.option("--config", metavar="FILE", help="Settings file of the broker.")
@click.option("--now", "now_ms", type=int, metavar="MS", help="Time to judge by (default: now).")
@click.option(
    "--limit-bytes",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Number of pinned bytes without an alarm.",
)
@click.option(
    "--limit-ms",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Time that a segment may be overdue without an alarm.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *,
    log_dirs: str,
    topics: tuple[str, ...],
    clock: str | None,
    flags: tuple[str, ...],
    config: str | None,
    now_ms: int | None,
    limit_bytes: int,
    limit_ms: int,
    as_json: bool,
) -> int:
    """Show segments that are past retention but still here, the record that pins them, and until
    when.

    Retention stops at the oldest segment that stays, so one record of the far future retains its
    segment and all later ones. Shown for each partition: pinned segments and bytes, for how long
    they have been overdue, the segment and the record in the way, until when, and what would be
    removed at once if age were measured from arrival (horolog.retention.clock=arrival).

    Exit status: 10 when more than --limit-bytes are pinned and a segment is overdue for longer than
    --limit-ms. A broker may be at work in the directories; those of a Kafka are judged by record
    time.
    """
    from storage.posix import real_env

    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    with named_errors():
        rows = survey(
            real_env().fs, log_dirs.split(","), topics, moment, clock=clock, flags=flags,
            file=config,
        )  # fmt: skip
    held = sum(row["held_bytes"] for row in rows)
    worst = max((row["overdue_ms"] for row in rows), default=0)
    alarm = held > limit_bytes and worst > limit_ms
    if as_json:
        print_json({"now_ms": moment, "held_bytes": held, "alarm": alarm, "partitions": rows})
    else:
        _show(rows, held)
    return ALARM if alarm else FINE


def survey(
    fs: FileSystem,
    directories: Sequence[str],
    topics: Sequence[str],
    now_ms: int,
    *,
    clock: str | None = None,
    flags: Sequence[str] = (),
    file: str | None = None,
) -> list[dict[str, Any]]:
    """The pinned segments of each partition, the most bytes first. Raises as `named_errors`."""
    found = partitions_in(fs, directories, topics)
    settings = {each: TopicSettings(fs, each, flags, file) for each in {p.directory for p in found}}
    rows = []
    with progress("partitions", len(found)) as done:
        for partition in found:
            limits = limits_of(settings[partition.directory].of(partition.name.topic))
            if clock is not None:
                limits = limits._replace(clock=RetentionClock(clock))
            rows.append(_row(fs, partition, limits, now_ms))
            done(1)
    return sorted(rows, key=lambda row: -row["held_bytes"])


def _row(
    fs: FileSystem, partition: LocalPartition, limits: RetentionLimits, now_ms: int
) -> dict[str, Any]:
    facts = partition_facts(fs, partition.path, partition.start_offset)
    pinned = judge_pinned(facts.segments, facts.log, limits, now_ms)
    topic, number_ = partition.name
    return {
        "topic": topic,
        "partition": number_,
        "clock": str(limits.clock),
        "retention_ms": limits.retention_ms,
        **pinned._asdict(),
        "record": _record(fs, partition, pinned),
    }


def _record(fs: FileSystem, partition: LocalPartition, pinned: Pinned) -> dict[str, Any] | None:
    if pinned.blocker_base is None or pinned.blocker_time_ms is None:
        return None
    found = find_record(fs, partition.path, pinned.blocker_base, pinned.blocker_time_ms)
    if found is None:
        return None
    key = None if found.key is None else found.key[:SHOWN_KEY].decode("utf-8", "backslashreplace")
    return {**found._asdict(), "key": key}


def _show(rows: Sequence[dict[str, Any]], held: int) -> None:
    shown = [row for row in rows if row["held_segments"]]
    if not shown:
        click.echo(f"Nothing is pinned: {number(len(rows))} partitions.")
        return
    print_table(COLUMNS, [_cells(row) for row in shown])
    click.echo(
        f"{size(held)} are pinned in {number(len(shown))} of {number(len(rows))} partitions. "
        "horolog.retention.clock=earlier (or arrival) on the topic lets them go."
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    record = row["record"]
    what = "-"
    if record is not None:
        what = f"{record['offset']} of {second(record['timestamp_ms'])}"
    return (
        f"{row['topic']}-{row['partition']}",
        f"{row['held_segments']} of {row['segments']}",
        size(row["held_bytes"]),
        span(row["overdue_ms"]),
        str(row["blocker_base"]),
        what,
        "never" if row["until_ms"] is None else second(row["until_ms"]),
        size(row["arrival_bytes"]),
    )
