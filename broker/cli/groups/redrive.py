"""`horolog queues redrive`: dead letters back to where they are from, call by call."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.cli.admin_client import REFUSED, AdminPort, in_path, print_json

LETTERS_OF_CALL = 10_000
COLUMNS = ("letters", ">from", ">end", ">not looked at")


@dataclass(frozen=True, slots=True)
class RedriveBounds:
    """Bounds of a redrive. `letters`: None is the topic of the group; `most`: None is all."""

    letters: str | None
    most: int | None
    execute: bool


def redrive(port: AdminPort, group: str, bounds: RedriveBounds, *, as_json: bool) -> int:
    """Shows what would go, or sends it, and shows what became of it; returns the exit status."""
    path = f"/api/share-groups/{in_path(group)}/redrive"
    if not bounds.execute:
        answer = port.get(path, letters=bounds.letters)
        return print_json(answer) if as_json else _show(answer)
    answer = _sent(port, path, bounds)
    status = 0 if answer["stopped"] is None else REFUSED
    if as_json:
        print_json(answer)
    else:
        _show_sent(answer)
    return status


def _sent(port: AdminPort, path: str, bounds: RedriveBounds) -> dict[str, Any]:
    """Calls until nothing is left of what was there at first; the last answer, with sums."""
    sums: Counter[str] = Counter(sent=0, sent_bytes=0)
    passed_over: Counter[str] = Counter()
    left = port.get(path, letters=bounds.letters)["left"]
    while True:
        most = LETTERS_OF_CALL if bounds.most is None else bounds.most - sums["sent"]
        limit = min(LETTERS_OF_CALL, most)
        answer = port.post(path, letters=bounds.letters, limit=limit)
        passed_over.update(answer["passed_over"])
        sums.update(sent=answer["sent"], sent_bytes=answer["sent_bytes"])
        looked_at = answer["sent"] + sum(answer["passed_over"].values())
        left -= looked_at
        is_done = left <= 0 or not looked_at or sums["sent"] == bounds.most
        if is_done or answer["stopped"] is not None:
            return {**answer, **sums, "passed_over": dict(passed_over)}


def _show(answer: Mapping[str, Any]) -> int:
    from broker.cli.tables import TablePage
    from config.quantities import number

    page = TablePage()
    page.line(f"{number(answer['left'])} in {answer['letters']} that no redrive has looked at:")
    rows = [
        (
            f"{answer['letters']}-{each['partition']}",
            str(each["offset"]),
            str(each["end"]),
            number(each["left"]),
        )
        for each in answer["partitions"]
    ]
    page.table(COLUMNS, rows)
    page.line("Nothing was changed: --execute sends them back.")
    return 0


def _show_sent(answer: Mapping[str, Any]) -> None:
    from broker.cli.tables import TablePage
    from config.quantities import counted, number

    page = TablePage()
    page.line(f"{counted(answer['sent'], 'letter')} of {answer['letters']} sent back.")
    for reason, count in answer["passed_over"].items():
        page.line(f"{number(count)} passed over: {reason.replace('_', ' ')}")
    stopped = answer["stopped"]
    if stopped is not None:
        place = f"{answer['letters']}-{stopped['partition']}"
        page.line(f"It ended at offset {stopped['offset']} of {place}: {stopped['message']}")
    if answer["left"]:
        page.line(f"{number(answer['left'])} not looked at yet.")
