"""Reports for people: one HTML file with its plots inside, that can be mailed and opened anywhere.

Plots are SVG by matplotlib, which is loaded when a report is asked for. Nothing is fetched.
"""

import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.errors import NoSpark, PipelineError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCHES, HEIGHT_INCHES = 9, 3.2
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid #d8dee4 }
svg { max-width: 100%; height: auto }
"""


class Report:
    """A page that grows from top to bottom."""

    def __init__(self, title: str) -> None:
        """With its heading."""
        self._title = title
        self._parts = [f"<h1>{escape(title)}</h1>"]

    def section(self, heading: str, text: str = "") -> None:
        """A heading, and what is to be known of what follows."""
        self._parts.append(f"<h2>{escape(heading)}</h2>")
        if text:
            self._parts.append(f"<p>{escape(text)}</p>")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows under their columns."""
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in rows
        )
        self._parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def plot(self, draw: Any, label: str, **marks: Any) -> None:
        """Adds the plot of `draw(axes, **marks)`; `label` is its text for screen readers."""
        figure, axes = _figure()
        draw(axes, **marks)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None})
        svg = drawn.getvalue()
        svg = svg[svg.index("<svg") :].replace(
            "<svg", f'<svg role="img" aria-label="{escape(label)}"', 1
        )
        self._parts.append(svg)

    def write(self, path: str) -> None:
        """Save the page. PipelineError when that fails."""
        page = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(self._title)}'
            f"</title><style>{_STYLE}</style><body>{''.join(self._parts)}</body></html>\n"
        )
        try:
            Path(path).write_text(page, encoding="utf-8")
        except OSError as error:
            raise PipelineError(f"the report cannot be written: {error}") from error


def _figure() -> "tuple[Any, Axes]":
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise NoSpark("reports need matplotlib: pip install 'horolog[spark]'") from error
    figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
    return figure, figure.add_subplot()


def cumulative(counts: Mapping[int, int]) -> tuple[list[float], list[float]]:
    """Seconds, and the share in percent of values up to there, of a `histogram`'s counts."""
    from pipeline.transforms.histogram import upper_bound

    total, seen = sum(counts.values()), 0
    seconds: list[float] = []
    shares: list[float] = []
    for bucket in sorted(counts):
        seen += counts[bucket]
        seconds.append(upper_bound(bucket) / 1000)
        shares.append(100 * seen / total)
    return seconds, shares
