"""Tables of share groups: where each stands in its partitions, who has what, dead letters."""

from collections.abc import Mapping, Sequence
from typing import Any

from broker.cli.tables import TablePage
from broker.cli.time_arguments import exactly
from config.quantities import NOTHING, number, span

QUEUE = (
    "partition", ">start", ">end", ">behind", ">waiting", "next due", "oldest by time",
    "by arrival",
)  # fmt: skip
HELD = ("partition", ">offsets", ">delivery", "member", "since", "until")
STATES = (
    "partition", ">available", ">acquired", ">acknowledged", ">archived", ">lettering",
    ">rejected", ">at the limit",
)  # fmt: skip
RECORDS = (
    "partition", ">offsets", "state", ">delivery", "member", "until", "by time", "by arrival",
)  # fmt: skip
GROUPS = ("share group", ">partitions", ">sessions", ">behind", "oldest by time", "by arrival")


def show_queue(page: TablePage, queue: Mapping[str, Any]) -> None:
    """Progress in each partition, and who holds which records."""
    page.table(QUEUE, [_queue_row(each) for each in queue["partitions"]])
    held = [_held_row(each, held) for each in queue["partitions"] for held in each["held"]]
    if held:
        page.table(HELD, held)


def show_states(page: TablePage, queue: Mapping[str, Any]) -> None:
    """Records from the first unfinished one on by state, and dead letters by reason."""
    page.table(STATES, [_state_row(each) for each in queue["partitions"]])


def show_groups(page: TablePage, groups: Sequence[Mapping[str, Any]]) -> None:
    """One row a group."""
    page.table(GROUPS, [_group_row(each) for each in groups])


def show_records(page: TablePage, answer: Mapping[str, Any]) -> None:
    """One row a range of neighbouring records."""
    now_ms = answer["now"]["ms"]
    page.table(RECORDS, [_record_row(each, now_ms) for each in answer["records"]])


def _queue_row(state: Mapping[str, Any]) -> Sequence[str]:
    end, waiting, due = state["end"], state["waiting"], state["next_due"]
    return (
        _place(state),
        str(state["start"]),
        NOTHING if end is None or end < state["start"] else str(end),
        number(max(state["high_watermark"] - state["start"], 0)),
        NOTHING if waiting is None else number(waiting),
        NOTHING if due is None else exactly(due),
        *_ages(state),
    )


def _held_row(state: Mapping[str, Any], held: Mapping[str, Any]) -> Sequence[str]:
    return (
        _place(state),
        _offsets(held),
        str(held["deliveries"]),
        held["member"] or "waits for its next delivery",
        exactly(held["since"]),
        exactly(held["until"]),
    )


def _state_row(state: Mapping[str, Any]) -> Sequence[str]:
    records, letters = state["records"], state["letters"]
    names = ("available", "acquired", "acknowledged", "archived", "lettering")
    counts = [NOTHING if records is None else number(records[name]) for name in names]
    return (_place(state), *counts, number(letters["rejected"]), number(letters["limit"]))


def _group_row(group: Mapping[str, Any]) -> Sequence[str]:
    counts = (number(group[name]) for name in ("partitions", "sessions", "behind"))
    return (group["group"], *counts, *_ages(group))


def _record_row(each: Mapping[str, Any], now_ms: int) -> Sequence[str]:
    times = (each["record_time"], each["arrival"])
    return (
        _place(each),
        _offsets(each),
        each["state"].replace("_", " "),
        str(each["deliveries"]),
        each["member"] or NOTHING,
        exactly(each["until"] or each["due"]),
        *(NOTHING if at is None else span(now_ms - at["ms"]) for at in times),
    )


def _ages(state: Mapping[str, Any]) -> Sequence[str]:
    ages = state["oldest_record_seconds"], state["oldest_arrival_seconds"]
    return [NOTHING if age is None else span(round(age * 1000)) for age in ages]


def _offsets(each: Mapping[str, Any]) -> str:
    first, last = each["first"], each["last"]
    return str(first) if first == last else f"{first}-{last}"


def _place(state: Mapping[str, Any]) -> str:
    return f"{state['topic']}-{state['partition']}"
