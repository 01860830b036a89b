"""`horolog spark audit-time`: whose clocks are wrong, how late records come, what it costs."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from config.quantities import number, second, span
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.durations import Duration
from pipeline.cli.options import Part, partition_parts, read_options, reading, tier_options
from pipeline.cli.run import run_all
from pipeline.cli.terminal import ALARM, FINE, named_errors, print_json, print_table
from pipeline.transforms.time_audit import (
    READ,
    AuditBounds,
    PartitionAudit,
    Wrote,
    by_client,
    writers_of,
)

if TYPE_CHECKING:
    from pipeline.engine.engine import Engine

COLUMNS = (
    "partition", ">records", ">outliers", ">skew p50", ">p99", ">max", ">late", ">watermark",
    "time index",
)  # fmt: skip
SHOWN = 5
_FEW = 10
"""A time index with less than this share of the offset index' entries was blinded."""


class IndexHealth(NamedTuple):
    """The time indexes of a partition beside its offset indexes."""

    time_entries: int
    offset_entries: int
    blinded_segments: int
    """With many offset entries and hardly a time: one time of the future hides all after it."""


@dataclass(frozen=True, slots=True)
class Audited:
    """Findings of a worker about one partition."""

    audit: PartitionAudit
    health: IndexHealth | None


@click.command("audit-time", short_help="Report producers with wrong clocks, and late records.")
@reading
@click.option(
    "--ahead",
    type=Duration(),
    default="1h",
    show_default=True,
    help="Times further ahead of the arrival are outliers.",
)
@click.option(
    "--behind",
    type=Duration(),
    default="7d",
    show_default=True,
    help="Times further behind the arrival are outliers.",
)
@click.option(
    "--audit-topic", metavar="TOPIC", help="Audit topic of the broker (horolog.audit.topic)."
)
@click.option(
    "--limit",
    type=int,
    default=0,
    show_default=True,
    help="Exit with 10 above this number of outliers.",
)
@click.option("--html", metavar="FILE", help="Write a report with plots, in one file.")
def command(
    *, log_dirs: str | None, bootstrap: str | None, command_config: str | None, tier: str | None,
    allow_http: bool, topics: tuple[str, ...], engine: str, master: str | None, as_json: bool,
    ahead: int, behind: int, audit_topic: str | None, limit: int, html: str | None,
) -> int:  # fmt: skip
    """Report records with wrong times, how late records arrive, and which watermark suffices.

    For each partition and producer: arrival minus claimed time (below zero: ahead of the broker),
    records outside of the bounds with what they look like, how far records are behind the latest
    time before them, and the watermark that loses at most one in a thousand. Segments whose time
    index is useless because of one time in the future are counted. --audit-topic adds the clients'
    names and addresses to the outliers.

    Exit status: 10 when more records than --limit are outliers.
    """
    bounds = AuditBounds(ahead, behind, time.time_ns() // 1_000_000)
    with named_errors():
        where = tier_options(tier, allow_http=allow_http)
        parts = partition_parts(read_options(log_dirs, bootstrap, topics, command_config, **where))
        with choose_engine(engine, "audit-time", master=master) as chosen:
            audited = audit(chosen, parts, bounds)
        wrote = read_audit_stream(log_dirs, bootstrap, audit_topic, command_config, **where)
    rows = [_row(each, wrote) for each in audited]
    clients = _clients(wrote, topics)
    outliers = sum(row["outliers"] for row in rows)
    answer = {"outliers": outliers, "alarm": outliers > limit, "partitions": rows}
    if audit_topic is not None:
        answer["clients"] = clients
    if html is not None:
        from pipeline.reports.time_audit import write_report

        write_report(html, [each.audit for each in audited], answer)
    if as_json:
        print_json(answer)
    else:
        _show(rows, clients)
    return ALARM if outliers > limit else FINE


def audit(engine: "Engine", parts: Sequence[Part], bounds: AuditBounds) -> list[Audited]:
    """The times of each partition, in order of their names."""
    found = run_all(engine, partial(audit_part, bounds=bounds), parts, "partitions")
    return sorted(found, key=lambda each: (each.audit.topic, each.audit.partition))


def audit_part(part: Part, bounds: AuditBounds) -> Audited:
    """The times of one partition. Runs in a worker."""
    from pipeline.sources.reading import read_task

    audit = PartitionAudit(part.view.topic, part.view.partition)
    for batch in read_task(part.chunks, READ):
        audit.add(batch, bounds)
    directory = part.view.directory
    return Audited(audit, None if directory is None else index_health(directory))


def index_health(directory: str) -> IndexHealth:
    """The closed segments of a partition's directory, by the sizes of their index files."""
    from pipeline.directories.log_files import FILES
    from storage.files.layout import OFFSET_INDEX, TIME_INDEX, segment_name
    from storage.files.partition_listing import look_at
    from storage.index.offset_index import OffsetIndex
    from storage.index.time_index import TimeIndex

    sizes = {entry.name: entry.size_bytes for entry in FILES.list_dir(directory)}
    times = offsets = blinded = 0
    for base in look_at(FILES, directory).bases[:-1]:
        time_count = sizes.get(segment_name(base, TIME_INDEX), 0) // TimeIndex.ENTRY_BYTES
        offset_count = sizes.get(segment_name(base, OFFSET_INDEX), 0) // OffsetIndex.ENTRY_BYTES
        times, offsets = times + time_count, offsets + offset_count
        blinded += offset_count >= _FEW and time_count * _FEW < offset_count
    return IndexHealth(times, offsets, blinded)


def read_audit_stream(
    log_dirs: str | None,
    bootstrap: str | None,
    topic: str | None,
    command_config: str | None = None,
    **where: str,
) -> list[Wrote]:
    """The rows of the broker's audit stream; none without a topic. `where`: of a tier."""
    import pyarrow as pa

    from pipeline.decode.schemas import RECORDS
    from pipeline.sources.reading import read_task

    if topic is None:
        return []
    rows: list[Wrote] = []
    schema = pa.schema([RECORDS.field("value")])
    options = read_options(log_dirs, bootstrap, [topic], command_config, **where)
    for part in partition_parts(options):
        for batch in read_task(part.chunks, schema):
            rows += filter(None, map(_wrote, batch.column("value").to_pylist()))
    return rows


def _wrote(value: bytes | None) -> Wrote | None:
    """A row of the stream; what others have written into the topic is none."""
    try:
        row = json.loads(value or b"")
        first = -1 if row["first"] is None else row["first"]
        last = -1 if row["last"] is None else row["last"]
        return Wrote(
            row["topic"], row["partition"], first, last, row["client_id"], row["address"],
            row["records"], sum(row["dirty"].values()),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _row(found: Audited, wrote: Sequence[Wrote]) -> dict[str, Any]:
    row = found.audit.as_json()
    for side in ("future", "past"):
        for outlier in row[side]:
            writers = writers_of(wrote, row["topic"], row["partition"], outlier["offset"])
            outlier["clients"] = [f"{client}@{address}" for client, address in writers]
    row["time_index"] = None if found.health is None else found.health._asdict()
    return row


def _clients(wrote: Sequence[Wrote], topics: Sequence[str]) -> list[dict[str, Any]]:
    mine = [each for each in wrote if each.topic in topics]
    rows = [
        {"client_id": client, "address": address, **counts}
        for (client, address), counts in by_client(mine).items()
    ]
    return sorted(rows, key=lambda row: (-row["dirty"], -row["records"]))


def _show(rows: Sequence[dict[str, Any]], clients: Sequence[dict[str, Any]]) -> None:
    print_table(COLUMNS, [_cells(row) for row in rows])
    worst = [(row, each) for row in rows for side in ("future", "past") for each in row[side]]
    worst.sort(key=lambda pair: -abs(pair[1]["skew_ms"]))
    for row, each in worst[:SHOWN]:
        who = f", from {' or '.join(each['clients'])}" if each["clients"] else ""
        side = "ahead of" if each["skew_ms"] < 0 else "behind"
        click.echo(
            f"{row['topic']}-{row['partition']} offset {each['offset']}: {second(each['time_ms'])}"
            f" ({each['reason']}), {span(abs(each['skew_ms']))} {side} its arrival{who}"
        )
    for client in clients[:SHOWN]:
        if client["dirty"]:
            click.echo(
                f"{client['client_id']}@{client['address']}: {number(client['dirty'])} bad times "
                f"of {number(client['records'])} records"
            )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    skews = [each["skew_ms"] for each in row["producers"]]
    tops = [each["skew_max_ms"] for each in row["producers"] if each["skew_max_ms"] is not None]
    health = row["time_index"]
    blinded = 0 if health is None else health["blinded_segments"]
    return (
        f"{row['topic']}-{row['partition']}",
        number(row["records"]),
        number(row["outliers"]),
        _worst(skews, "p50"),
        _worst(skews, "p99"),
        span(max(tops)) if tops else "-",
        number(row["late_records"]),
        "-" if row["watermark_ms"] is None else span(row["watermark_ms"]),
        f"{blinded} segments blinded" if blinded else "fine",
    )


def _worst(skews: Sequence[dict[str, Any]], name: str) -> str:
    values = [each[name] for each in skews if each[name] is not None]
    return span(max(values)) if values else "-"
