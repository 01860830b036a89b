"""The report of `audit-time`: skew and lateness as curves, outliers as a table."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from config.quantities import number, second, span
from pipeline.reports.page import Report, cumulative
from pipeline.transforms.time_audit import PartitionAudit

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def write_report(path: str, audits: Sequence[PartitionAudit], answer: Mapping[str, Any]) -> None:
    """Write the page. PipelineError, NoSpark without matplotlib."""
    report = Report("Record times")
    report.section(
        "Arrival minus claimed time",
        "Left of zero a record is ahead of the broker's clock. Each line is a partition.",
    )
    report.plot(_skew, "share of records by arrival minus claimed time", audits=audits)
    report.section(
        "How late records come",
        "How far a record is behind the latest time before it. A watermark that stays back as far"
        " as the dotted line loses one record in a thousand.",
    )
    report.plot(_lateness, "share of records by lateness", audits=audits)
    report.section("Partitions")
    report.table(
        ("partition", "records", "outliers", "late", "watermark"),
        [
            (
                f"{each.topic}-{each.partition}",
                number(sum(clock.count for clock in each.producers.values())),
                number(each.outlier_count),
                number(each.late),
                "-" if each.watermark_ms is None else span(each.watermark_ms),
            )
            for each in audits
        ],
    )
    report.section("The worst times")
    report.table(
        ("partition", "offset", "time", "looks like", "skew", "who"), list(_outliers(answer))
    )
    report.write(path)


def _outliers(answer: Mapping[str, Any]) -> list[tuple[str, ...]]:
    found = [
        (abs(each["skew_ms"]), row, each)
        for row in answer["partitions"]
        for side in ("future", "past")
        for each in row[side]
    ]
    return [
        (
            f"{row['topic']}-{row['partition']}",
            str(each["offset"]),
            second(each["time_ms"]),
            each["reason"],
            span(each["skew_ms"]),
            ", ".join(each["clients"]) or "-",
        )
        for _, row, each in sorted(found, key=lambda item: -item[0])
    ]


def _skew(axes: "Axes", audits: Sequence[PartitionAudit]) -> None:
    for each in audits:
        total: Counter[int] = Counter()
        for clock in each.producers.values():
            total.update(clock.skew)
        if total:
            axes.plot(*cumulative(total), label=f"{each.topic}-{each.partition}")
    _finish(axes, "seconds from claimed time to arrival")


def _lateness(axes: "Axes", audits: Sequence[PartitionAudit]) -> None:
    for each in audits:
        if each.lateness:
            (line,) = axes.plot(*cumulative(each.lateness), label=f"{each.topic}-{each.partition}")
            axes.axvline((each.watermark_ms or 0) / 1000, linestyle=":", color=line.get_color())
    _finish(axes, "seconds behind the latest time before")


def _finish(axes: "Axes", label: str) -> None:
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlabel(label)
    axes.set_ylabel("% of records")
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small", loc="lower right")
