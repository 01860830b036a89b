"""`horolog queues`: share groups, where each stands, and each record that is not done."""

from collections.abc import Mapping, Sequence

import click

from broker.cli.admin_client import AdminPort, in_path, live, print_json
from broker.cli.groups.redrive import RedriveBounds, redrive


@click.command("queues")
@click.argument("names", nargs=-1, metavar="[redrive] [GROUP]")
@click.option("--records", is_flag=True, help="Show the records of GROUP that are not done.")
@click.option("--topic", help="With --records: of this topic alone.")
@click.option("--partition", type=click.IntRange(0), help="With --records: of this number alone.")
@click.option("--after", metavar="PLACE", help="With --records: go on where a page has ended.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=100,
    show_default=True,
    help="With --records: ranges shown.",
)
@click.option("--execute", is_flag=True, help="With redrive: send the letters back.")
@click.option(
    "--letters", metavar="TOPIC", help="With redrive: of this topic, not of the group's own."
)
@click.option(
    "--most", type=click.IntRange(1), metavar="N", help="With redrive: at most so many letters."
)
@live
def command(
    port: AdminPort,
    names: Sequence[str],
    *,
    records: bool,
    topic: str | None,
    partition: int | None,
    after: str | None,
    limit: int,
    execute: bool,
    letters: str | None,
    most: int | None,
    as_json: bool,
) -> int:
    """Show the share groups; for GROUP where it stands in each partition, what each member has,
    what waits and until when, how old the oldest unfinished record is by both clocks, and its dead
    letters.

    With redrive, show how many letters of GROUP were not sent back yet; --execute sends them to
    the topics and partitions that they are from, with the times of their records. What has gone
    back is remembered, and does not go again.

    \b
    horolog queues
    horolog queues workers
    horolog queues workers --records --topic orders
    horolog queues redrive workers
    horolog queues redrive workers --most 10 --execute
    """
    is_redrive, group = _understood(names)
    if is_redrive:
        if records or (topic, partition, after) != (None, None, None):
            raise click.UsageError("redrive takes --execute, --letters and --most")
        bounds = RedriveBounds(letters, most, execute=execute)
        return redrive(port, group or "", bounds, as_json=as_json)
    if execute or (letters, most) != (None, None):
        raise click.UsageError("--execute, --letters and --most go with redrive")
    if not records and (topic, partition, after) != (None, None, None):
        raise click.UsageError("--topic, --partition and --after go with --records")
    if group is None:
        if records:
            raise click.UsageError("--records wants a GROUP")
        return _all(port, as_json=as_json)
    path = f"/api/share-groups/{in_path(group)}"
    if records:
        parameters = {"topic": topic, "partition": partition, "after": after, "limit": limit}
        return _records(port, path, parameters, as_json=as_json)
    return _one(port, path, as_json=as_json)


def _understood(names: Sequence[str]) -> tuple[bool, str | None]:
    """True for letters, and the group: one may be called redrive itself."""
    is_redrive = len(names) == len(("redrive", "GROUP")) and names[0] == "redrive"
    if len(names) > 1 and not is_redrive:
        raise click.UsageError(f"one GROUP, or redrive GROUP, not {' '.join(names)}")
    return is_redrive, names[-1] if names else None


def _all(port: AdminPort, *, as_json: bool) -> int:
    answer = port.get("/api/share-groups")
    if as_json:
        return print_json(answer)
    if not answer["groups"]:
        click.echo("No share group has read anything.")
        return 0
    from broker.cli.groups.queue_tables import show_groups
    from broker.cli.tables import TablePage

    page = TablePage()
    show_groups(page, answer["groups"])
    if answer["next"] is not None:
        page.line(f"... more after {answer['next']}: --json and /api/share-groups?after= have them")
    return 0


def _one(port: AdminPort, path: str, *, as_json: bool) -> int:
    answer = port.get(path)
    if as_json:
        return print_json(answer)
    from broker.cli.groups.queue_tables import show_queue, show_states
    from broker.cli.tables import TablePage
    from config.quantities import counted

    page = TablePage()
    sessions = counted(answer["sessions"], "session")
    page.line(f"{answer['group']}: {sessions}, {counted(answer['behind'], 'record')} behind")
    show_queue(page, answer)
    show_states(page, answer)
    return 0


def _records(port: AdminPort, path: str, parameters: Mapping[str, object], *, as_json: bool) -> int:
    answer = port.get(f"{path}/records", **parameters)
    if as_json:
        return print_json(answer)
    from broker.cli.groups.queue_tables import show_records
    from broker.cli.tables import TablePage

    page = TablePage()
    show_records(page, answer)
    if answer["fault"] is not None:
        page.line(f"No times of what only the store has: {answer['fault']}")
    if answer["next"] is not None:
        page.line(f"... more: --after {answer['next']}")
    return 0
