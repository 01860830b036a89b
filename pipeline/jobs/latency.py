"""`horolog spark latency`: how long records take to the broker, and how long at the most."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from config.quantities import number, second, span
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.durations import Duration
from pipeline.cli.options import Part, partition_parts, read_options, reading, tier_options
from pipeline.cli.run import run_all
from pipeline.cli.terminal import ALARM, FINE, named_errors, print_json, print_table
from pipeline.errors import BadOption
from pipeline.transforms.latency import READ, TopicLatency, merged
from pipeline.transforms.time_audit import AuditBounds

if TYPE_CHECKING:
    from pipeline.engine.engine import Engine

COLUMNS = (
    "topic", ">records", ">p50", ">p99", ">p999", ">max", ">max latency", ">left out", ">unknown",
)  # fmt: skip


@click.command("latency", short_help="Measure how long records take to reach the broker.")
@reading
@click.option(
    "--share",
    type=float,
    default=1.0,
    show_default=True,
    help="Share of the records to cover, above 0 up to 1.",
)
@click.option(
    "--behind",
    type=Duration(),
    default="1d",
    show_default=True,
    help="Leave out records further behind: old data, loaded later.",
)
@click.option(
    "--ahead",
    type=Duration(),
    default="1h",
    show_default=True,
    help="Leave out records with times further ahead.",
)
@click.option("--limit", type=Duration(), metavar="TIME", help="Exit with 10 above this latency.")
@click.option("--html", metavar="FILE", help="Write a report with a plot, in one file.")
def command(
    *, log_dirs: str | None, bootstrap: str | None, command_config: str | None, tier: str | None,
    allow_http: bool, topics: tuple[str, ...], engine: str, master: str | None, as_json: bool,
    share: float, behind: int, ahead: int, limit: int | None, html: str | None,
) -> int:  # fmt: skip
    """Measure the time from record time to arrival at the broker, and its maximum.

    The maximum is MaxLatencyOfCluster of KIP-33, an input of `failover`: with --share 1 the largest
    latency seen, else the smallest that covers this share of the records. Records further back than
    --behind (old data, loaded later) and records with bad times are left out.
    """
    bounds = AuditBounds(ahead, behind, time.time_ns() // 1_000_000)
    if not 0 < share <= 1:
        raise BadOption("--share is a number above 0, at most 1")
    with named_errors():
        where = tier_options(tier, allow_http=allow_http)
        parts = partition_parts(read_options(log_dirs, bootstrap, topics, command_config, **where))
        with choose_engine(engine, "latency", master=master) as chosen:
            found = measure(chosen, parts, bounds)
    rows = [each.as_json(share) for each in found]
    worst = max((row["max_latency_ms"] or 0 for row in rows), default=0)
    if html is not None:
        from pipeline.reports.latency import write_report

        write_report(html, found)
    if as_json:
        print_json({"share": share, "max_latency_ms": worst, "topics": rows})
    else:
        print_table(COLUMNS, [_cells(row) for row in rows])
        if rows and rows[0]["hours"]:
            slow = max(
                ((row["topic"], hour) for row in rows for hour in row["hours"]),
                key=lambda pair: pair[1]["p99"],
            )
            click.echo(
                f"The slowest hour: {second(slow[1]['hour_ms'])}, {slow[0]}, "
                f"p99 {span(slow[1]['p99'])}"
            )
    return ALARM if limit is not None and worst > limit else FINE


def measure(engine: "Engine", parts: Sequence[Part], bounds: AuditBounds) -> list[TopicLatency]:
    """The latencies of each topic."""
    return merged(run_all(engine, partial(measure_part, bounds=bounds), parts, "partitions"))


def measure_part(part: Part, bounds: AuditBounds) -> TopicLatency:
    """The latencies of one partition. Runs in a worker."""
    from pipeline.sources.reading import read_task

    latency = TopicLatency(part.view.topic)
    for batch in read_task(part.chunks, READ):
        latency.add(batch, bounds)
    return latency


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    found = row["latency_ms"]
    return (
        row["topic"],
        number(row["records"]),
        *(_span(found[name]) for name in ("p50", "p99", "p999")),
        _span(row["max_ms"]),
        _span(row["max_latency_ms"]),
        number(row["outside"]),
        number(row["unknown"]),
    )


def _span(ms: int | None) -> str:
    return "-" if ms is None else span(ms)
