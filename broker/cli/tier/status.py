"""`horolog tier status`: what of each partition is in the store, what waits, and for what."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminError, AdminPort, Answer, live, print_json

COLUMNS = (
    "partition",
    ">store",
    ">",
    ">both",
    ">",
    ">local",
    ">",
    ">waits",
    ">",
    ">for",
    "blocked by",
)
NOTHING = "-"


@click.command("status", short_help="Show what is in the store, and what waits for what.")
@click.argument("topic", required=False)
@click.option("--internal", is_flag=True, help="Include the broker's own topics.")
@live
def status(port: AdminPort, topic: str | None, *, internal: bool, as_json: bool) -> int:
    """Show each tiered partition of a running broker, or those of TOPIC.

    The table has segments and bytes that are in the store alone, in both, and on the disk alone
    (the one that takes appends, too); the closed ones that wait to be copied, for how long the
    oldest of them has been waiting, and what blocks its copy. Below it, for each partition that is
    blocked: the reason.
    """
    answer = _all_pages(port, topic, internal=internal)
    if not answer["is_on"]:
        raise AdminError("this broker has no tier: remote.log.storage.system.enable is false")
    if as_json:
        return print_json(answer)
    _show(answer)
    return 0


def _all_pages(port: AdminPort, topic: str | None, *, internal: bool) -> Answer:
    whole: Answer | None = None
    after = None
    while whole is None or after is not None:
        page = port.get("/api/tier", topic=topic, internal=internal, after=after)
        after = page["next"]
        if whole is None:
            whole = page
        else:
            whole["partitions"] += page["partitions"]
            whole["next"] = after
    return whole


def _show(answer: Answer) -> None:
    from broker.cli.tables import TablePage

    page = TablePage()
    for line in _tier_lines(answer):
        page.line(line)
    if answer["partitions"]:
        page.table(COLUMNS, map(_row, answer["partitions"]))
    for state in answer["partitions"]:
        if state["blocked_by"] not in {None, "refused", "unreachable"}:
            page.line(f"{state['topic']}-{state['partition']}: {state['blocked_because']}")


def _tier_lines(answer: Answer) -> Iterator[str]:
    from config.quantities import counted, size

    if answer["refused"]:
        yield f"Nothing is copied by this process any longer: {answer['refused']}"
    elif answer["unreachable"]:
        yield f"The store cannot be used for now: {answer['unreachable']}"
    if not answer["partitions"]:
        yield "No partition is tiered: remote.storage.enable=true of a topic begins it."
    if answer["orphan_objects"]:
        yield (
            f"{counted(answer['orphan_objects'], 'object')} that nothing names, "
            f"{size(answer['orphan_bytes'])}: the next sweep removes them."
        )


def _row(state: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import span

    waiting = state["waiting"]
    return (
        f"{state['topic']}-{state['partition']}",
        *_share(state["store"]),
        *_share(state["both"]),
        *_share(state["local"]),
        *_share(waiting),
        span(waiting["oldest_ms"]) if waiting["segments"] else NOTHING,
        (state["blocked_by"] or "nothing").replace("_", " "),
    )


def _share(share: Mapping[str, int]) -> tuple[str, str]:
    from config.quantities import number, size

    if not share["segments"]:
        return NOTHING, NOTHING
    return number(share["segments"]), size(share["size_bytes"])
