"""What was measured, round by round and peer by peer, and the verdicts on it."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from tests.bench.cell import Figure


class Measured(Protocol):
    """What results are of."""

    @property
    def name(self) -> str: ...

    @property
    def figures(self) -> tuple[Figure, ...]: ...


class Verdict(Enum):
    """How a figure stands against what the project promised."""

    AIM = "aim"
    MUST = "ok"
    MISSED = "MISSED"
    UNJUDGED = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """Median and extent of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> "Summary":
        return cls(statistics.median(values), min(values), max(values))


@dataclass(slots=True)
class CellResults:
    """Rounds of one cell: by peer's name, the figures of each round."""

    cell: Measured
    rounds: dict[str, list[Mapping[str, float]]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, peer: str, figures: Mapping[str, float]) -> None:
        self.rounds.setdefault(peer, []).append(figures)

    def summary(self, peer: str, figure: Figure) -> Summary | None:
        """None when that peer has no such figure."""
        values = [r[figure.name] for r in self.rounds.get(peer, []) if figure.name in r]
        return Summary.of(values) if values else None

    def ratio(self, figure: Figure, ours: str, other: str) -> float | None:
        """Ours over the other's, medians; None without both."""
        mine, theirs = self.summary(ours, figure), self.summary(other, figure)
        if mine is None or theirs is None or not theirs.median:
            return None
        return mine.median / theirs.median


def verdict(results: CellResults, figure: Figure, ours: str, other: str) -> Verdict:
    """The worst of what the ratio and the bound on ours alone say."""
    mine = results.summary(ours, figure)
    if figure.under is not None and mine is not None and mine.median > figure.under:
        return Verdict.MISSED
    ratio = results.ratio(figure, ours, other)
    if ratio is None or figure.must is None:
        bounded = figure.under is not None and mine is not None
        return Verdict.MUST if bounded else Verdict.UNJUDGED
    if figure.aim is not None and figure.reaches(ratio, figure.aim):
        return Verdict.AIM
    return Verdict.MUST if figure.reaches(ratio, figure.must) else Verdict.MISSED


def as_json(results: list[CellResults], ours: str, other: str) -> list[dict[str, Any]]:
    """Plain data, every round included."""
    return [
        {
            "cell": result.cell.name,
            "failures": result.failures,
            "figures": [
                {
                    "name": figure.name,
                    "unit": figure.unit,
                    "better": figure.better,
                    "must": figure.must,
                    "aim": figure.aim,
                    "under": figure.under,
                    "rounds": {
                        peer: [r[figure.name] for r in rounds if figure.name in r]
                        for peer, rounds in result.rounds.items()
                    },
                    "ratio": result.ratio(figure, ours, other),
                    "verdict": verdict(result, figure, ours, other).value,
                }
                for figure in result.cell.figures
            ],
        }
        for result in results
    ]
