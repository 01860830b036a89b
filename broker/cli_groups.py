"""`horolog groups`: which groups there are, and how far one is behind, in records and in time."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import click

from broker.cli_admin import AdminPort, live, print_json
from broker.cli_times import NOTHING, exactly

GROUPS = ("group", "state", ">members", ">partitions", ">records behind")
PARTITIONS = (
    "partition", ">offset", ">end", ">records behind", "by record time", "by arrival",
    "next record",
)  # fmt: skip


@click.command("groups")
@click.argument("group", required=False)
@live
def command(port: AdminPort, group: str | None, *, as_json: bool) -> int:
    """The groups of consumers; of GROUP its members, and its lag in each partition.

    Lag is told in records and in time: from the record that the group reads next to the newest
    one, by what records claim and by when they came.

    \b
    horolog groups
    horolog groups billing
    """
    if group is not None:
        return _one(port.get(f"/api/groups/{quote(group, safe='')}"), as_json=as_json)
    answer = port.get("/api/groups")
    if as_json:
        return print_json(answer)
    if answer["loading"]:
        click.echo("Some groups are still being read; ask again.", err=True)
    if not answer["groups"]:
        click.echo("There are no groups.")
        return 0
    from broker.cli_tables import Page

    page = Page()
    page.table(GROUPS, [_summary(each) for each in answer["groups"]])
    if answer["next"] is not None:
        page.line(f"... more after {answer['next']}: --json and /api/groups?after= have them")
    return 0


def _one(answer: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        return print_json(dict(answer))
    from broker.cli_tables import Page, counted

    page = Page()
    since = "" if answer["since"] is None else f" since {exactly(answer['since'])}"
    page.line(
        f"{answer['group']}: {answer['state']}{since}, generation {answer['generation']}, "
        f"{counted(answer['members'], 'member')}, {counted(answer['lag_records'], 'record')} behind"
    )
    for member in answer["member_states"]:
        static = f" (static: {member['instance_id']})" if member["instance_id"] else ""
        leads = ", leads" if member["leads"] else ""
        page.line(f"  {member['client_id']} at {member['client_host'].lstrip('/')}{static}{leads}")
    page.table(PARTITIONS, [_partition(each) for each in answer["partitions"]])
    return 0


def _summary(group: Mapping[str, Any]) -> Sequence[str]:
    from broker.cli_tables import number

    counts = (number(group[name]) for name in ("members", "offsets", "lag_records"))
    return group["group"], group["state"], *counts


def _partition(state: Mapping[str, Any]) -> Sequence[str]:
    from broker.cli_tables import number

    record_ms = state["lag_record_time_ms"]
    return (
        f"{state['topic']}-{state['partition']}",
        str(state["offset"]),
        str(state["high_watermark"]),
        number(state["lag_records"]),
        NOTHING if record_ms is None else _span(record_ms),
        _span(state["lag_arrival_ms"]),
        exactly(state["next_record_time"]) if state["next_record_time"] else NOTHING,
    )


def _span(ms: int) -> str:
    from broker.cli_tables import span

    return span(ms) if ms else "0"
