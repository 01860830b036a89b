"""`horolog spark failover`: where consumers of one cluster go on in another, missing nothing."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from config.quantities import number, second
from pipeline.cli.durations import Duration
from pipeline.cli.options import client_settings, read_options
from pipeline.cli.terminal import ALARM, FINE, named_errors, print_json, print_table, progress
from pipeline.errors import BadOption, DataLost, NothingThere
from pipeline.jobs.lag import read_commits
from pipeline.transforms.failover import (
    Consumed,
    Resume,
    came_after,
    compare,
    reset_plan,
    starting_offsets,
    wanted_from,
)

if TYPE_CHECKING:
    from pipeline.sources.options import ReadOptions
    from pipeline.sources.partition_view import PartitionView
    from pipeline.transforms.group_offsets import Commits

COLUMNS = (
    "partition",
    ">read up to",
    "wanted from",
    ">offset there",
    ">records",
    ">twice",
    ">missed",
)
LOOKED_BACK = 10_000
"""So many of the records that were read last say how late it was."""


class FailoverRow(NamedTuple):
    """A record: the time it claims, one that it did not come before, what a producer gave."""

    claimed_ms: int
    arrived_from_ms: int | None
    mark: bytes
    offset: int


@click.command("failover", short_help="Find offsets for consumers to resume in another cluster.")
@click.option(
    "--from-dirs", metavar="DIR[,DIR]", required=True, help="Data directories of the first cluster."
)
@click.option(
    "--from-bootstrap",
    metavar="HOST:PORT",
    help="Broker of the first cluster, for its current state.",
)
@click.option("--to-dirs", metavar="DIR[,DIR]", help="Data directories of the other cluster.")
@click.option("--to-bootstrap", metavar="HOST:PORT", help="Broker of the other cluster.")
@client_settings("--from-command-config", "--from-bootstrap")
@client_settings("--to-command-config", "--to-bootstrap")
@click.option(
    "--topic", "topics", multiple=True, required=True, help="Topic to fail over; may be repeated."
)
@click.option(
    "--group", metavar="GROUP", help="Consumer group whose committed offsets say what was read."
)
@click.option(
    "--offsets", metavar="JSON", help='Offsets read, in place of --group: {"topic": {"0": 23}}.'
)
@click.option(
    "--max-latency", type=Duration(), required=True,
    help="Largest delay of a record of the first cluster: `horolog spark latency` measures it.",
)  # fmt: skip
@click.option(
    "--max-ahead",
    type=Duration(),
    help="Largest lead of a producer's clock: used where the arrival of a record is unknown.",
)
@click.option(
    "--compare",
    "compares",
    is_flag=True,
    help="Count the records that would be read twice or never.",
)
@click.option(
    "--csv", "csv_file", metavar="FILE", help="Write a file for kafka-consumer-groups --from-file."
)
@click.option("--json", "as_json", is_flag=True, help="Print the exact answer as JSON.")
def command(
    *, from_dirs: str, from_bootstrap: str | None, to_dirs: str | None, to_bootstrap: str | None,
    from_command_config: str | None, to_command_config: str | None,
    topics: tuple[str, ...], group: str | None, offsets: str | None, max_latency: int,
    max_ahead: int | None, compares: bool, csv_file: str | None, as_json: bool,
) -> int:  # fmt: skip
    """Find where a consumer of one cluster resumes in another that gets the same records.

    The offset of a partition is the first whose record time is not before the time of the last
    record read, less the largest latency; times that may be ahead of their arrival do not count.
    Nothing is missed, but some records are read twice: --compare counts them by reading both
    clusters. In Kafka's directories no arrivals are stored: there --max-ahead says how far ahead
    times may be (message.timestamp.after.max.ms, if it was always set); without it every record is
    read again. "offsets" in the answer has the form of Spark's startingOffsets, --csv that of
    Kafka's tool. A running broker without --from-bootstrap is seen as of its last checkpoint.

    Exit status: 10 when the comparison finds a record that would be missed.
    """
    with named_errors():
        committed = {"isolationLevel": "read_committed"}
        first = read_options(from_dirs, from_bootstrap, topics, from_command_config, **committed)
        other = read_options(to_dirs, to_bootstrap, topics, to_command_config, **committed)
        read = _read_up_to(
            topics, offsets, group,
            lambda: read_commits(from_dirs, from_bootstrap, from_command_config),
        )  # fmt: skip
        found = resume(
            first, other, read, max_latency,
            max_ahead_ms=max_ahead, is_group=group is not None, compares=compares,
        )  # fmt: skip
        if csv_file is not None:
            Path(csv_file).write_text(reset_plan([each for _, each in found]), encoding="ascii")
    answer = {
        "max_latency_ms": max_latency,
        "offsets": starting_offsets(each for _, each in found),
        "partitions": [
            {**each._asdict(), "read_up_to": consumed.offset} for consumed, each in found
        ],
    }
    if as_json:
        print_json(answer)
    else:
        print_table(COLUMNS, [_cells(*each) for each in found])
        click.echo(json.dumps(answer["offsets"]))
    return ALARM if any(each.missed for _, each in found) else FINE


def resume(
    first: "ReadOptions", other: "ReadOptions", read: dict[tuple[str, int], int],
    max_latency_ms: int, *, max_ahead_ms: int | None = None, is_group: bool = False,
    compares: bool = False,
) -> list[tuple[Consumed, Resume]]:  # fmt: skip
    """Each partition of the first cluster that was read: how far, and where it goes on.

    Of those that a group has committed nothing of, nothing was read. NothingThere, DataLost.
    """
    from pipeline.sources.planning import views_of

    here = {(view.topic, view.partition): view for view in views_of(first)}
    there = {(view.topic, view.partition): view for view in views_of(other)}
    if is_group:
        read = {place: view.start_offset for place, view in here.items()} | read
    found = []
    with progress("partitions", len(read)) as done:
        for place, offset in sorted(read.items()):
            if place not in here or place not in there:
                raise NothingThere(f"{place[0]}-{place[1]} is not in both clusters")
            _refuse_beyond(here[place], offset)
            consumed = last_read(first, here[place], offset, max_ahead_ms)
            found.append(
                (consumed, _resume(first, other, here[place], there[place], consumed,
                                   max_latency_ms, compares=compares))
            )  # fmt: skip
            done(1)
    return found


def _refuse_beyond(view: "PartitionView", offset: int) -> None:
    """DataLost for an offset that the log does not have, if a broker said where it ends."""
    if view.leader and offset > view.end_offset:
        raise DataLost(
            f"{view} was read up to {offset} and ends at {view.end_offset} now: the topic was made "
            "again, or has lost its end. Nothing is known of what was read; --offsets says from "
            "where on it was not"
        )


def last_read(
    options: "ReadOptions", view: "PartitionView", offset: int, max_ahead_ms: int | None = None
) -> Consumed:
    """The facts about the records before `offset`.

    Records that arrived before the broker's clock went back may have been stamped too late.
    """
    from pipeline.directories.clock_steps import stepped_back_until
    from storage.posix import real_env

    begin = max(view.start_offset, offset - LOOKED_BACK)
    known = begin
    if view.directory is not None:
        known = stepped_back_until(real_env().fs, view.directory, begin)
    rows = (
        (row.claimed_ms, row.arrived_from_ms if row.offset >= known else None)
        for row in _rows(options, view, begin, offset)
    )
    return Consumed(view.topic, view.partition, offset, came_after(rows, max_ahead_ms))


def _resume(  # noqa: PLR0917 - private, called by position
    first: "ReadOptions", other: "ReadOptions", here: "PartitionView", there: "PartitionView",
    consumed: Consumed, max_latency_ms: int, *, compares: bool,
) -> Resume:  # fmt: skip
    from pipeline.sources.planning import first_offset_at

    since = wanted_from(consumed, max_latency_ms)
    offset = there.start_offset
    if since is not None:
        found = first_offset_at(other, there, since)
        offset = there.end_offset if found is None else found
    duplicates = missed = None
    if compares:
        after = list(_rows(other, there, offset, there.end_offset))
        low = min((row.claimed_ms for row in after), default=0)  # what is older came once
        duplicates, missed = compare(
            (row.mark for row in _rows(first, here, here.start_offset, consumed.offset, low)),
            (row.mark for row in _rows(first, here, consumed.offset, here.end_offset)),
            (row.mark for row in _rows(other, there, there.start_offset, offset)),
            (row.mark for row in after),
        )
    return Resume(
        there.topic, there.partition, offset, since, there.end_offset - offset, duplicates, missed
    )


def _rows(
    options: "ReadOptions", view: "PartitionView", first: int, until: int, low_ms: int = -1
) -> Iterator[FailoverRow]:
    """Records from `first` to before `until` whose claimed time is `low_ms` or later."""
    import pyarrow as pa

    from pipeline.decode.schemas import ALL_COLUMNS, ARRIVED_FROM
    from pipeline.sources.bounds import EVERYTHING, Range
    from pipeline.sources.planning import chunks_of
    from pipeline.sources.reading import read_chunk

    names = ("createTimeMs", "key", "value", "offset")
    schema = pa.schema([*(ALL_COLUMNS.field(name) for name in names), ARRIVED_FROM])
    if first >= until:
        return
    for chunk in chunks_of(options, view, Range(first, until - 1), EVERYTHING):
        for batch in read_chunk(chunk, schema):
            columns = [column.to_pylist() for column in batch.columns]
            for claimed, key, value, offset, arrival in zip(*columns, strict=True):
                if claimed >= low_ms:
                    yield FailoverRow(claimed, arrival, _mark(key, value, claimed), offset)


def _mark(*given: object) -> bytes:
    return hashlib.blake2b(repr(given).encode(), digest_size=12).digest()


def _read_up_to(
    topics: Sequence[str], offsets: str | None, group: str | None, commits: "Callable[[], Commits]"
) -> dict[tuple[str, int], int]:
    """By partition: the offset that would have been read next. BadOption, NothingThere."""
    if (group is None) == (offsets is None):
        raise BadOption("--group or --offsets says what was read: one of them")
    if offsets is not None:
        try:
            given: dict[str, dict[str, Any]] = json.loads(offsets)
            return {
                (topic, int(index)): int(at)
                for topic, each in given.items()
                for index, at in each.items()
            }
        except (ValueError, AttributeError, TypeError) as error:
            raise BadOption('--offsets is no JSON like {"topic": {"0": 23}}') from error
    found = {
        (place.topic, place.partition): known[-1].offset
        for place, known in commits().items()
        if place.group == group and place.topic in topics
    }
    if not found:
        raise NothingThere(f"the group {group!r} has committed nothing of {', '.join(topics)}")
    return found


def _cells(consumed: Consumed, found: Resume) -> tuple[str, ...]:
    return (
        f"{found.topic}-{found.partition}",
        number(consumed.offset),
        "the begin" if found.from_ms is None else second(found.from_ms),
        number(found.offset),
        number(found.records),
        *("-" if each is None else number(each) for each in (found.duplicates, found.missed)),
    )
