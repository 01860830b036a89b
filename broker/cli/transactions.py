"""`horolog transactions`: which transactional ids there are, and what one of them holds open."""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminPort, in_path, live, print_json
from broker.cli.time_arguments import exactly
from config.quantities import NOTHING

IDS = ("id", "state", ">producer", ">epoch", ">partitions", "open for", "time-out")
PARTITIONS = ("partition", ">readers stop at", ">end")


@click.command("transactions")
@click.argument("transactional_id", required=False)
@click.option("--open", "only_open", is_flag=True, help="Show only ids with an open transaction.")
@live
def command(
    port: AdminPort, transactional_id: str | None, *, only_open: bool, as_json: bool
) -> int:
    """Show the transactional ids; for TRANSACTIONAL_ID the partitions where it stops readers.

    Readers of committed records stop where the earliest open transaction of a partition began.

    \b
    horolog transactions --open
    horolog transactions billing-1
    """
    if transactional_id is not None:
        answer = port.get(f"/api/transactions/{in_path(transactional_id)}")
        return _one(answer, as_json=as_json)
    answer = port.get("/api/transactions?open=true" if only_open else "/api/transactions")
    if as_json:
        return print_json(answer)
    if answer["loading"]:
        click.echo("Some transactional ids are still being read; ask again.", err=True)
    if not answer["transactions"]:
        click.echo("No transaction is open." if only_open else "There are no transactional ids.")
        return 0
    from broker.cli.tables import TablePage

    page = TablePage()
    page.table(IDS, [_summary(each) for each in answer["transactions"]])
    if answer["next"] is not None:
        page.line(f"... more after {answer['next']}: --json and /api/transactions?after= have them")
    return 0


def _one(answer: Mapping[str, Any], *, as_json: bool) -> int:
    if as_json:
        return print_json(dict(answer))
    from broker.cli.tables import TablePage
    from config.quantities import counted, span

    page = TablePage()
    since = "" if answer["began"] is None else f" since {exactly(answer['began'])}"
    page.line(
        f"{answer['transactional_id']}: {answer['state']}{since}, producer "
        f"{answer['producer_id']} epoch {answer['producer_epoch']}, time-out "
        f"{span(answer['timeout_ms'])}, {counted(answer['partitions'], 'partition')}"
    )
    if answer["partition_states"]:
        page.table(PARTITIONS, [_partition(each) for each in answer["partition_states"]])
    return 0


def _summary(each: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number, span

    return (
        each["transactional_id"],
        each["state"],
        str(each["producer_id"]),
        str(each["producer_epoch"]),
        number(each["partitions"]),
        NOTHING if each["age_ms"] is None else span(max(each["age_ms"], 0)),
        span(each["timeout_ms"]),
    )


def _partition(each: Mapping[str, Any]) -> Sequence[str]:
    stops, end = each["last_stable_offset"], each["high_watermark"]
    place = f"{each['topic']}-{each['partition']}"
    if stops is None:
        return place, "deleted", NOTHING
    return place, str(stops), str(end)
