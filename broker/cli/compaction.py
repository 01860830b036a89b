"""`horolog compaction`: what of a topic waits for compaction, until when, and what holds it up."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminPort, Answer, live, print_json
from broker.cli.time_arguments import minute, when

COLUMNS = (
    ">partition",
    ">dirty from",
    ">offsets",
    ">cleanable",
    ">ratio",
    ">oldest",
    "due",
    ">late",
    "blocked by",
)
UNLIMITED_MS = 2**63 - 1
NOTHING = "-"


@click.command("compaction", short_help="Show what waits for compaction, and what blocks it.")
@click.argument("topic")
@click.option("--partition", metavar="N", type=click.IntRange(0), help="Show this partition only.")
@live
def command(port: AdminPort, topic: str, *, partition: int | None, as_json: bool) -> int:
    """Show what compaction of TOPIC has not seen yet, its age, its deadline, and what blocks it.

    The table has a row for each partition: from which offset on it is dirty and how many offsets
    that is, how many bytes a run could clean and their share of the log, the age of the oldest
    dirty record (its own time or its arrival, whichever is earlier), when max.compaction.lag.ms
    wants it compacted, for how long that has been overdue, and what blocks the next run. Below the
    table, for each partition: the reason, and what that run would do at most. Times are UTC.
    """
    answer = port.of_topic(topic, "compaction", partition=partition)
    if as_json:
        return print_json(answer)
    _show(answer)
    return 0


def _show(answer: Answer) -> None:
    from broker.cli.tables import TablePage

    page = TablePage()
    page.line(f"{answer['topic']}: {_limits(answer)}")
    if not answer["is_compacted"]:
        return
    page.table(COLUMNS, map(_row, answer["partitions"]))
    for state in answer["partitions"]:
        for line in _state_lines(state):
            page.line(f"{state['partition']}: {line}")


def _limits(answer: Answer) -> str:
    from config.quantities import span

    settings = {name: each["value"] for name, each in answer["settings"].items()}
    policy = settings["cleanup.policy"]
    if not answer["is_compacted"]:
        return f"cleanup.policy is {policy or 'empty'}: it is not compacted"
    most = int(settings["max.compaction.lag.ms"])
    parts = [
        f"cleanup.policy {policy}",
        f"dirty ratio above {settings['min.cleanable.dirty.ratio']}",
        f"within {span(most)}" if most != UNLIMITED_MS else "without a bound on the lag",
    ]
    least = int(settings["min.compaction.lag.ms"])
    if least:
        parts.append(f"not before {span(least)}")
    return ", ".join([*parts, f"tombstones stay {span(int(settings['delete.retention.ms']))}"])


def _row(state: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number, size, span

    oldest, late = state["oldest_dirty"], state["overdue_ms"]
    return (
        str(state["partition"]),
        str(state["first_dirty_offset"]),
        number(state["log_end_offset"] - state["first_dirty_offset"]),
        size(state["cleanable_bytes"]),
        f"{state['dirty_ratio']:.2f}",
        span(oldest["age_ms"]) if oldest else NOTHING,
        minute(state["deadline"]),
        span(late) if late else NOTHING,
        (state["blocked_by"] or "nothing").replace("_", " "),
    )


def _state_lines(state: Mapping[str, Any]) -> Iterator[str]:
    """The reason, and what the next run would do at most."""
    from config.quantities import counted, size

    if state["blocked_by"] is None:
        run = state["next_run"]
        yield (
            f"the next round cleans offsets {run['from_offset']} to {run['to_offset'] - 1} "
            f"({state['because']}): it reads {size(run['read_bytes'])} and removes "
            f"{counted(run['removes_records_at_most'], 'record')} at most"
        )
    elif state["blocked_by"] != "clean":
        until = f", until {when(state['blocked_until'])}" if state["blocked_until"] else ""
        yield f"{state['blocked_because']}{until}"
    horizon = state["next_run"]["tombstones_go_at"]
    if horizon:
        yield f"the first tombstone that stayed may go at {when(horizon)}"
