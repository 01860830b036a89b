"""Prometheus' text format 0.0.4, written in slices so that a long scrape leaves others their turn.

The metrics library builds an object for every sample first: for a thousand partitions that is four
times the work, and it keeps the interpreter busy meanwhile. A test reads all of it with the
library.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence

from broker.metrics.declare import Sample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SLICE_SAMPLES = 200

Buckets = Sequence[tuple[str, float]]

_SPECIAL = re.compile(r'[\\"\n]')
_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n"}


def header(name: str, kind: str, text: str) -> str:
    """The two lines that stand over the samples of a metric."""
    described = text.replace("\\", r"\\").replace("\n", r"\n")
    return f"# HELP {name} {described}\n# TYPE {name} {kind}\n"


def plain(name: str, labels: Sequence[str], samples: Iterable[Sample]) -> Iterator[str]:
    """The lines of a counter or gauge, some at a time."""
    lines = []
    columns = _columns(labels)
    for values, number in samples:
        lines.append(f"{name}{_label_set(columns, values)} {_number(number)}\n")
        if len(lines) == SLICE_SAMPLES:
            yield "".join(lines)
            lines.clear()
    yield "".join(lines)


def buckets(
    name: str, labels: Sequence[str], values: Sequence[str], counts: Buckets, total: float | None
) -> str:
    """The lines of one histogram; `total` is the sum of what was observed, None to give none."""
    columns = _columns((*labels, "le"))
    shown = "".join(
        f"{name}_bucket{_label_set(columns, (*values, bound))} {_number(count)}\n"
        for bound, count in counts
    )
    own = _label_set(_columns(labels), values)
    shown += f"{name}_count{own} {_number(counts[-1][1])}\n"
    return shown if total is None else f"{shown}{name}_sum{own} {_number(total)}\n"


def _columns(labels: Sequence[str]) -> list[tuple[str, int]]:
    """The text before each value, and the value's index, in the order of the labels' names."""
    return sorted((f'{label}="', position) for position, label in enumerate(labels))


def _label_set(columns: Sequence[tuple[str, int]], values: Sequence[str]) -> str:
    if not columns:
        return ""
    pairs = [f'{head}{_escaped(values[position])}"' for head, position in columns]
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    if _SPECIAL.search(value) is None:
        return value
    return _SPECIAL.sub(lambda found: _ESCAPES[found[0]], value)


def _number(value: float) -> str:
    if math.isfinite(value):
        return repr(float(value))
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
