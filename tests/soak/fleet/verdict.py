"""Promises of a run, and the times to the next acknowledgement after each fault."""

import time
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence
from statistics import median, quantiles
from typing import Protocol

from rich.console import Console
from rich.table import Table

from tests.soak.fleet.clients import PARTITIONS, Heard, Place

SHOWN = 3


class Acknowledged(Protocol):
    """A producer."""

    @property
    def acknowledged_at(self) -> Mapping[int, list[tuple[float, float]]]:
        """By partition: when a record was sent, and when it was acknowledged."""


class Waits:
    """Times to the next acknowledgement after each fault, by its kind (s)."""

    def __init__(self) -> None:
        """Nothing happened."""
        self.began: list[tuple[str, float]] = []

    def happens(self, kind: str) -> None:
        """A fault begins."""
        self.began.append((kind, time.monotonic()))

    def of(self, producers: Sequence[Acknowledged]) -> Mapping[str, list[float]]:
        """For each fault the longest of all partitions."""
        found: dict[str, list[float]] = defaultdict(list)
        for kind, began in self.began:
            found[kind].append(max(_waits_after(began, producers)))
        return found

    def slowest(self, producers: Sequence[Acknowledged]) -> list[str]:
        """The faults with the longest waits, and of which partition."""
        all_waits = []
        for number, (kind, began) in enumerate(self.began, 1):
            waits = _waits_after(began, producers)
            all_waits.append((max(waits), number, kind, waits.index(max(waits))))
        return [
            f"{seconds:.1f} s: fault {number}, {kind}, partition {partition}"
            for seconds, number, kind, partition in sorted(all_waits, reverse=True)[:SHOWN]
        ]


def _waits_after(began: float, producers: Sequence[Acknowledged]) -> list[float]:
    """By partition, until a record is acknowledged that was sent after the fault (s)."""
    waits = []
    for partition in range(PARTITIONS):
        ends = [
            answered
            for each in producers
            for sent, answered in each.acknowledged_at[partition]
            if sent >= began
        ]
        waits.append(min(ends, default=float("inf")) - began)
    return waits


def verdict(
    producers: list[Heard], unanswered: int, found: Mapping[Place, str], seen: Container[str]
) -> list[str]:
    """Broken promises; none is the aim."""
    counts, sent = Counter(found.values()), sent_by(producers)
    faults = [_some([f"refused: {each}" for one in producers for each in one.refused])]
    if unanswered:
        faults.append([f"{unanswered} records were never answered"])
    for each in producers:
        wrong = [place for place, value in each.places.items() if found.get(place) != value]
        faults.append(_some([f"{each.places[place]} is not at {place}" for place in wrong]))
    twice = [f"{value} is there {count} times" for value, count in counts.items() if count > 1]
    faults.append(_some(twice))
    faults.append(_some([f"{value} is not there" for value in sorted(sent - counts.keys())]))
    faults.append(_some([f"nobody sent {value}" for value in sorted(counts.keys() - sent)]))
    unread = [f"the group has not read {value}" for value in sorted(sent) if value not in seen]
    faults.append(_some(unread))
    return [text for texts in faults for text in texts]


def _some(faults: list[str]) -> list[str]:
    """The first ones, and how many more there are of the kind."""
    more = len(faults) - SHOWN
    return [*faults[:SHOWN], *([f"{more} more of that kind"] if more > 0 else [])]


def sent_by(producers: list[Heard]) -> set[str]:
    """Values that were sent."""
    return {f"{each.name}:{number}" for each in producers for number in range(each.sent)}


def show(console: Console, waits: Mapping[str, list[float]]) -> None:
    """A table of the times."""
    table = Table(box=None, pad_edge=False)
    for name in ("fault", "times", "to the next ack: p50 s", "p99 s", "longest s"):
        table.add_column(name, justify="left" if name == "fault" else "right")
    for kind, seconds in waits.items():
        most = quantiles(seconds, n=100, method="inclusive")[98] if len(seconds) > 1 else seconds[0]
        table.add_row(
            kind, str(len(seconds)), f"{median(seconds):.2f}", f"{most:.2f}", f"{max(seconds):.2f}"
        )
    console.print(table)
