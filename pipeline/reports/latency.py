"""The report of `latency`: its quantiles, hour by hour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.reports.page import Report, cumulative
from pipeline.transforms.event_time import DAY_MS
from pipeline.transforms.histogram import quantile
from pipeline.transforms.latency import HOUR_MS, TopicLatency

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (0.5, 0.99, 0.999)


def write_report(path: str, found: Sequence[TopicLatency]) -> None:
    """Write the page. PipelineError, NoSpark without matplotlib."""
    report = Report("From the record's time to the broker")
    report.section("All records", "Share of the records that took so long at the most.")
    report.plot(_all, "share of records by latency", found=found)
    for each in found:
        if each.hours:
            report.section(f"{each.topic}, by hour of arrival (UTC)")
            report.plot(_hours, f"latency of {each.topic} by hour", latency=each)
    report.write(path)


def _all(axes: "Axes", found: Sequence[TopicLatency]) -> None:
    for each in found:
        if each.counts:
            axes.plot(*cumulative(each.counts), label=each.topic)
    axes.set_xscale("symlog", linthresh=0.001)
    axes.set_xlabel("seconds")
    axes.set_ylabel("% of records")
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small", loc="lower right")


def _hours(axes: "Axes", latency: TopicLatency) -> None:
    hours = sorted(latency.hours)
    days = [hour * HOUR_MS / DAY_MS for hour in hours]
    for share in SHARES:
        values = [(quantile(latency.hours[hour], share) or 0) / 1000 for hour in hours]
        axes.plot(days, values, marker=".", label=f"{share:.1%}")
    axes.xaxis_date("UTC")
    axes.set_yscale("symlog", linthresh=0.001)
    axes.set_ylabel("seconds")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    axes.tick_params(axis="x", rotation=30)
