"""`horolog groups`: which groups there are, how far one is behind, and setting one to a time."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminError, AdminPort, in_path, live, print_json
from broker.cli.time_arguments import exactly
from config.quantities import NOTHING

GROUPS = ("group", "type", "state", ">members", ">partitions", ">records behind")
RESETS = ("partition", ">offset", ">new offset", ">records", "first record there")
PARTITIONS = (
    "partition", ">offset", ">end", ">records behind", "by record time", "by arrival",
    "next record",
)  # fmt: skip


@click.command("groups")
@click.argument("group", required=False)
@click.option(
    "--to-datetime",
    "to",
    metavar="TIME",
    help="Move GROUP to the first offsets at or after this time.",
)
@click.option("--by-arrival", is_flag=True, help="Use arrival time instead of record time.")
@click.option("--topic", help="Move all partitions of this topic, not only those with a commit.")
@click.option(
    "--execute", is_flag=True, help="Commit the new offsets; without it they are only shown."
)
@live
def command(
    port: AdminPort,
    group: str | None,
    *,
    to: str | None,
    by_arrival: bool,
    topic: str | None,
    execute: bool,
    as_json: bool,
) -> int:
    """Show the groups; for GROUP its members and its lag in each partition. Of a share group also
    who holds which records since when, and what waits for its time.

    Lag is given in records and in time: from the record that the group reads next to the newest
    one, by record time and by arrival time. --to-datetime moves GROUP to a time; it must have no
    members then. TIME is ISO-8601, milliseconds, now, or -2h.

    \b
    horolog groups
    horolog groups billing
    horolog groups billing --to-datetime -2h --by-arrival
    horolog groups billing --to-datetime 2026-01-31T12:00:00Z --execute
    """
    if to is None and (by_arrival or execute or topic is not None):
        raise click.UsageError("--by-arrival, --topic and --execute go with --to-datetime")
    if to is not None:
        if group is None:
            raise click.UsageError("--to-datetime wants a GROUP")
        path = f"/api/groups/{in_path(group)}/reset"
        ask = port.post if execute else port.get
        clock = "arrival" if by_arrival else "record"
        return _reset(ask(path, to=to.strip(), clock=clock, topic=topic), as_json=as_json)
    if group is not None:
        answer = port.get(f"/api/groups/{in_path(group)}")
        queue = _queue(port, group) if answer["type"] == "share" else None
        return _one(answer, queue, as_json=as_json)
    answer = port.get("/api/groups")
    if as_json:
        return print_json(answer)
    if answer["loading"]:
        click.echo("Some groups are still being read; ask again.", err=True)
    if not answer["groups"]:
        click.echo("There are no groups.")
        return 0
    from broker.cli.tables import TablePage

    page = TablePage()
    page.table(GROUPS, [_summary(each) for each in answer["groups"]])
    if answer["next"] is not None:
        page.line(f"... more after {answer['next']}: --json and /api/groups?after= have them")
    return 0


def _queue(port: AdminPort, group: str) -> Mapping[str, Any]:
    """Progress of a share group in each partition, and who holds what."""
    try:
        return port.get(f"/api/share-groups/{in_path(group)}")
    except AdminError as error:
        if error.code != "unknown_group":
            raise
    return {"group": group, "sessions": 0, "behind": 0, "partitions": []}


def _one(answer: Mapping[str, Any], queue: Mapping[str, Any] | None, *, as_json: bool) -> int:
    if as_json:
        return print_json(dict(answer) if queue is None else {**answer, "queue": queue})
    from broker.cli.tables import TablePage
    from config.quantities import counted

    page = TablePage()
    since = "" if answer["since"] is None else f" since {exactly(answer['since'])}"
    behind = answer["lag_records"] if queue is None else queue["behind"]
    page.line(
        f"{answer['group']}: {answer['state']}{since}, generation {answer['generation']}, "
        f"{counted(answer['members'], 'member')}, {counted(behind, 'record')} behind"
    )
    for member in answer["member_states"]:
        static = f" (static: {member['instance_id']})" if member["instance_id"] else ""
        leads = ", leads" if member["leads"] else ""
        page.line(f"  {member['client_id']} at {member['client_host'].lstrip('/')}{static}{leads}")
    if queue is None:
        page.table(PARTITIONS, [_partition(each) for each in answer["partitions"]])
        return 0
    from broker.cli.groups.queue_tables import show_queue

    show_queue(page, queue)
    return 0


def _reset(answer: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        return print_json(dict(answer))
    from broker.cli.tables import TablePage
    from config.quantities import counted, number

    page = TablePage()
    done = "is set" if answer["executed"] else "would be set"
    by = "by arrival" if answer["clock"] == "arrival" else "by record time"
    page.line(f"{answer['group']} {done} to {exactly(answer['to'])}, {by}:")
    rows = [
        (
            f"{each['topic']}-{each['partition']}",
            NOTHING if each["offset"] is None else str(each["offset"]),
            str(each["new_offset"]),
            NOTHING if each["records"] is None else number(each["records"]),
            exactly(each["found_time"]) if each["found_time"] else "its end",
        )
        for each in answer["partitions"]
    ]
    page.table(RESETS, rows)
    if answer["members"]:
        page.line(f"It has {counted(answer['members'], 'member')}: stop them before --execute.")
    elif not answer["executed"]:
        page.line("Nothing was changed: --execute does it.")
    return 0


def _summary(group: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number

    counts = (number(group[name]) for name in ("members", "offsets", "lag_records"))
    return group["group"], group["type"], group["state"], *counts


def _partition(state: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number

    lags = (state["lag_record_time_ms"], state["lag_arrival_ms"])
    record, arrival = (NOTHING if each is None else _span(each) for each in lags)
    return (
        f"{state['topic']}-{state['partition']}",
        str(state["offset"]),
        str(state["high_watermark"]),
        number(state["lag_records"]),
        record,
        arrival,
        exactly(state["next_record_time"]) if state["next_record_time"] else NOTHING,
    )


def _span(ms: int) -> str:
    from config.quantities import span

    return span(ms) if ms else "0"
