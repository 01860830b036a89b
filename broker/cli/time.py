"""`horolog time`: from times to offsets and back, who sent bad times, and how late records come."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminPort, Answer, live, print_json
from broker.cli.time_arguments import TimesCommand, exactly, when
from config.quantities import NOTHING

CLOCKS = click.Choice(("record", "arrival", "earlier"))
BAR = 24  # characters of a histogram's longest bar
LOOKUP = (">partition", ">offset", "record time", "arrival", "late")
RANGE = (">partition", ">first offset", ">last offset", ">records", "is that exact?")
ANONYMOUS = "ANONYMOUS"
DIRTY = ("client", "address", "where", ">records", "reason", "action", "worst time")


@click.group("time", no_args_is_help=False)
def command() -> None:
    """Search a topic by time, and see whose times are bad.

    A time is ISO-8601 (UTC without a zone), milliseconds since 1970, now, or from now: -2h, -7d.
    Three clocks can be asked: record (what a record claims), arrival (when it came), earlier (the
    earlier of both, which a time in the future cannot mislead).
    """


def _clock(command: Callable[..., int]) -> Callable[..., int]:
    found: Callable[..., int] = click.option(
        "--clock", type=CLOCKS, default="record", show_default=True, help="Clock to search by."
    )(command)
    return found


def _partition(command: Callable[..., int]) -> Callable[..., int]:
    found: Callable[..., int] = click.option(
        "--partition", metavar="N", type=click.IntRange(0), help="Show this partition only."
    )(command)
    return found


@command.command(
    "lookup", cls=TimesCommand, short_help="Show the first offsets at or after a time."
)
@click.argument("topic")
@click.argument("timestamp", metavar="TIME")
@_clock
@_partition
@live
def lookup(
    port: AdminPort, topic: str, timestamp: str, *, clock: str, partition: int | None, as_json: bool
) -> int:
    """Show the first offset of each partition at or after TIME, with both times of its record.

    \b
    horolog time lookup events -2h
    horolog time lookup events 2026-01-31T12:00:00Z --clock arrival
    """
    answer = port.of_topic(
        topic, "time/lookup", timestamp=timestamp.strip(), clock=clock, partition=partition
    )
    if as_json:
        return print_json(answer)
    return _show(
        f"The first records of {topic} at or after {exactly(answer['timestamp'])}, by the "
        f"{answer['clock']} clock",
        LOOKUP,
        [_found(each) for each in answer["partitions"]],
    )


@command.command("range", cls=TimesCommand, short_help="Count the records between two times.")
@click.argument("topic")
@click.argument("from_time", metavar="FROM")
@click.argument("to_time", metavar="TO")
@_clock
@_partition
@live
def time_range(
    port: AdminPort,
    topic: str,
    from_time: str,
    to_time: str,
    *,
    clock: str,
    partition: int | None,
    as_json: bool,
) -> int:
    """Show the records from FROM to before TO: offsets and count, or proof that there are none.

    \b
    horolog time range events -3h -2h
    horolog time range events 2026-01-31 2026-02-01 --clock arrival
    """
    times = {"from": from_time.strip(), "to": to_time.strip()}
    answer = port.of_topic(topic, "time/range", clock=clock, partition=partition, **times)
    if as_json:
        return print_json(answer)
    return _show(
        f"{topic} from {exactly(answer['from'])} to before {exactly(answer['to'])}, by the "
        f"{answer['clock']} clock",
        RANGE,
        [_between(each) for each in answer["partitions"]],
    )


@command.command("skew", short_help="Show how late records arrived.")
@click.argument("topic")
@_partition
@live
def skew(port: AdminPort, topic: str, *, partition: int | None, as_json: bool) -> int:
    """Show how late the records of TOPIC arrived: arrival minus record time, as a histogram.

    Computed from the zone maps alone, so each record counts with the least and the greatest delay
    that it can have had. A negative delay means a record time after the arrival.
    """
    answer = port.of_topic(topic, "time/skew", partition=partition)
    if as_json:
        return print_json(answer)
    for state in answer["partitions"]:
        _show_skew(topic, state)
    return 0


@command.command("dirty", short_help="List clients that sent records with bad times.")
@click.argument("topic", required=False)
@click.option("--limit", metavar="N", type=click.IntRange(1, 1000), default=50, show_default=True)
@live
def dirty(port: AdminPort, topic: str | None, *, limit: int, as_json: bool) -> int:
    """List clients that sent records with bad times (to TOPIC), how wrong, and the outcome.

    Counted since the broker started; most records first.
    """
    answer = port.get("/api/dirty", topic=topic, limit=limit)
    if as_json:
        return print_json(answer)
    clients = answer["clients"]
    if not clients:
        click.echo(f"No client has sent bad times{f' to {topic}' if topic else ''}.")
        return 0
    more = answer["clients_in_all"] - len(clients)
    _show("Clients that sent bad times, most records first", DIRTY, map(_client, clients))
    if more > 0 or answer["forgotten_entries"]:
        click.echo(f"... {more} more; {answer['forgotten_entries']} were forgotten, oldest first")
    return 0


def _show(title: str, columns: Sequence[str], rows: "Sequence[Sequence[str]] | map[Any]") -> int:
    from broker.cli.tables import TablePage

    page = TablePage()
    page.line(title)
    page.table(columns, rows)
    return 0


def _found(state: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import span

    found = state["found"]
    if found is None:
        return str(state["partition"]), NOTHING, "none: all records are earlier", "", ""
    record, arrival = found["record_time"], found["arrival_time"]
    late = span(arrival["ms"] - record["ms"]) if record and arrival else NOTHING
    came = exactly(arrival) + (" (about)" if found["arrival_is_estimated"] else "")
    return str(state["partition"]), str(found["offset"]), exactly(record), came, late


def _between(state: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number

    if state["is_empty"]:
        return str(state["partition"]), NOTHING, NOTHING, "0", "yes: no record is there"
    count, doubts = number(state["records"]), []
    if not state["is_exact"]:
        count += f" to {number(state['records_at_most'])}"
        doubts.append("no: too much to read")
    if state["doubtful"]:
        doubts.append(f"{number(state['doubtful'])} may be on either side")
    if state["estimated"]:
        doubts.append(f"{number(state['estimated'])} by estimate")
    first, last = str(state["first_offset"]), str(state["last_offset"])
    return str(state["partition"]), first, last, count, "; ".join(doubts) or "yes"


def _client(client: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number

    offset = client["first_offset"]
    where = f"{client['topic']}-{client['partition']}" + ("" if offset is None else f" @{offset}")
    return (
        _sender(client),
        client["address"],
        where,
        number(client["count"]),
        f"{client['direction']}, {client['reason']}",
        client["action"],
        when(client["worst_timestamp"]),
    )


def _sender(client: Mapping[str, Any]) -> str:
    """The client, and its user where it has one."""
    user = str(client["principal"]).removeprefix("User:")
    return client["client_id"] if user == ANONYMOUS else f"{client['client_id']} of {user}"


def _show_skew(topic: str, state: Answer) -> None:
    from config.quantities import number, span

    records = state["records"]
    unknown = state["unknown_records"]
    rest = f"; {number(unknown)} more have no time or lost their arrival" if unknown else ""
    title = f"{topic}-{state['partition']}: {number(records)} records{rest}"
    if not records:
        click.echo(title)
        return
    title += (
        f". Least late: {span(state['least_ms'])} (zone at {state['earliest_zone_offset']}), "
        f"latest: {span(state['most_ms'])} (zone at {state['latest_zone_offset']})"
    )
    largest = max(max(_counts(each)) for each in state["buckets"])
    rows = []
    for bucket in state["buckets"]:
        up_to = "longer" if bucket["up_to_ms"] is None else f"up to {span(bucket['up_to_ms'])}"
        least, most = _counts(bucket)
        if least or most:
            bar = "#" * round(BAR * least / largest), "#" * round(BAR * most / largest)
            rows.append((up_to, number(least), bar[0], number(most), bar[1]))
    _show(title, ("late", ">at least", "", ">at most", ""), rows)


def _counts(bucket: Mapping[str, int]) -> tuple[int, int]:
    return bucket["records_by_least"], bucket["records_by_most"]
