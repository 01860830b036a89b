"""The screen of `horolog top`: a line a partition, most urgent first, as many columns as fit.

In names that clients chose, control characters are escaped."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from broker.cli.admin_client import Answer
from broker.cli.tables import TablePage, shown
from broker.cli.time_arguments import when
from config.quantities import NOTHING, counted, number, size, span

BAD, QUIET, STRONG = "red", "dim", "bold"
GAP = 2
Partition = Mapping[str, Any]


class Column(NamedTuple):
    """One column: what stands in it for a partition at a time in ms."""

    title: str
    read: Callable[[Partition, int], str]
    style: str = ""


class Screen:
    """The terminal's contents, from the last answer, with the time since when there is none."""

    def __init__(self, address: str, answer: Answer) -> None:
        """`address`: where the broker is."""
        self._address = address
        self._answer = answer
        self._since: float | None = None
        self._fault = ""

    def answered(self, answer: Answer) -> None:
        """The broker said this now."""
        self._answer, self._since = answer, None

    def failed(self, fault: str) -> None:
        """The broker did not answer."""
        self._fault = fault
        if self._since is None:
            self._since = time.monotonic()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As much as fits; nothing is wrapped."""
        height = options.height or console.height
        above, below = list(self._head()), list(_clocks(self._answer))
        for line in above:
            yield _cut(line)
        shown = urgent_first(self._answer)[: max(1, height - len(above) - len(below) - 2)]
        yield _table(shown, self._answer["now"]["ms"], options.max_width)
        for line in below:
            yield _cut(line)

    def _head(self) -> Iterator[Text]:
        if self._since is not None:
            away = span(round((time.monotonic() - self._since) * 1000))
            yield Text(f"No answer for {away}: {self._fault}", BAD)
        yield Text.assemble(("horolog ", STRONG), self._address, "  ", _title(self._answer))
        yield from _summary(self._answer)


def show(answer: Answer, limit: int) -> int:
    """Everything once, as lines of text; the exit status."""
    page = TablePage()
    page.line(_title(answer))
    for line in _summary(answer):
        page.line(line.plain)
    states, now_ms = urgent_first(answer), answer["now"]["ms"]
    page.table(
        [column.title for column in LISTED],
        [[column.read(each, now_ms) for column in LISTED] for each in states[:limit]],
    )
    left = answer["partitions_in_all"] - min(limit, len(states))
    if left > 0:
        page.line(f"... {counted(left, 'more partition')}: see --limit and --topic")
    for line in _clocks(answer):
        page.line(line.plain)
    return 0


def urgent_first(answer: Answer) -> Sequence[Partition]:
    """Offline ones, those blocked longest, then those due soonest, then the rest by name."""

    def urgency(state: Partition) -> tuple[bool, int, float]:
        late_ms = max(_of(state["retention"], "overdue_ms"), _of(state["compaction"], "overdue_ms"))
        soon = _soonest(state)
        return (
            state["fault"] is None, -late_ms, float("inf") if soon is None else soon["at"]["ms"],
        )  # fmt: skip

    return sorted(answer["partitions"], key=urgency)


# --- the lines above and below ---


def _title(answer: Answer) -> str:
    states = answer["partitions"]
    segments = sum(each["segments"] for each in states)
    bytes_in_all = sum(each["size_bytes"] for each in states)
    return (
        f"{when(answer['now'])}  {counted(answer['partitions_in_all'], 'partition')}, "
        f"{counted(segments, 'segment')}, {size(bytes_in_all)}"
    )


def _summary(answer: Answer) -> Iterator[Text]:
    now_ms, hold = answer["now"]["ms"], answer["hold"]
    if hold is not None:
        yield Text(
            f"Nothing goes or rolls by time until {when(hold['until'])}: {hold['because']}. If the "
            "clock is right: horolog clock confirm",
            BAD,
        )
    states = answer["partitions"]
    overdue = sum(_of(each["retention"], "overdue_segments") for each in states)
    leaving = sum(_of(each["retention"], "leaving_segments") for each in states)
    parts = [f"{number(leaving)} leave at the next round of retention"]
    if answer["retention_round"] is not None:
        parts[0] += f" (in {span(max(0, answer['retention_round']['ms'] - now_ms))})"
    parts.append(f"{counted(overdue, 'segment')} overdue and blocked")
    yield Text(", ".join(parts), BAD if overdue else "")


def _clocks(answer: Answer) -> Iterator[Text]:
    dirty = answer["bad_clocks"]
    for each in dirty["clients"]:
        wrong = each["direction"] if each["reason"] == "bound" else each["reason"]
        yield Text(
            f"bad clock: {each['client_id']!r} at {shown(each['address'])}, "
            f"{counted(each['count'], 'record')} ({wrong}) in {_place(each)}, "
            f"worst {when(each['worst_timestamp'])}",
            BAD,
        )
    left = dirty["clients_in_all"] - len(dirty["clients"])
    if left > 0:
        yield Text(f"... {counted(left, 'more bad clock')}: horolog time dirty", QUIET)


def _cut(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


# --- the table ---


def _table(states: Sequence[Partition], now_ms: int, width: int) -> Table:
    """The first two columns, cut if they must be, and as many of the others as fit whole."""
    made = Table(box=None, pad_edge=False, header_style=STRONG, padding=(0, GAP, 0, 0))
    cells: list[list[Text]] = []
    left = width
    for number_of, column in enumerate(COLUMNS):
        found = [_cell(column, state, now_ms) for state in states]
        left -= max(cell_len(column.title), *(each.cell_len for each in found), 0) + GAP
        if number_of >= 2 and left < 0:
            break
        cells.append(found)
        made.add_column(column.title, no_wrap=True, overflow="ellipsis")
    for row in zip(*cells, strict=True):
        made.add_row(*row)
    return made


def _cell(column: Column, state: Partition, now_ms: int) -> Text:
    text = column.read(state, now_ms)
    return Text(text, QUIET if text == NOTHING else column.style)


def _place(state: Partition) -> str:
    return f"{shown(state['topic'])}-{state['partition']}"


def _soonest(state: Partition) -> Mapping[str, Any] | None:
    return next((each for each in state["upcoming"] if each["at"] is not None), None)


def _next(state: Partition, now_ms: int) -> str:
    if state["fault"] is not None:
        return "offline"
    if state["is_still_reading"]:
        return "reading"
    event = _soonest(state)
    if event is None:
        return NOTHING
    left = event["at"]["ms"] - now_ms
    moment = f"in {span(left)}" if left >= 0 else f"since {span(-left)}"
    match event["what"]:
        case "removal":
            return f"{moment}: {counted(event['segments'], 'segment')} leave{_s(event)}"
        case "roll":
            return f"{moment}: segment {event['base_offset']} ends"
        case other:
            return f"{moment}: {other}"


def _s(event: Mapping[str, Any]) -> str:
    return "s" if event["segments"] == 1 else ""


def _held_up(state: Partition, _: int) -> str:
    if state["fault"] is not None:
        return f"offline: {state['fault']}"
    retention = state["retention"]
    if _of(retention, "overdue_segments"):
        count, by = retention["overdue_segments"], retention["stays"]
        return f"{count} for {span(retention['overdue_ms'])} by segment {by}"
    late = _of(state["compaction"], "overdue_ms")
    return f"compaction, for {span(late)}" if late else NOTHING


def _behind(state: Partition, _: int) -> str:
    lag = state["lag"]
    if lag is None or not lag["records"]:
        return NOTHING
    return number(lag["records"]) if lag["arrival_ms"] is None else span(lag["arrival_ms"])


def _oldest(state: Partition, now_ms: int) -> str:
    oldest = state["oldest_record"]
    return NOTHING if oldest is None else f"{span(now_ms - oldest['ms'])} ago"


def _horizon(state: Partition, now_ms: int) -> str:
    retention = state["retention"]
    horizon = None if retention is None else retention["horizon"]
    return NOTHING if horizon is None else f"{span(now_ms - horizon['ms'])} ago"


def _of(part: Mapping[str, Any] | None, name: str) -> int:
    found: int = 0 if part is None else part[name]
    return found


COLUMNS = (
    Column("partition", lambda state, _: _place(state)),
    Column("next", _next),
    Column("blocked", _held_up, BAD),
    Column("reader behind", _behind),
    Column("oldest record", _oldest),
    Column("retention reaches", _horizon),
    Column("segments", lambda state, _: number(state["segments"])),
    Column("size", lambda state, _: size(state["size_bytes"])),
)
LISTED = COLUMNS[:6]
"""Those of the text."""
