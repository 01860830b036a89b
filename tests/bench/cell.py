"""What a cell of the table is: a measurement, its figures, and what they must reach."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.bench.peers import Peer


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: megabytes, seconds, counts. Cells scale their work by these."""

    megabytes: int
    seconds: float
    lookups: int
    partitions: int
    killed_megabytes: int
    touches_memory: bool = False
    """Whether memory that a host took back is fetched before each round."""


FULL = Scale(
    megabytes=800,
    seconds=5.0,
    lookups=3000,
    partitions=3500,
    killed_megabytes=2000,
    touches_memory=True,
)
QUICK = Scale(megabytes=100, seconds=1.0, lookups=500, partitions=350, killed_megabytes=200)
TINY = Scale(megabytes=2, seconds=0.05, lookups=20, partitions=10, killed_megabytes=5)


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a cell. `must` and `aim` are ratios to the peer; `under` bounds ours alone."""

    name: str
    unit: str
    better: Literal["higher", "lower"]
    must: float | None = None
    aim: float | None = None
    under: float | None = None

    def reaches(self, ratio: float, wanted: float) -> bool:
        return ratio >= wanted if self.better == "higher" else ratio <= wanted


def rate(unit: str = "MB/s", must: float | None = None, aim: float | None = None) -> Figure:
    return Figure("rate", unit, "higher", must, aim)


def cpu(must: float | None = None, aim: float | None = None) -> Figure:
    return Figure("broker CPU", "ms/MB", "lower", must, aim)


def latency(percent: int, must: float | None = None, aim: float | None = None) -> Figure:
    return Figure(f"p{percent}", "ms", "lower", must, aim)


Measurement = Callable[[Peer, Scale], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Cell:
    """A named measurement; `measure` runs once a round and peer and returns figures by name.

    `starts_nodes`: it starts brokers of its own, so it needs a peer that can be started.
    `only_ours`: it is about something that the other broker does not have. `fills_memory`: it
    writes so much that fresh memory would be charged to whoever gets it (`fresh_memory`).
    """

    name: str
    figures: tuple[Figure, ...]
    measure: Measurement
    starts_nodes: bool = False
    most_rounds: int = 1000
    only_ours: bool = False
    fills_memory: bool = False
