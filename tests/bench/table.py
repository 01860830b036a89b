"""The table that people read: medians, extents, ratios, and what was promised beside them."""

from rich.table import Table

from tests.bench.cell import Figure
from tests.bench.results import CellResults, Summary, Verdict, verdict

TITLE = "medians and, dim, the extent of the rounds; ratio is ours over theirs"
STYLES = {Verdict.AIM: "bold green", Verdict.MUST: "green", Verdict.MISSED: "bold red"}


def number(value: float) -> str:
    """Three significant digits, and no exponent."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def extent(summary: Summary | None) -> str:
    if summary is None:
        return "-"
    if summary.low == summary.high:
        return number(summary.median)
    return f"{number(summary.median)} [dim]{number(summary.low)}-{number(summary.high)}[/dim]"


def promises(figure: Figure) -> str:
    """must / aim as ratios, and the bound on ours alone."""
    ratios = "" if figure.must is None else number(figure.must)
    ratios += "" if figure.aim is None else f" / {number(figure.aim)}"
    bound = "" if figure.under is None else f"under {number(figure.under)}"
    return "; ".join(part for part in (ratios, bound) if part)


def table(results: list[CellResults], ours: str, other: str) -> Table:
    """One row for each figure of each cell."""
    made = Table(title=TITLE, title_justify="left")
    for heading in ("cell", "figure", ours, other, "ratio", "must / aim", ""):
        right = heading in {ours, other, "ratio"}
        made.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for result in results:
        for index, figure in enumerate(result.cell.figures):
            ratio = result.ratio(figure, ours, other)
            mark = verdict(result, figure, ours, other)
            made.add_row(
                "" if index else result.cell.name,
                f"{figure.name} {figure.unit}".strip(),
                *(extent(result.summary(peer, figure)) for peer in (ours, other)),
                "-" if ratio is None else number(ratio),
                promises(figure),
                mark.value,
                style=STYLES.get(mark),
            )
        made.add_section()
    return made
