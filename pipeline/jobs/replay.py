"""`horolog spark replay`: records of a time range into another topic, with the times they have."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from broker.access.settings import IN_THE_CLEAR, ClientSecurity
from config.quantities import number
from pipeline.cli.choose_engine import choose_engine
from pipeline.cli.durations import Duration
from pipeline.cli.options import (
    Part,
    client_settings,
    partition_parts,
    read_options,
    security_options,
    tier_options,
    tier_settings,
)
from pipeline.cli.run import run_all
from pipeline.cli.terminal import FINE, named_errors, print_json, print_table
from pipeline.engine.engine import NATIVE, SPARK
from pipeline.errors import BadOption

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("partition", ">from offset", ">up to", ">records", ">there before")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class ReplayTarget:
    """Target of a replay and the rules of writing to it."""

    bootstrap: str
    topic: str
    compression: str
    keeps_partitions: bool
    records_a_second: float
    """Of each worker's part; 0: as fast as it goes."""
    place: str
    """A folder that remembers how far each partition is; empty: nothing does."""
    allows_loss: bool = False
    """A run continues where the log has lost the next records."""
    security: ClientSecurity = IN_THE_CLEAR


class Replayed(NamedTuple):
    """Counts of what was written of a partition."""

    topic: str
    partition: int
    first: int
    until: int
    records: int
    before: int
    """Records that an earlier run has written, by its notes."""


@click.command("replay", short_help="Write records of a time range to a topic, times kept.")
@click.option("--log-dirs", metavar="DIR[,DIR]", help="Data directories to read, comma-separated.")
@click.option("--bootstrap", metavar="HOST:PORT", help="Broker to read from.")
@client_settings()
@tier_settings
@click.option("--topic", required=True, help="Topic to read.")
@click.option("--from-ms", type=int, metavar="MS", help="First record time, in ms, included.")
@click.option(
    "--until-ms", type=int, metavar="MS", help="End of the record times, in ms, excluded."
)
@click.option(
    "--last",
    type=Duration(),
    metavar="TIME",
    help="Age of the oldest records, in place of --from-ms.",
)
@click.option(
    "--to", "to_bootstrap", metavar="HOST:PORT", required=True, help="Broker to write to."
)
@client_settings("--to-command-config", "--to")
@click.option("--to-topic", metavar="TOPIC", help="Topic to write (default: the same).")
@click.option("--same-partitions", is_flag=True, help="Keep the partition number of each record.")
@click.option("--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option("--rate", type=float, default=0, metavar="N", help="Maximum records per second.")
@click.option(
    "--state", metavar="DIR", help="Folder of the progress; a later run continues from it."
)
@click.option(
    "--allow-loss", is_flag=True, help="Continue after records that retention removed uncopied."
)
@click.option(
    "--allow-log-append-time",
    is_flag=True,
    help="Allow a topic that stamps records with their arrival.",
)
@click.option("--engine", type=click.Choice([NATIVE, SPARK]), default=NATIVE, show_default=True)
@click.option("--master", metavar="URL", help="Spark master (default: this machine).")
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(*, engine: str, master: str | None, as_json: bool, **options: Any) -> int:
    """Write the records of a time range into a topic, with their times, keys and headers.

    For data that is loaded again (`--last 3d`: by the records' own times, whenever they arrived), a
    copy of a topic, a test with real data. The range is exact: every record is judged by its own
    time. A target that stamps records with their arrival is refused, since the times would be lost.

    With --state a stopped run continues where it was; records in flight may then be written twice.
    The state is bound to its target by the topic's id: for another target it starts again. Another
    range for the same target is refused; --last counts from the begin of the first run. Records
    keep their order within a partition.

    Exit status: 3 when records were removed between two runs, before they were copied.
    """
    with named_errors():
        if None not in (options["last"], options["from_ms"]):
            raise BadOption("--last and --from-ms say the same in two ways: give one of them")
        target = _target(options)
        parts = _parts(options, target)
        target = replace(target, records_a_second=options["rate"] / max(1, len(parts)))
        with choose_engine(engine, "replay", master=master) as chosen:
            found = run_all(chosen, partial(replay_part, target=target), parts, "partitions")
    found.sort()
    if as_json:
        total = sum(each.records for each in found)
        print_json({"records": total, "partitions": [each._asdict() for each in found]})
    else:
        print_table(COLUMNS, [_cells(each) for each in found])
    return FINE


def replay_part(part: Part, target: ReplayTarget) -> Replayed:
    """Write the records of one partition. Runs in a worker."""
    from pipeline.sinks.replay_state import Notes
    from pipeline.sinks.topic.writer import TopicWriter
    from protocol.records.compression import Codec

    view, notes = part.view, Notes(target.place, part.view)
    if not target.allows_loss:
        notes.refuse_loss()
    first, count, before = notes.following, 0, notes.records
    at, began = first, time.monotonic()
    codec = Codec[target.compression.upper()]
    writer = TopicWriter(target.bootstrap, target.topic, codec, security=target.security)
    try:
        for batch in _batches(part, first, keeps_partitions=target.keeps_partitions):
            writer.write(batch)
            at = batch.column("offset")[-1].as_py() + 1
            count += batch.num_rows
            notes.keep(at, before + count)
            _pause(count, time.monotonic() - began, target.records_a_second)
    finally:
        writer.close()
    return Replayed(view.topic, view.partition, first, at, count, before)


def _batches(part: Part, first: int, *, keeps_partitions: bool) -> "Iterator[pa.RecordBatch]":
    """The records from `first` on, as the sink wants them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from pipeline.decode.schemas import ALL_COLUMNS
    from pipeline.sources.reading import read_task

    names = ["key", "value", "partition", "offset", "headers", "timestampMs"]
    if not keeps_partitions:
        names.remove("partition")
    schema = pa.schema([ALL_COLUMNS.field(name) for name in names])
    for batch in read_task(part.chunks, schema):
        kept = batch
        if batch.column("offset")[0].as_py() < first:
            kept = batch.filter(pc.greater_equal(batch.column("offset"), first))
        if kept.num_rows:
            yield kept


def _pause(count: int, passed: float, records_a_second: float) -> None:
    """Wait until so many records are due."""
    if records_a_second:
        time.sleep(max(0.0, count / records_a_second - passed))


def _parts(options: dict[str, Any], target: ReplayTarget) -> list[Part]:
    from pipeline.sinks.replay_state import WantedRange, begun

    wanted = WantedRange(
        options["from_ms"], options["until_ms"], options["last"], options["same_partitions"]
    )
    low = begun(target.place, wanted, time.time_ns() // 1_000_000)
    times = {"startingTimestamp": low, "endingTimestamp": options["until_ms"]}
    more = {name: str(ms) for name, ms in times.items() if ms is not None}
    if "startingTimestamp" in more:
        more["startingOffsetsByTimestampStrategy"] = "latest"
    return partition_parts(
        read_options(
            options["log_dirs"], options["bootstrap"], [options["topic"]],
            options["command_config"], isolationLevel="read_committed", **more,
            **tier_options(options["tier"], allow_http=options["allow_http"]),
        )
    )  # fmt: skip


def _target(options: dict[str, Any]) -> ReplayTarget:
    """The target. BadOption for a topic that stamps with arrival, NothingThere for none."""
    from pipeline.leaders import Leaders
    from pipeline.sinks.replay_state import place_of
    from pipeline.spark.topic_sink import sink_options

    topic = options["to_topic"] or options["topic"]
    asked = {
        "bootstrap": options["to_bootstrap"], "topic": topic,
        "compression": options["compression"],
        "allowLogAppendTime": str(options["allow_log_append_time"]),
        **security_options(options["to_command_config"]),
    }  # fmt: skip
    sink = sink_options(asked, ["key", "value", "timestampMs", "headers"])
    if options["bootstrap"] == options["to_bootstrap"] and topic == options["topic"]:
        raise BadOption(f"{topic} would be written into itself: --to-topic names another one")
    to_topic_id = Leaders(options["to_bootstrap"], sink.security).topic_id(topic)
    return ReplayTarget(
        options["to_bootstrap"], topic, options["compression"], options["same_partitions"], 0,
        place_of(
            options["state"] or "", options["to_bootstrap"], topic, to_topic_id, options["topic"]
        ),
        options["allow_loss"], sink.security,
    )  # fmt: skip


def _cells(found: Replayed) -> tuple[str, ...]:
    return (
        f"{found.topic}-{found.partition}",
        number(found.first),
        number(found.until),
        number(found.records),
        number(found.before),
    )
