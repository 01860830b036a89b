"""`horolog segments`: why each segment of a topic is still here, until when, what would free it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from broker.cli.admin_client import AdminPort, Answer, live, print_json
from broker.cli.time_arguments import minute, when

PAGE_SEGMENTS = 1000
SHOWN_SEGMENTS = 50
COLUMNS = (">offset", ">offsets", ">size", "newest record", "last arrival", "why", "until")


@click.command("segments", short_help="Show why each segment is retained, what frees it.")
@click.argument("topic")
@click.option("--partition", metavar="N", type=click.IntRange(0), help="Show this partition only.")
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    help="Number of segments to show, oldest first (default: 50, with --json all).",
)
@live
def command(
    port: AdminPort, topic: str, *, partition: int | None, limit: int | None, as_json: bool
) -> int:
    """Show why each segment of TOPIC is retained, until when, and what would free it.

    The table has a row for each segment: its offsets and bytes, the largest time of its records and
    the last arrival, why it stays (or goes at the next round of retention), and until when. Above
    the table: what keeps the oldest segment, for which all later ones wait, the record, its sender
    where known, and the ways to free it. Times are UTC.
    """
    if limit is None and not as_json:
        limit = SHOWN_SEGMENTS
    answer = _all_pages(port, topic, partition, limit)
    if as_json:
        return print_json(answer)
    _show(answer)
    return 0


def _all_pages(port: AdminPort, topic: str, partition: int | None, limit: int | None) -> Answer:
    """One answer with the segments of all pages, or the first `limit`."""
    left = limit
    whole: Answer | None = None
    after = None
    while whole is None or after is not None:
        size = PAGE_SEGMENTS if left is None else min(left, PAGE_SEGMENTS)
        page = port.of_topic(topic, "segments", partition=partition, limit=size, after=after)
        after = page["next"]
        if left is not None:
            left -= sum(len(each["segments"]) for each in page["partitions"])
            after = after if left > 0 else None
        whole = page if whole is None else _joined(whole, page)
    return whole


def _joined(whole: Answer, page: Answer) -> Answer:
    partitions = whole["partitions"]
    for state in page["partitions"]:
        if partitions and partitions[-1]["partition"] == state["partition"]:
            partitions[-1]["segments"] += state["segments"]
        else:
            partitions.append(state)
    whole["next"] = page["next"]
    return whole


def _show(answer: Answer) -> None:
    from broker.cli.tables import TablePage
    from config.quantities import counted

    page = TablePage()
    hold = answer["hold"]
    if hold is not None:
        page.line(
            f"Nothing goes or rolls by time until {when(hold['until'])}: {hold['because']}. If the "
            "clock is right: horolog clock confirm",
            style="bold",
        )
    for number, state in enumerate(answer["partitions"]):
        if number:
            page.line()
        for line in _segment_lines(answer, state):
            page.line(line)
        page.table(COLUMNS, map(_row, state["segments"]))
        left = state["segment_count"] - len(state["segments"])
        if left:
            page.line(f"... {counted(left, 'more segment')}: see --limit and --partition")


def _segment_lines(answer: Answer, state: Answer) -> Iterator[str]:
    """Lines of a partition above its table."""
    from config.quantities import counted, size

    settings = {name: each["value"] for name, each in answer["settings"].items()}
    offsets = f"offsets {state['log_start_offset']} to {state['log_end_offset'] - 1}"
    if state["log_start_offset"] == state["log_end_offset"]:
        offsets = "no records"
    yield (
        f"{answer['topic']}-{state['partition']}: {offsets}, {size(state['size_bytes'])} in "
        f"{counted(state['segment_count'], 'segment')}; {_limits(settings)}"
    )
    if state["leaving_count"]:
        count = counted(state["leaving_count"], "segment")
        yield f"Of them {count} may go at the next round of retention."
    if state["blocker"] is not None:
        yield from _keeper(state, answer["now"]["ms"])
    roll = state["roll"]
    if roll["size_bytes"]:
        by_time = f"at {when(roll['deadline'])} ({roll['because']}) or " if roll["deadline"] else ""
        yield f"The last segment ends {by_time}with {size(roll['ends_at_bytes'])}."


def _limits(settings: Mapping[str, str]) -> str:
    from config.quantities import size, span

    if not settings:
        return "its limits are shown with the right DESCRIBE_CONFIGS"
    if "delete" not in settings["cleanup.policy"]:
        return f"cleanup.policy is {settings['cleanup.policy'] or 'empty'}: nothing goes by age"
    parts = []
    for key, text in (("retention.ms", span), ("retention.bytes", size)):
        limit = int(settings[key])
        parts.append(f"{key} {text(limit) if limit >= 0 else 'unlimited'}")
    return f"{', '.join(parts)}, by the {settings['horolog.retention.clock']} clock"


def _keeper(state: Answer, now_ms: int) -> Iterator[str]:
    """The reason why the oldest segment is retained, the sender of its record, and ways to free
    it.
    """
    blocker = state["blocker"]
    record = "" if blocker["offset"] is None else f" of the record at offset {blocker['offset']}"
    time = f" ({blocker['judged_by']} {when(blocker['time'])}{record})" if blocker["time"] else ""
    until = f", until {when(blocker['until'])}" if blocker["until"] else ""
    yield f"The segment at {blocker['base_offset']} stays: {blocker['because']}{time}{until}."
    for client in blocker.get("clients", ()):
        yield f"  sent by: {_client(client)}"
    kept = [each for each in state["segments"] if each["base_offset"] == blocker["base_offset"]]
    for segment in kept:
        for way in segment["retention"]["frees"]:
            yield f"  frees it: {_way(way, now_ms)}"


def _client(client: Mapping[str, Any]) -> str:
    from config.quantities import counted

    return (
        f"client {client['client_id']!r} at {client['address']}, "
        f"{counted(client['count'], 'record')} with bad times ({client['reason']}), worst "
        f"{when(client['worst_timestamp'])}"
    )


def _way(way: Mapping[str, Any], now_ms: int) -> str:
    match way["how"]:
        case "wait":
            return (
                f"wait until {when(way['until'])}" if "until" in way else f"wait for {way['for']}"
            )
        case "free-first":
            return f"what frees the segment at {way['base_offset']}"
        case "confirm-clock":
            return "horolog clock confirm, if the clock is right"
        case "delete-records":
            return f"delete records before offset {way['before_offset']} (kafka-delete-records)"
        case "set":
            value = "a limit" if way["value"] is None else way["value"]
            return f"set {way['key']}={value}{_goes(way.get('until'), now_ms)}"
        case other:
            return str(other)


def _goes(until: Mapping[str, Any] | None, now_ms: int) -> str:
    if until is None:
        return ""
    return f": it goes at {when(until) if until['ms'] > now_ms else 'the next round'}"


def _row(segment: Mapping[str, Any]) -> Sequence[str]:
    from config.quantities import number, size

    decision = segment["retention"]
    why = decision["reason"].replace("_", " ")
    if decision["goes"]:
        why = f"goes: {why}"
    elif decision["blocked_by"] is not None:
        why = f"behind {decision['blocked_by']}"
    return (
        str(segment["base_offset"]),
        number(segment["end_offset"] - segment["base_offset"]),
        size(segment["size_bytes"]),
        minute(segment["record_time"]["last"]),
        minute(segment["arrival_time"]["last"]),
        why if segment["fault"] is None else segment["fault"],
        minute(decision["deadline"]),
    )
