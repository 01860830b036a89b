"""`horolog spark lag`: how far groups are behind, in records and in time, and until when."""

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from config.quantities import number, span
from pipeline.cli.durations import Duration
from pipeline.cli.options import client_settings, partition_parts, read_options
from pipeline.cli.terminal import ALARM, FINE, named_errors, print_json, print_table, progress
from pipeline.directories.log_files import refuse_stores
from pipeline.transforms.group_offsets import TOPIC, Commits, Committed, apply, rate
from pipeline.transforms.lag import Lag

if TYPE_CHECKING:
    from pipeline.sources.options import ReadOptions
    from pipeline.sources.partition_view import PartitionView

COLUMNS = (
    "group",
    "partition",
    ">records",
    ">behind",
    ">record time",
    ">caught up in",
    ">lost",
    ">beyond",
)
RATE_WINDOW_MS = 600_000


class Unread(NamedTuple):
    """Arrival of a record and the time that it claims; in ms, None: not known."""

    arrival_ms: int | None
    claimed_ms: int | None


@click.command("lag", short_help="Show the lag of groups, in records and in time.")
@click.option(
    "--log-dirs",
    metavar="DIR[,DIR]",
    required=True,
    help="Data directories to read, comma-separated.",
)
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    help="Broker at work on the directories, for current log ends.",
)
@client_settings()
@click.option("--group", "groups", multiple=True, help="Show this group only; may be repeated.")
@click.option("--topic", "topics", multiple=True, help="Show this topic only; may be repeated.")
@click.option("--now", "now_ms", type=int, metavar="MS", help="Time to judge by (default: now).")
@click.option(
    "--limit", type=Duration(), metavar="TIME", help="Exit with 10 when a group is further behind."
)
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, log_dirs: str, bootstrap: str | None, command_config: str | None,
    groups: tuple[str, ...], topics: tuple[str, ...],
    now_ms: int | None, limit: int | None, as_json: bool,
) -> int:  # fmt: skip
    """Show how far each group is behind, in records and in time, and when it will have caught up.

    The lag in time is the time since the arrival of the first unread record, by the zone map (an
    upper bound in the active segment); beside it is the age by record time. The rates come from the
    group's last commits and from the records of the last ten minutes. A running broker without
    --bootstrap is seen as of its last checkpoint.

    A commit beyond the log's end is reported as well: the topic was created again or has lost its
    end, and the group will not read new records below that offset.

    Exit status: 10 when, with --limit, a group is further behind than that, or when what it has
    committed is beyond the end that a broker reports.
    """
    moment = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    with named_errors():
        refuse_stores(log_dirs.split(","))
        commits = read_commits(log_dirs, bootstrap, command_config)
        wanted = {
            place: known
            for place, known in commits.items()
            if (not groups or place.group in groups) and (not topics or place.topic in topics)
        }
        found = lags(wanted, log_dirs, bootstrap, moment, command_config)
    if as_json:
        print_json({"now_ms": moment, "lags": [each.as_json() for each in found]})
    else:
        print_table(COLUMNS, [_cells(each) for each in found])
    is_late = limit is not None and any(each.is_alarming(limit) for each in found)
    return ALARM if is_late else FINE


def read_commits(
    log_dirs: str, bootstrap: str | None = None, command_config: str | None = None
) -> Commits:
    """The commits of all groups. NothingThere without any."""
    import pyarrow as pa

    from pipeline.decode.schemas import RECORDS
    from pipeline.sources.reading import read_task

    schema = pa.schema([RECORDS.field("key"), RECORDS.field("value")])
    commits: Commits = {}
    for part in partition_parts(
        read_options(log_dirs, bootstrap, [TOPIC], command_config, isolationLevel="read_committed")
    ):
        for batch in read_task(part.chunks, schema):
            keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            apply(commits, zip(keys, values, strict=True))
    return commits


def lags(
    commits: Commits, log_dirs: str, bootstrap: str | None, now_ms: int,
    command_config: str | None = None,
) -> list[Lag]:  # fmt: skip
    """Of each group and partition that is there, those furthest behind first."""
    from pipeline.sources.settled_views import views_there

    names = sorted({place.topic for place in commits})
    if not names:
        return []
    options = read_options(log_dirs, bootstrap, names, command_config)
    views = {(view.topic, view.partition): view for view in views_there(options)}
    found = []
    with progress("partitions", len(commits)) as done:
        for place, known in commits.items():
            view = views.get((place.topic, place.partition))
            if view is not None:
                found.append(_lag(options, place.group, view, known, now_ms))
            done(1)
    return sorted(found, key=lambda each: (-(each.behind_ms or 0), -each.records, -each.beyond))


def _lag(
    options: "ReadOptions", group: str, view: "PartitionView", known: Iterable[Committed],
    now_ms: int,
) -> Lag:  # fmt: skip
    from pipeline.directories.segment_facts import arrived_after
    from storage.posix import real_env

    commits = list(known)
    committed = commits[-1].offset
    first = max(committed, view.start_offset)
    unread = first_unread(options, view, first)
    arrival, record = (None, None) if unread is None else (unread.arrival_ms, unread.claimed_ms)
    if unread is not None and arrival is None and view.directory is not None:
        arrival = arrived_after(real_env().fs, view.directory, first)
    return Lag(
        group,
        view.topic,
        view.partition,
        committed,
        view.end_offset,
        max(0, view.end_offset - first),
        None if arrival is None else max(0, now_ms - arrival),
        None if record is None else now_ms - record,
        rate(commits),
        _produced(options, view, now_ms),
        max(0, view.start_offset - committed),
        max(0, committed - view.end_offset),
        bool(view.leader),
    )


def first_unread(options: "ReadOptions", view: "PartitionView", offset: int) -> Unread | None:
    """The first record from `offset` on; None where there is none, markers of transactions only."""
    import pyarrow as pa

    from pipeline.decode.schemas import ALL_COLUMNS
    from pipeline.sources.bounds import EVERYTHING, Range
    from pipeline.sources.planning import chunks_of
    from pipeline.sources.reading import read_chunk

    schema = pa.schema([ALL_COLUMNS.field(name) for name in ("appendTime", "timestampMs")])
    if offset >= view.end_offset:
        return None
    for chunk in chunks_of(options, view, Range(offset, view.end_offset - 1), EVERYTHING):
        for batch in read_chunk(chunk, schema):
            micros = batch.column("appendTime").cast(pa.int64())[0].as_py()
            claimed = batch.column("timestampMs")[0].as_py()
            return Unread(
                None if micros is None else micros // 1000, claimed if claimed >= 0 else None
            )
    return None


def _produced(options: "ReadOptions", view: "PartitionView", now_ms: int) -> float | None:
    """Records a second that arrived in the last minutes, by the zones."""
    from pipeline.sources.bounds import ANY, OffsetBounds, Range
    from pipeline.sources.planning import chunks_of

    bounds = OffsetBounds(arrivals=Range(low=now_ms - RATE_WINDOW_MS))
    if view.directory is None:
        return None
    chunks = chunks_of(options, view, ANY.within(Range(0, view.end_offset - 1)), bounds)
    count = sum(
        min(chunk.selection.last_offset, view.end_offset - 1) - chunk.selection.first_offset + 1
        for chunk in chunks
    )
    return count / (RATE_WINDOW_MS / 1000)


def _cells(lag: Lag) -> tuple[str, ...]:
    soon = lag.catches_up_ms
    row: dict[str, Any] = {"arrival": lag.by_arrival_ms, "record": lag.by_record_ms}
    return (
        lag.group,
        f"{lag.topic}-{lag.partition}",
        number(lag.records),
        *("-" if ms is None else span(ms) for ms in row.values()),
        "never, or unknown" if soon is None else span(soon),
        number(lag.lost),
        number(lag.beyond),
    )
